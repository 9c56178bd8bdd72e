import ArgumentParser
import ZDCCommands

struct Share: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Share a node with another user.",
    usage: "zdc share [options] user [path]",
    discussion: """
      The user gets the key of the node and of everything below it, sealed for them. Without a path, the home tree is shared. Sharing again \
      changes the permissions. Branches below that are shared separately are included. Tell the user the command that is printed; it has your user ID and the node's cloudID.

      EXAMPLES
        zdc share $USER_ID home:/lists
        zdc share @bob home:/lists
        zdc share $USER_ID --permissions r

      JSON: {"cloudID","durableMs"?,"permissions","queuedMs","userID"}
      """)

  @OptionGroup var common: CommonOptions
  @Option(
    help: ArgumentHelp("r (read), rw (and write) or rws (and share); R, L, U, W narrow rw.", valueName: "letters"))
  var permissions = "rw"
  @Flag(help: "Queue the change and return; zdc sync sends it.")
  var queue = false
  @Argument(help: "The other user's ID, or @handle.")
  var user: String
  @Argument(help: "The node, such as home:/lists. Default: the home tree.")
  var path: String?

  func run() async throws {
    try await ShareCommands.share(common.options, user: user, path: path, permissions: permissions, queuesOnly: queue)
  }
}

struct Unshare: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "End a user's access to a node.",
    usage: "zdc unshare [options] user [path]",
    discussion: """
      Without a path, access to the home tree ends. Replaces the node's key in the same commit, so that the user can read nothing that is written afterwards. Nodes that are not written \
      again keep their keys; --eager replaces all of them now. The user keeps what they copied before. Branches below that are shared separately are included.

      EXAMPLES
        zdc unshare $USER_ID home:/lists
        zdc revoke $USER_ID --eager --receipt
        zdc revoke $USER_ID --verify

      --verify tries the user's old keys on everything that was written after the removal, also in shared branches below that the user lost. \
      It prints what they open, and the nodes that still have old keys.

      JSON, one changed branch a line: {"cloudID","durableMs"?,"queuedMs","userID"}; with --receipt, one removal a line: \
      {"commit","date"?,"isKeyReplaced","lastReadableNumber","nodesWithOldKeys","number","removedBy","tree","userID"}; with --verify, for each tree \
      {"contents","keyGenerations","lastNumber","lists","missing","number","readable","records","tree","userID"}, then a node a line: \
      {"cloudID","kind","number","path"?} if it opens, {"cloudID","path"?} if it has old keys

      Exit code 66 if the node is not shared with the user, 1 if --verify finds something that opens.
      """, aliases: ["revoke"])

  @OptionGroup var common: CommonOptions
  @Flag(help: "Replace the keys of all nodes now.")
  var eager = false
  @Flag(help: "Print when the user lost access, and how many nodes still have old keys.")
  var receipt = false
  @Flag(help: "Try the user's old keys on everything written since.")
  var verify = false
  @Flag(help: "Queue the change and return; zdc sync sends it.")
  var queue = false
  @Argument(help: "The other user's ID, or @handle.")
  var user: String
  @Argument(help: "The node, such as home:/lists. Default: the home tree.")
  var path: String?

  func validate() throws {
    guard !queue || !(eager || receipt || verify) else {
      throw ValidationError("--eager, --receipt and --verify need the server; they exclude --queue.")
    }
  }

  func run() async throws {
    try await ShareCommands.unshare(
      common.options, user: user, path: path, isEager: eager, showsReceipt: receipt, verifies: verify, queuesOnly: queue
    )
  }
}

struct Shares: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the members of all shared trees and branches.",
    usage: "zdc shares [options]",
    discussion: """
      EXAMPLES
        zdc shares
        zdc shares --offered

      JSON, one member a line: {"isOwner","permissions","tree","userID"}; with --offered: {"cloudID","ownerID"?}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Ask the server for trees and branches that others share with this account and that are not accepted.")
  var offered = false

  func run() async throws {
    try await ShareCommands.list(common.options, isOffered: offered)
  }
}

struct Accept: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Follow what another user shares with this account.",
    usage: "zdc accept [options] owner [cloudID]",
    discussion: """
      Prints the path, below which other commands find the nodes. Accept something only if its owner told you about it.

      EXAMPLES
        zdc accept $OWNER_ID $CLOUD_ID
        zdc ls "$(zdc accept $OWNER_ID --json | jq -r .path)"

      JSON: {"ownerID","path"}
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "The owner's user ID, or @handle.")
  var owner: String
  @Argument(help: "The shared node's cloudID. Default: the owner's home tree.")
  var cloudID: String?

  func run() async throws {
    try await ShareCommands.accept(common.options, owner: owner, cloudID: cloudID)
  }
}

struct Invite: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print an invitation to a shared node.",
    usage: "zdc invite [options] path",
    discussion: """
      Prints the node's cloudID and its cloud path, for zdc graft. They contain no names and no keys, but send them to the invited user only. \
      The node must be shared already, and below the home tree's root.

      EXAMPLES
        zdc share $USER_ID home:/lists && zdc invite home:/lists

      JSON: {"cloudID","cloudPath","path"}
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "The shared node, such as home:/lists.")
  var path: String

  func run() async throws { try await GraftCommands.invite(common.options, path: path) }
}

struct Graft: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Put a branch that another user shares into this account's tree.",
    usage: "zdc graft [options] cloudID cloudPath path",
    discussion: """
      The branch appears at the path, on all devices of this account. To leave it, use zdc leave. Graft something only if its \
      owner told you about it.

      EXAMPLES
        zdc graft $CLOUD_ID $CLOUD_PATH home:/lists
        zdc leave home:/lists

      JSON: {"cloudID","durableMs"?,"ownerID","path","queuedMs"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Queue the change and return; zdc sync sends it.")
  var queue = false
  @Argument(help: "The first line of the invitation.")
  var cloudID: String
  @Argument(help: "The second line of the invitation.")
  var cloudPath: String
  @Argument(help: "Where to put the branch, such as home:/lists.")
  var path: String

  func run() async throws {
    try await GraftCommands.graft(
      common.options, cloudID: cloudID, cloudPath: cloudPath, path: path, queuesOnly: queue)
  }
}

struct Leave: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Leave a branch or tree of another user, on all devices.",
    usage: "zdc leave [options] path",
    discussion: """
      Removes the branch from this account's tree, and this account from its members. The owner and the other members keep it.

      EXAMPLES
        zdc leave home:/lists

      JSON: {"durableMs"?,"nodes","ownerID","path","queuedMs"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Queue the change and return; zdc sync sends it.")
  var queue = false
  @Argument(help: "The topmost node of the branch, such as home:/lists, or the path that zdc accept printed.")
  var path: String

  func run() async throws { try await LeaveCommand.leave(common.options, path: path, queuesOnly: queue) }
}
