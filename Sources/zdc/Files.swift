import ArgumentParser
import ZDCCommands

struct List: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "ls", abstract: "List the children of a path.",
    usage: "zdc ls [options] [path]",
    discussion: """
      Shows the local copy of the tree without asking the server; zdc sync updates it. Exit code 1 if some nodes there cannot be read, or if \
      the tree may be out of date because data from the server failed verification; the output says so.

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
      Shows the local copy of the tree without asking the server. The state of a node is synced, queued (waiting to be sent), held (waiting for \
      a decision: zdc explain PATH) or quarantined (its newest version cannot be opened). Exit code 1 if some nodes there cannot be read, or if \
      the tree may be out of date because data from the server failed verification; the output says so.

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
      PATH/ with a trailing slash is the folder to put into; without one, it is the new name. FOLDER/. puts the folder's children. Keeps \
      permission bits and times. Skips symbolic links, sockets and other special files, and zdc's own data, and lists them. A second run sends only files whose \
      size, mode or time changed. A different file of equal size, mode and time counts as unchanged, because the content is not compared; \
      --overwrite sends it. A file that changed in the tree since it \
      was put or got here is replaced only with --overwrite. A folder never replaces a file, nor a file a folder.

      Exit code 1 if a file was left out because it cannot be read, changed on both sides, has a name that is not UTF-8 or is not unique in \
      its folder, or because its place is taken. The output names each one.

      Returns when the server has everything, or immediately with --queue.

      EXAMPLES
        zdc put letter.txt home:/Documents/
        zdc put Photos home:/ --queue
        zdc put Photos/. home:/Pictures --parents
        tar c . | zdc put - home:/backup.tar

      JSON: {"bytes","changes":[{"change","path"}] (of a dry run),"conflicts","created","durableMs"?,"newerInTree","queuedMs","skipped":[{"path","reason"}],"unchanged","updated"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Only queue the change; a later zdc sync sends it.")
  var queue = false
  @Flag(help: "Replace files that are newer or unknown in the tree, and send files of equal size and time again.")
  var overwrite = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be done, without doing it.")
  var dryRun = false
  @Flag(name: [.short, .long], help: "Create missing parent folders.")
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
      throw ValidationError("Several sources need a folder as the target; end the path with a slash.")
    }
  }
}

struct Get: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Get files and folders out of the tree.",
    usage: "zdc get [options] path [target]",
    discussion: """
      TARGET/ with a trailing slash, or no target, is the folder to get into; without a slash, it is the new name; - is standard output. \
      Restores permission bits and times. Overwrites existing files only with --overwrite, which also replaces a different file of equal size \
      and time, but never a folder. Does not fetch unchanged files again, and continues large files where an interrupted run stopped. Changes \
      names that are not safe on this machine, and reports them.

      Exit code 1 if a file was left out because a different local file exists, or because its content is not in the cloud, failed \
      verification or cannot be written; the output names each one. 76 if the tree from the server failed verification.

      EXAMPLES
        zdc get home:/Documents
        zdc get home:/Documents/letter.txt copy.txt
        zdc get home:/ restored/ --overwrite
        zdc get home:/backup.tar - | tar x

      JSON, with --dry-run: a line {"change","path"} for each file, change being new, replaced, left or missing; else \
      {"bytes","exists","failed":[{"code","message","path"}],"files","folders","renamed":[{"file","name"}],"unchanged","withoutContent"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Replace local files that differ.")
  var overwrite = false
  @Flag(help: "Use names that are safe on every platform: no a:b, no CON, no dot at the end.")
  var portableNames = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be fetched, without fetching it.")
  var dryRun = false
  @Flag(help: "Do not pull first.")
  var offline = false
  @Argument(help: "A path in the tree.")
  var path: String
  @Argument(help: "Destination.")
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
    commandName: "mv", abstract: "Move or rename a node with its descendants.",
    usage: "zdc mv [options] source target",
    discussion: """
      Returns when the server has the change, or immediately with --queue.

      EXAMPLES
        zdc mv home:/letter.txt home:/Documents/
        zdc mv home:/Documents home:/Papers

      JSON: {"durableMs"?,"from","path","queuedMs"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Only queue the change; a later zdc sync sends it.")
  var queue = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be done, without doing it.")
  var dryRun = false
  @Argument(help: "The node to move.")
  var source: String
  @Argument(help: "The new path; with a trailing slash, the folder to move it into.")
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
      Returns when the server has the change, or immediately with --queue.

      EXAMPLES
        zdc rm home:/letter.txt
        zdc rm --recursive home:/Documents

      JSON, one node a line: {"durableMs"?,"nodes","path","queuedMs"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(name: [.short, .long], help: "Also remove descendants.")
  var recursive = false
  @Flag(help: "Only queue the change; a later zdc sync sends it.")
  var queue = false
  @Flag(name: [.customShort("n"), .long], help: "Show what would be done, without doing it.")
  var dryRun = false
  @Argument(help: "Paths in the tree.")
  var paths: [String]

  func run() async throws {
    try await ChangeCommands.remove(
      common.options, paths: paths, recursive: recursive, queuesOnly: queue, isDryRun: dryRun)
  }
}
