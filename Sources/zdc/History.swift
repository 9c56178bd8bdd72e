import ArgumentParser
import Foundation
import ZDCCommands

struct History: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the earlier versions of a node that the server keeps.",
    usage: "zdc history [options] path",
    discussion: """
      A version begins with each change of the node: its content, its name or its place. The list is checked against the signed log, newest \
      first; number 1 is the version before the newest one. The server keeps a version for 30 days after it was replaced, unless its operator \
      has chosen otherwise, and releases content earlier where the account is full.

      EXAMPLES
        zdc history home:/Documents/letter.txt
        zdc restore home:/Documents/letter.txt --version 2

      JSON, one version a line: {"author","date","id","isContentKept","keptUntil"?,"name","number","replacedAt","replacedBy","size"?}
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: "Maximum number of versions.")
  var limit = 100
  @Argument(help: "A path in the tree.")
  var path: String

  func run() async throws {
    if limit < 1 { throw ValidationError("--limit must be at least 1.") }
    try await HistoryCommands.history(common.options, path: path, limit: limit)
  }
}

struct Restore: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Make an earlier version the newest one, or restore a deleted node.",
    usage: "zdc restore [options] path",
    discussion: """
      If the node is there, it gets the content of an earlier version: the newest one with other content, or the one that --version or --as-of \
      names. Name and place stay. The content that it has now becomes an earlier version. If the node is deleted, it is created again, with all \
      nodes that were deleted with it. No content is downloaded or sent. Returns when the server has the change, or immediately with --queue.
      With --to, the version is written to a new file instead, and the tree stays as it is.

      EXAMPLES
        zdc restore home:/Documents/letter.txt
        zdc restore home:/Documents/letter.txt --as-of 2026-11-20
        zdc restore home:/Documents/letter.txt --version 2 --to before.txt
        zdc restore home:/Photos

      JSON: {"durableMs"?,"left","nodes","path","queuedMs","version"?}; with --to: {"bytes","file","path","version"}

      Exit code 1 if nodes of a deleted folder are no longer kept, 66 if there is no such node or version, 73 if the folder of a deleted node is \
      gone or the file exists, 76 if the server does not deliver what it lists.
      """)

  @OptionGroup var common: CommonOptions
  @Option(help: ArgumentHelp("The version's number in zdc history.", valueName: "number"))
  var version: Int?
  @Option(
    help: ArgumentHelp(
      "The version that was the newest at that time: 2026-11-20 or 2026-11-20T18:30:00Z.", valueName: "date"))
  var asOf: String?
  @Option(
    help: ArgumentHelp(
      "Write the version to this new file, or - for standard output, instead of restoring it.", valueName: "file"))
  var to: String?
  @Flag(help: "Only queue the change; a later zdc sync sends it.")
  var queue = false
  @Argument(help: "A path in the tree.")
  var path: String

  func run() async throws {
    if let to {
      guard !queue else { throw ValidationError("--to and --queue exclude each other.") }
      return try await VersionCopy(path: path, choice: try choice(), destination: to).run(common.options)
    }
    try await HistoryCommands.restore(common.options, path: path, try choice(), queuesOnly: queue)
  }

  private func choice() throws -> HistoryCommands.Choice {
    guard version == nil || asOf == nil else { throw ValidationError("--version and --as-of exclude each other.") }
    if let version {
      guard version > 0 else { throw ValidationError("--version must be at least 1.") }
      return .number(version)
    }
    return try asOf.map { .asOf(try Self.date($0)) } ?? .newest
  }

  /// A date without a time is its end in UTC, so that it includes the changes of that day.
  private static func date(_ text: String) throws -> Date {
    if let date = try? Date(text, strategy: .iso8601) { return date }
    if let day = try? Date("\(text)T00:00:00Z", strategy: .iso8601) { return day.addingTimeInterval(86_400) }
    throw ValidationError("--as-of takes a date such as 2026-11-20 or 2026-11-20T18:30:00Z.")
  }
}

struct Trash: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List and restore deleted nodes.",
    discussion: """
      The server keeps deleted nodes for 30 days, unless its operator has chosen otherwise, and releases content earlier where the account is \
      full. They cannot be discarded earlier, so that a stolen device cannot destroy them.

      EXAMPLES
        zdc trash
        zdc trash restore 8k3n
      """,
    subcommands: [Entries.self, RestoreEntry.self], defaultSubcommand: Entries.self)
}

extension Trash {
  struct Entries: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the deleted nodes that the server keeps, newest deletion first.",
      usage: "zdc trash list [options]",
      discussion: """
        Nodes that were deleted with a node above them are counted in its line.

        EXAMPLE
          zdc trash list --limit 10

        JSON, one node a line: {"cloudID","deletedAt","deletedBy","id","isKept","keptUntil"?,"nodes","path","size"?}
        """)

    @OptionGroup var common: CommonOptions
    @Option(help: "Maximum number of nodes.")
    var limit = 100

    func run() async throws {
      if limit < 1 { throw ValidationError("--limit must be at least 1.") }
      try await HistoryCommands.trash(common.options, limit: limit)
    }
  }

  struct RestoreEntry: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "restore", abstract: "Create a deleted node again, with all nodes that were deleted with it.",
      usage: "zdc trash restore [options] id",
      discussion: """
        The node returns to its folder, or to the one that --into names, under its name or the next free one. Returns when the server has the \
        change, or immediately with --queue.

        EXAMPLES
          zdc trash restore 8k3n
          zdc trash restore 8k3n --into home:/Documents

        JSON: {"durableMs"?,"left","nodes","path","queuedMs"}

        Exit code 1 if nodes that were deleted with it are no longer kept, 66 if there is no such entry, 73 if its folder is gone, 76 if the \
        server does not deliver what it lists.
        """)

    @OptionGroup var common: CommonOptions
    @Option(help: ArgumentHelp("Another folder, in the same branch.", valueName: "path"))
    var into: String?
    @Flag(help: "Only queue the change; a later zdc sync sends it.")
    var queue = false
    @Argument(help: "The entry's id, or a prefix of it.")
    var id: String

    func run() async throws {
      try await HistoryCommands.restore(common.options, id: id, into: into, queuesOnly: queue)
    }
  }
}
