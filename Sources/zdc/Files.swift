import ArgumentParser
import ZDCCommands

struct List: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List what is below a path.",
    usage: "zdc ls [options] [path]",
    discussion: """
      Shows the local copy of the tree and asks no server; zdc sync brings it up to date. Exit code 1 if nodes there cannot be read; their
      folder is named.

      EXAMPLES
        zdc ls
        zdc ls -l home:/Documents

      JSON, one node a line: {"cloudID","dataVersion"?,"kind"?,"mode"?,"modified"?,"name","path","size"?,"state","version"?}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(name: [.customShort("l"), .long], help: "Show mode, size, time and state.")
  var long = false
  @Argument(help: "A path in the tree.")
  var path = "home:/"

  func run() async throws {
    try await ListCommands.list(common.options, path: path, long: long)
  }
}

struct Tree: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show a branch of the tree.",
    usage: "zdc tree [options] [path]",
    discussion: """
      Shows the local copy of the tree and asks no server. The state of a node is synced, queued (it waits for its turn), held (it waits for a
      decision: zdc explain PATH) or quarantined (its newest version cannot be opened). Exit code 1 if nodes there cannot be read; their
      folder is named.

      EXAMPLES
        zdc tree
        zdc tree home:/Documents --json

      JSON, one node a line, parents first: {"cloudID","dataVersion"?,"kind"?,"mode"?,"modified"?,"name","path","size"?,"state","version"?}
      """)

  @OptionGroup var common: CommonOptions
  @Argument(help: "A path in the tree.")
  var path = "home:/"

  func run() async throws {
    try await ListCommands.tree(common.options, path: path)
  }
}

struct Put: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Put files and folders into the tree.",
    usage: "zdc put [options] source ... path",
    discussion: """
      PATH/ with a slash at its end is the folder to put into; without one it is the new name. A folder given as FOLDER/. puts what is in it.
      Permission bits and times go along. Symbolic links, sockets and the like are skipped and named. A second run sends only files whose
      size, mode or time changed; --overwrite also sends another file of equal size and time. What changed in the tree since it was put or
      got here is not replaced without --overwrite. A folder never replaces a file, nor a file a folder.

      Exit code 1 if something was left out: it cannot be read, changed on both sides, has a name that is not UTF-8 or that another one
      in its folder has, or its place is taken. All of it is named.

      Returns when the server has everything, or with --queue at once.

      EXAMPLES
        zdc put letter.txt home:/Documents/
        zdc put Photos home:/ --queue
        zdc put Photos/. home:/Pictures --parents
        tar c . | zdc put - home:/backup.tar

      JSON: {"bytes","changes":[{"change","path"}] (of a dry run),"conflicts","created","durableMs"?,"newerInTree","queuedMs","skipped":[{"path","reason"}],"unchanged","updated"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Only queue; a later zdc sync sends.")
  var queue = false
  @Flag(help: "Replace files that are newer or unknown in the tree, and send files of equal size and time again.")
  var overwrite = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be done, and do nothing.")
  var dryRun = false
  @Flag(name: [.short, .long], help: "Make missing folders on the way.")
  var parents = false
  @Argument(
    help: ArgumentHelp(
      "Files and folders, or - for standard input; then the path in the tree.", valueName: "source ... path"))
  var arguments: [String]

  func run() async throws {
    let command = PutCommand(
      sources: sources, destination: arguments.count > 1 ? arguments.last : nil, queuesOnly: queue,
      overwrites: overwrite,
      makesParents: parents, isDryRun: dryRun)
    try await command.run(common.options)
  }

  private var sources: [String] { arguments.count > 1 ? Array(arguments.dropLast()) : arguments }

  func validate() throws {
    guard sources.count <= 1 || arguments.last?.hasSuffix("/") ?? false else {
      throw ValidationError("Several sources need a folder as their target: end the path with a slash.")
    }
  }
}

struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Get files and folders out of the tree.",
    usage: "zdc get [options] path [target]",
    discussion: """
      TARGET/ with a slash at its end, or none, is the folder to get into; without a slash it is the new name; - is standard output. Permission
      bits and times are restored. Existing files are not overwritten without --overwrite; what is here already is not fetched again. Names
      that are not safe on this machine are changed and named.

      Exit code 1 if something was left out, which is named: a file that is here and differs, or a content that is not in the cloud, does
      not verify or cannot be written. 76 if the tree itself could not be read as the server sent it.

      EXAMPLES
        zdc get home:/Documents
        zdc get home:/Documents/letter.txt copy.txt
        zdc get home:/ restored/ --overwrite
        zdc get home:/backup.tar - | tar x

      JSON, with --dry-run: a line {"change","path"} for each file, change being new, replaced, left or missing; else
      {"bytes","exists","failed":[{"code","message","path"}],"files","folders","renamed":[{"file","name"}],"unchanged","withoutContent"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Replace files that are here and differ.")
  var overwrite = false
  @Flag(help: "Use names that are safe on every platform: no a:b, no CON, no dot at the end.")
  var portableNames = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be done, and fetch nothing.")
  var dryRun = false
  @Flag(help: "Do not pull first.")
  var offline = false
  @Argument(help: "A path in the tree.")
  var path: String
  @Argument(help: "Where to.")
  var target: String?

  func run() async throws {
    let command = GetCommand(
      path: path, destination: target, overwrites: overwrite, policy: portableNames ? .portable : .native,
      isOffline: offline, isDryRun: dryRun)
    try await command.run(common.options)
  }
}

struct Move: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mv", abstract: "Move or rename a node with all that is below it.",
    usage: "zdc mv [options] source target",
    discussion: """
      Returns when the server has it, or with --queue at once.

      EXAMPLES
        zdc mv home:/letter.txt home:/Documents/
        zdc mv home:/Documents home:/Papers

      JSON: {"durableMs"?,"from","path","queuedMs"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Only queue; a later zdc sync sends.")
  var queue = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be done, and do nothing.")
  var dryRun = false
  @Argument(help: "The node.")
  var source: String
  @Argument(help: "Its new path; with a slash at the end, the folder that it goes into.")
  var target: String

  func run() async throws {
    try await ChangeCommands.move(common.options, from: source, to: target, queuesOnly: queue, isDryRun: dryRun)
  }
}

struct Remove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "rm", abstract: "Remove nodes from the tree, on all devices.",
    usage: "zdc rm [options] path ...",
    discussion: """
      Returns when the server has it, or with --queue at once.

      EXAMPLES
        zdc rm home:/letter.txt
        zdc rm --recursive home:/Documents

      JSON, one node a line: {"durableMs"?,"nodes","path","queuedMs"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(name: [.short, .long], help: "Also what is below.")
  var recursive = false
  @Flag(help: "Only queue; a later zdc sync sends.")
  var queue = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be done, and do nothing.")
  var dryRun = false
  @Argument(help: "Paths in the tree.")
  var paths: [String]

  func run() async throws {
    try await ChangeCommands.remove(
      common.options, paths: paths, recursive: recursive, queuesOnly: queue, isDryRun: dryRun)
  }
}
