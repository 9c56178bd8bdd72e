import ArgumentParser
import ZDCCommands

struct User: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show other users, compare identities, block, choose the own name.",
    subcommands: [
      ListUsers.self, Show.self, Name.self, Verify.self, Accept.self, Block.self, Unblock.self,
    ])
}

extension User {
  struct ListUsers: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the users whom this profile has met.",
      usage: "zdc user list [options]",
      discussion: """
        EXAMPLE
          zdc user list

        JSON, one user a line: {"isBlocked","isLocal","name"?,"state","userID"} with state seen, verified, changed or closed.
        """)

    @OptionGroup var common: CommonOptions

    func run() async throws { try await Users.list(common.options) }
  }

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show a user with the safety number, or the own account with the code that others scan.",
      usage: "zdc user show [options] [user]",
      discussion: """
        Fetches the user's signed chain of keys and verifies that it continues the one that this profile knows. The state is seen, verified \
        (compared by you), changed (the user has new words since then) or closed. The name is what the user calls themselves, if this profile \
        shares with them: anyone can choose any name.

        EXAMPLES
          zdc user show
          zdc user show USER-ID

        JSON: {"code"?,"isBlocked","isLocal","name"?,"safetyNumber"?,"state","userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The user's ID; without it, the own account.")
    var user: String?

    func run() async throws { try await Users.show(common.options, userID: user) }
  }

  struct Name: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Choose the own name and avatar.",
      usage: "zdc user name [options] name [--avatar file]",
      discussion: """
        The people with whom this account shares get both, sealed; the server sees neither. The name has at most 256 bytes, the avatar 32 KiB. \
        Both are replaced: without --avatar, the old one goes, and an empty name takes the name back.

        EXAMPLES
          zdc user name Alice
          zdc user name Alice --avatar alice.jpg
          zdc user name ""

        JSON: {"avatarBytes","durableMs"?,"name","queuedMs","userID"}

        Exit code 75 if the change is still queued.
        """)

    @OptionGroup var common: CommonOptions
    @Option(help: ArgumentHelp("An image file.", valueName: "file"))
    var avatar: String?
    @Flag(help: "Only queue the change; zdc sync sends it.")
    var queue = false
    @Argument(help: "The name that others see.")
    var name: String

    func run() async throws {
      try await OwnProfile.set(common.options, name: name, avatar: avatar, queuesOnly: queue)
    }
  }

  struct Verify: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Verify a user, after comparing the safety number or with a scanned code.",
      usage: "zdc user verify [options] user",
      discussion: """
        Shows the 60 digits of the safety number and asks whether the other side shows the same: compare them in person or on the phone. \
        --code takes the text of the code that the other side shows (zdc user show) instead.

        EXAMPLES
          zdc user verify USER-ID
          zdc user verify USER-ID --code zdcid:1:TEXT

        JSON: {"isBlocked","isLocal","name"?,"state","userID"}

        Exit code 76 if the code is of another user or does not match what the server shows.
        """)

    @OptionGroup var common: CommonOptions
    @Option(help: ArgumentHelp("The text of the code that the user shows.", valueName: "text"))
    var code: String?
    @Flag(help: "The safety number was compared; do not ask.")
    var yes = false
    @Argument(help: "The user's ID.")
    var user: String

    func run() async throws {
      try await Users.verify(common.options, userID: user, scanned: code, isConfirmed: yes)
    }
  }

  struct Accept: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Accept that a verified user has new words, without comparing again.",
      usage: "zdc user accept [options] user",
      discussion: """
        The user then counts as seen. To compare instead: zdc user verify.

        EXAMPLE
          zdc user accept USER-ID

        JSON: {"isBlocked","isLocal","name"?,"state","userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The user's ID.")
    var user: String

    func run() async throws { try await Users.accept(common.options, userID: user) }
  }

  struct Block: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Block a user on this device.",
      usage: "zdc user block [options] user",
      discussion: """
        EXAMPLE
          zdc user block USER-ID

        JSON: {"isBlocked","isLocal","name"?,"state","userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The user's ID.")
    var user: String

    func run() async throws { try await Users.setBlocked(common.options, userID: user, true) }
  }

  struct Unblock: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Unblock a user on this device.",
      usage: "zdc user unblock [options] user",
      discussion: """
        EXAMPLE
          zdc user unblock USER-ID

        JSON: {"isBlocked","isLocal","name"?,"state","userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The user's ID.")
    var user: String

    func run() async throws { try await Users.setBlocked(common.options, userID: user, false) }
  }
}
