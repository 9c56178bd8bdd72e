import ArgumentParser
import ZDCCommands

struct Share: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Share the home tree with another user.",
    usage: "zdc share [options] user",
    discussion: """
      The user gets the tree's key, sealed for them, and can read everything in it. Sharing again changes the permissions.

      EXAMPLES
        zdc share $USER_ID
        zdc share $USER_ID --permissions r

      JSON: {"durableMs"?,"permissions","queuedMs","userID"}
      """)

  @OptionGroup var common: CommonOptions
  @Option(
    help: ArgumentHelp("r (read), rw (and write) or rws (and share); R, L, U, W narrow rw.", valueName: "letters"))
  var permissions = "rw"
  @Flag(help: "Queue the change and return; zdc sync sends it.")
  var queue = false
  @Argument(help: "The other user's ID.")
  var user: String

  func run() async throws {
    try await ShareCommands.share(common.options, user: user, permissions: permissions, queuesOnly: queue)
  }
}

struct Unshare: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "End a user's access to the home tree.",
    usage: "zdc unshare [options] user",
    discussion: """
      Replaces the tree's key in the same commit, so that the user can read nothing that is written afterwards. Nodes that are not written \
      again keep their keys; --eager replaces all of them now. What the user has copied before cannot be taken back.

      EXAMPLES
        zdc unshare $USER_ID
        zdc revoke $USER_ID --eager --receipt

      JSON: {"durableMs"?,"queuedMs","userID"}; with --receipt, one removal a line: \
      {"commit","date"?,"isKeyReplaced","nodesWithOldKeys","number","removedBy","userID"}
      """, aliases: ["revoke"])

  @OptionGroup var common: CommonOptions
  @Flag(help: "Replace the keys of all nodes now.")
  var eager = false
  @Flag(help: "Print when the user lost access, and what still has old keys.")
  var receipt = false
  @Flag(help: "Queue the change and return; zdc sync sends it.")
  var queue = false
  @Argument(help: "The other user's ID.")
  var user: String

  func run() async throws {
    try await ShareCommands.unshare(
      common.options, user: user, isEager: eager, showsReceipt: receipt, queuesOnly: queue)
  }
}

struct Shares: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the members of the home tree and of accepted trees.",
    usage: "zdc shares [options]",
    discussion: """
      EXAMPLES
        zdc shares
        zdc shares --offered

      JSON, one member a line: {"isOwner","permissions","tree","userID"}; with --offered: {"cloudID","ownerID"?}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Ask the server for trees that others share with this account and that are not accepted.")
  var offered = false

  func run() async throws {
    try await ShareCommands.list(common.options, isOffered: offered)
  }
}

struct Accept: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Follow the home tree that another user shares with this account.",
    usage: "zdc accept [options] owner",
    discussion: """
      Prints the path of the tree, below which other commands find its nodes. Accept a tree only if its owner told you about it.

      EXAMPLES
        zdc accept $OWNER_ID
        zdc ls "$(zdc accept $OWNER_ID --json | jq -r .path)"

      JSON: {"ownerID","path"}
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "The owner's user ID.")
  var owner: String

  func run() async throws {
    try await ShareCommands.accept(common.options, owner: owner)
  }
}
