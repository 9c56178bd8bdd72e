import ArgumentParser
import ZDCCommands

struct Journal: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show what became of changes that met changes of others, and take a decision back.",
    discussion: """
      Where two devices change the same, one change gives way. Each time a line is written: what both began with, what was here, what was
      in the cloud, and what it is now. The journal is on this device only and keeps the newest 1,000 entries of the last 90 days.

      EXAMPLES
        zdc journal
        zdc journal show 3f2a91c0
        zdc journal undo 3f2a91c0
      """,
    subcommands: [Entries.self, Show.self, Undo.self], defaultSubcommand: Entries.self)
}

extension Journal {
  struct Entries: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the entries, newest first.",
      usage: "zdc journal list [options] [path]",
      discussion: """
        EXAMPLES
          zdc journal list
          zdc journal list home:/Documents/letter.txt --limit 10

        JSON, one entry a line: {"at","canUndo","cloudID","id","kind","nodeID","path"?,"undoneAt"?,"writer"?} with kind merged, cloudWon,
        renamed, moveDropped, deletedInCloud or deletedHere.
        """)

    @OptionGroup var common: CommonOptions
    @Option(help: "At most so many.")
    var limit: Int?
    @Argument(help: "Of this node only.")
    var path: String?

    func run() async throws {
      if let limit, limit < 1 { throw ValidationError("--limit is at least 1.") }
      try await JournalCommand.list(common.options, path: path, limit: limit)
    }
  }

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show one entry: both sides, and what they became.",
      usage: "zdc journal show [options] id",
      discussion: """
        EXAMPLE
          zdc journal show 3f2a91c0

        JSON: as in the list, and "base","mine","theirs","result", each {"cloudID"?,"eTag"?,"isDeleted","path"?}, "isShortened", and
        "conflicts":[{"base"?,"kind","mine"?,"path","result"?,"theirs"?}] with values as JSON text. Exit code 66 if there is no such entry.
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The entry's id, or a beginning of it that no other one has.")
    var id: String

    func run() async throws {
      try await JournalCommand.show(common.options, id: id)
    }
  }

  struct Undo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Take a decision back: what had given way wins.",
      usage: "zdc journal undo [options] id",
      discussion: """
        A node that got another name gets its own, and the other one the number; where two contents met, the two files change names; a dropped
        move is made; a file that was kept although others had deleted it is deleted (a folder only if it is empty). Returns when the server has it, or with --queue at once.

        EXAMPLE
          zdc journal undo 3f2a91c0

        JSON: {"done","durableMs"?,"id","kind","otherPath"?,"path"?,"queuedMs"}
        Exit code 64 if there is nothing to take back or it was done before, 66 if there is no such entry or its place is gone, 73 if its
        name is taken.
        """)

    @OptionGroup var common: CommonOptions
    @Flag(help: "Only queue; a later zdc sync sends.")
    var queue = false
    @Argument(help: "The entry's id, or a beginning of it that no other one has.")
    var id: String

    func run() async throws {
      try await JournalCommand.undo(common.options, id: id, queuesOnly: queue)
    }
  }
}
