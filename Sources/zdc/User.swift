import ArgumentParser
import ZDCCommands

struct User: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Find other users, compare identities, block them, set your name and handle.",
    subcommands: [
      ListUsers.self, Find.self, Show.self, Name.self, SetHandle.self, Verify.self, Accept.self, Block.self,
      Unblock.self,
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

        JSON, one user a line: {"handle"?,"isBlocked","isLocal","name"?,"state","userID"} with state seen, verified, changed or closed.
        """)

    @OptionGroup var common: CommonOptions

    func run() async throws { try await Users.list(common.options) }
  }

  struct Find: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Find users by the beginning of their handles.",
      usage: "zdc user find [options] text",
      discussion: """
        Shows the first 20 users of the server whose handles begin with the text, which has at least three characters. A handle does \
        not prove who a user is: compare safety numbers with zdc user verify.

        EXAMPLE
          zdc user find bob

        JSON, one user a line: {"handle","isBlocked","isLocal","name"?,"state","userID"}

        Exit code 0 even if no handle matches.
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The beginning of a handle, with or without @.")
    var text: String

    func run() async throws { try await Users.find(common.options, beginning: text) }
  }

  struct SetHandle: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "handle", abstract: "Set your handle, by which others find this account.",
      usage: "zdc user handle [options] [handle] [--remove]",
      discussion: """
        A handle has 3 to 32 letters (a to z), digits and single separators (. _ -), and begins with a letter. It is public: the server and \
        all of its users see it. Other commands take @handle in place of a user ID. The previous handle stays reserved for this \
        account for 30 days.

        EXAMPLES
          zdc user handle alice
          zdc user handle --remove

        JSON: {"handle"?,"isBlocked","isLocal","name"?,"state","userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Flag(help: "Remove your handle.")
    var remove = false
    @Argument(help: "The new handle.")
    var handle: String?

    func validate() throws {
      guard remove == (handle == nil) else { throw ValidationError("Give either a handle or --remove.") }
    }

    func run() async throws { try await Users.setHandle(common.options, handle) }
  }

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show a user and their safety number, or your own account and its code for others to scan.",
      usage: "zdc user show [options] [user]",
      discussion: """
        Fetches the user's signed chain of keys and verifies that it continues the one that this profile knows. The state is seen, verified \
        (compared by you), changed (the user has new words since then) or closed. The name is what the user calls themselves, if this profile \
        shares with them: anyone can choose any name.

        EXAMPLES
          zdc user show
          zdc user show USER-ID
          zdc user show @bob

        JSON: {"code"?,"handle"?,"isBlocked","isLocal","name"?,"safetyNumber"?,"state","userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The user's ID, or @handle; without it, your own account.")
    var user: String?

    func run() async throws { try await Users.show(common.options, userID: user) }
  }

  struct Name: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Set your name and avatar.",
      usage: "zdc user name [options] name [--avatar file]",
      discussion: """
        The people with whom this account shares get both, sealed; the server sees neither. The name has at most 256 bytes, the avatar 32 KiB. \
        Both are replaced: without --avatar, the old avatar is removed, and an empty name removes the name.

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

        JSON: {"handle"?,"isBlocked","isLocal","name"?,"state","userID"}

        Exit code 76 if the code is of another user or does not match what the server shows.
        """)

    @OptionGroup var common: CommonOptions
    @Option(help: ArgumentHelp("The text of the code that the user shows.", valueName: "text"))
    var code: String?
    @Flag(help: "The safety number was compared; do not ask.")
    var yes = false
    @Argument(help: "The user's ID, or @handle.")
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

        JSON: {"handle"?,"isBlocked","isLocal","name"?,"state","userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The user's ID, or @handle.")
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

        JSON: {"handle"?,"isBlocked","isLocal","name"?,"state","userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The user's ID, or @handle.")
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

        JSON: {"handle"?,"isBlocked","isLocal","name"?,"state","userID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The user's ID, or @handle.")
    var user: String

    func run() async throws { try await Users.setBlocked(common.options, userID: user, false) }
  }
}
