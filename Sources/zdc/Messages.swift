import ArgumentParser
import ZDCCommands

struct Send: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Send a message to other users.",
    usage: "zdc send [options] user... [--text text]",
    discussion: """
      The text comes from --text or from standard input. It is sealed for each recipient separately; a copy stays in the outbox. Returns when \
      the server has it for all recipients.

      EXAMPLES
        zdc send $USER_ID --text "the list is in home:/list"
        date | zdc send $USER_ID $OTHER_ID

      With --queue, the server is asked only about users whom this device has not met.

      JSON: {"durableMs"?,"id","queuedMs","recipients"}

      Exit code 66 if the server does not know a user, 69 if it has to be asked and cannot be reached, 75 if the message is still queued, for instance because a mailbox is full.
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: ArgumentHelp("The message; without it, standard input.", valueName: "text"))
  var text: String?
  @Flag(help: "Queue the message and return; zdc sync sends it.")
  var queue = false
  @Argument(help: "The recipients' user IDs, or @handles.")
  var user: [String]

  func run() async throws {
    try await MessageCommands.send(common.options, recipients: user, text: text, queuesOnly: queue)
  }
}

struct Burn: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Delete a sent message, and ask its recipients' devices to delete it.",
    usage: "zdc burn [options] id",
    discussion: """
      The recipients may have read or copied the message before, and an altered client may keep it.

      EXAMPLE
        zdc burn 8k3n

      JSON: {"id"}

      Exit code 66 if the outbox has no such message, 75 if a request is still queued.
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "The message's id, as zdc send --json prints it, or a unique prefix of it.")
  var id: String

  func run() async throws { try await MessageCommands.burn(common.options, id: id) }
}

struct Inbox: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List and show messages, accept or decline senders.",
    subcommands: [ListMessages.self, Show.self, Requests.self, Accept.self, Decline.self],
    defaultSubcommand: ListMessages.self)
}

extension Inbox {
  struct ListMessages: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the messages in the inbox, oldest first.",
      usage: "zdc inbox list [options]",
      discussion: """
        Messages of users whom this account has written to, accepted, or shares a tree with. For others see zdc inbox requests.

        EXAMPLES
          zdc inbox
          zdc inbox list --json | jq -r .senderID

        Messages that no device of this account has shown yet are marked "unread".

        JSON, one message a line: {"date"?,"id","isRead","senderID","size"}
        """)

    @OptionGroup var common: CommonOptions

    func run() async throws { try await MessageCommands.list(common.options) }
  }

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Write a message to standard output, and mark it as read.",
      usage: "zdc inbox show [options] id",
      discussion: """
        EXAMPLE
          zdc inbox show 8k3n

        Exit code 66 if there is no such message.
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The message's id, or a unique prefix of it.")
    var id: String

    func run() async throws { try await MessageCommands.show(common.options, id: id) }
  }

  struct Requests: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "List messages that wait at the server for your decision.",
      usage: "zdc inbox requests [options]",
      discussion: """
        Messages of unknown users are downloaded only after you accept the sender. The server deletes them after 30 days.

        A message of a known user is marked "compromised key" if the user has since declared the key that signed it compromised. Anyone \
        with that key may have written the message. Ask the user before you accept it; zdc inbox decline deletes it.

        EXAMPLE
          zdc inbox requests

        JSON, one message a line: {"date","id","isKeyCompromised","senderID","size"}
        """)

    @OptionGroup var common: CommonOptions

    func run() async throws { try await MessageCommands.requests(common.options) }
  }

  struct Accept: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Accept the messages of a user, those that wait and later ones.",
      usage: "zdc inbox accept [options] user",
      discussion: """
        EXAMPLE
          zdc inbox accept $USER_ID

        JSON: {"senderID"}
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The sender's user ID, or @handle.")
    var user: String

    func run() async throws { try await MessageCommands.accept(common.options, sender: user) }
  }

  struct Decline: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Delete the messages of a user that wait at the server.",
      usage: "zdc inbox decline [options] user",
      discussion: """
        EXAMPLES
          zdc inbox decline $USER_ID
          zdc inbox decline $USER_ID --block

        JSON: {"senderID"}
        """)

    @OptionGroup var common: CommonOptions
    @Flag(help: "Also refuse all later messages of the user.")
    var block = false
    @Argument(help: "The sender's user ID, or @handle.")
    var user: String

    func run() async throws {
      try await MessageCommands.decline(common.options, sender: user, isBlocking: block)
    }
  }
}
