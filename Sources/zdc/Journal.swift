import ArgumentParser
import ZDCCommands

struct Journal: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List conflicts and how they were resolved, or undo a resolution.",
    discussion: """
      When two devices change the same thing, one change wins. The journal records each such conflict: the common base, the local version, \
      the version in the cloud, and the result. It stays on this device and keeps the newest 1,000 entries of the last 90 days.

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

        JSON, one entry a line: {"at","canUndo","cloudID","id","kind","nodeID","path"?,"undoneAt"?,"writer"?} with kind merged, cloudWon, \
        renamed, moveDropped, deletedInCloud or deletedHere.
        """)

    @OptionGroup var common: CommonOptions
    @Option(help: "Maximum number of entries.")
    var limit: Int?
    @Argument(help: "Only entries for this node.")
    var path: String?

    func run() async throws {
      if let limit, limit < 1 { throw ValidationError("--limit must be at least 1.") }
      try await JournalCommand.list(common.options, path: path, limit: limit)
    }
  }

  struct Show: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Show one entry: both versions and the result.",
      usage: "zdc journal show [options] id",
      discussion: """
        EXAMPLE
          zdc journal show 3f2a91c0

        JSON: as in the list, and "base","mine","theirs","result", each {"cloudID"?,"eTag"?,"isDeleted","path"?}, "isShortened", and \
        "conflicts":[{"base"?,"kind","mine"?,"path","result"?,"theirs"?}] with values as JSON text. Exit code 66 if there is no such entry.
        """)

    @OptionGroup var common: CommonOptions
    @Argument(help: "The entry's id, or a unique prefix of it.")
    var id: String

    func run() async throws {
      try await JournalCommand.show(common.options, id: id)
    }
  }

  struct Undo: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Undo a resolution: the version that lost wins.",
      usage: "zdc journal undo [options] id",
      discussion: """
        A renamed node gets its name back, and the other node gets the number. Two versions of a file swap their names. A dropped move is repeated. \
        A file that was kept although another device deleted it is deleted; a folder only if it is empty. Returns when the server has the \
        change, or immediately with --queue.

        EXAMPLE
          zdc journal undo 3f2a91c0

        JSON: {"done","durableMs"?,"id","kind","otherPath"?,"path"?,"queuedMs"}

        Exit code 64 if there is nothing to undo or it is already undone, 66 if the entry or its place does not exist, 73 if its name is \
        taken.
        """)

    @OptionGroup var common: CommonOptions
    @Flag(help: "Only queue the change; a later zdc sync sends it.")
    var queue = false
    @Argument(help: "The entry's id, or a unique prefix of it.")
    var id: String

    func run() async throws {
      try await JournalCommand.undo(common.options, id: id, queuesOnly: queue)
    }
  }
}
