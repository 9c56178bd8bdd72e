import ArgumentParser
import ZDCCommands

struct Sync: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Pull and push until nothing is left to do.",
    usage: "zdc sync [options]",
    discussion: """
      With --watch, continues until interrupted and prints each change from other devices, as zdc watch does. One process at a time syncs a \
      profile; it also sends the changes that other processes queue.

      EXAMPLES
        zdc sync
        zdc sync --watch

      Lists the changes that stay queued, with the reason, and the conflicts.

      JSON: {"announced","commits","conflicts":[…as zdc journal],"pushedCommits","pushedOperations","refused":[{"code","times"}],\
      "stuck":[{"code","path"?,"reason"}],"unreadable":[{"cloudID","code","folder"?,"path"?,"sinceMs"}],"waiting"}; with --watch as zdc watch.

      Exit code 75 if changes stay queued, 76 if data from the server failed verification or a tree is frozen: see zdc status and \
      zdc repair.
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Continue until interrupted.")
  var watch = false

  func run() async throws {
    if watch { try await SyncCommand.watch(common.options) } else { try await SyncCommand.once(common.options) }
  }
}

struct Watch: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print each change from other devices as it arrives.",
    usage: "zdc watch [options]",
    discussion: """
      Runs until interrupted. It syncs the profile too, unless another process does so already; it takes over when that process ends.

      EXAMPLES
        zdc watch
        zdc watch --json | jq .path

      JSON, one change a line: {"at","cloudID","event","from"?,"path","size"?} with event new, modified (content), changed (record only), moved, \
      deleted or conflict, and at in milliseconds since 1970; between them {"code"?,"message"?,"status"} with status online, polling, offline or error.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await SyncCommand.changes(common.options)
  }
}

struct Status: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show the queue, the connection and the last pull.",
    usage: "zdc status [options]",
    discussion: """
      Lists the trees that are frozen or may be out of date, and what to do about them. The exit code is 0 all the same; zdc ls and zdc tree \
      exit with 1 then.

      EXAMPLES
        zdc status
        zdc status --json --offline

      JSON: {"connection","engine","frozen":[{"error","path","sinceMs","trunk","zone"}],"lastPullMs"?,"nodes","profile","quarantined","queue":{"byReason","stuck"?:[{"code","path"?,"reason"}],"total"},"securityEvents":{"byCode","lastMs"?,"total"},"server","serverVersion"?,"stalled":[{"error","path","sinceMs","trunk","zone"}],"unreadable":[{"cloudID","code","folder"?,"path"?,"sinceMs"}],"userID"}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Do not ask the server.")
  var offline = false

  func run() async throws {
    try await StatusCommand.run(common.options, isOffline: offline)
  }
}

struct Doctor: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check the connection to the server and suggest fixes.",
    usage: "zdc doctor [options]",
    discussion: """
      Checks the server's address, encryption, both clocks, latency, this device's session, whether a request of 8 MiB reaches the server, and \
      whether events arrive. Changes nothing.

      EXAMPLE
        zdc doctor

      JSON, one finding a line: {"advice"?,"check","finding","verdict"} with verdict passed, warning, failed or skipped.

      Exit code 69 if the server does not answer, 1 if another check failed.
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await DoctorCommand.run(common.options)
  }
}

struct Repair: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List frozen trees, or accept the server's state and send again what it lost.",
    usage: "zdc repair [options]",
    discussion: """
      A tree is frozen when its server presents an impossible history: an older one than before, or a different one. A frozen tree is neither \
      pulled nor pushed; local data stays. Without --accept-server, this command only reports.

      A server restored from a backup looks like this, and so does a dishonest one. If the operator confirms the restore, accept it: zdc \
      verifies the server's history from its beginning, adopts it, and sends again what is missing, if the files that it was put from \
      or fetched to still have the content. zdc status lists uploads whose content is missing. Make a copy first: zdc get home:/ copy.

      EXAMPLES
        zdc repair
        zdc repair --accept-server

      JSON, one frozen tree a line: {"changed"?,"created"?,"deleted"?,"error","sinceMs","trunk","zone"}; the counts after it was accepted.

      Exit code 76 if a tree is frozen and was not accepted, 75 if changes stay queued.
      """)

  @OptionGroup var common: CommonOptions
  @Flag(help: "Accept the server's state, and send again what it lost.")
  var acceptServer = false

  func run() async throws {
    try await RepairCommand.run(common.options, accepts: acceptServer)
  }
}

struct Explain: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Explain why a node is not in sync, and what would change that.",
    usage: "zdc explain [options] path",
    discussion: """
      Shows for each queued change what it waits for, what would unblock it, and the outcome of recent attempts. With --watch, repeats this \
      after each change until interrupted or until the node is deleted. Does not sync.

      EXAMPLES
        zdc explain home:/Documents/letter.txt
        zdc explain home:/Documents/letter.txt --watch --json

      JSON, with --watch a line for each change: {"appErrors"?:[{"at","call","error","times"}],"cloudID","hasContentInCloud",\
      "isAwaitingPull","isInSync","isUploaded","lastSecurityError"?,"lastSecurityErrorAt"?,"nodeID",\
      "operations":[{"attempts","createdAt","detail"?,"history":[{"at","code"?,"outcome","times"}],"kind","notBefore"?,"reason",\
      "uuid","waitsFor","words"}],"path","quarantine"?,"zoneFrozen"?,"zoneStalled"?}
      """)

  @OptionGroup var common: CommonOptions
  @Flag(name: [.long, .customLong("follow")], help: "Continue until interrupted or until the node is deleted.")
  var watch = false
  @Argument(help: "A path in the tree.")
  var path: String

  func run() async throws {
    try await ExplainCommand.run(common.options, path: path, watches: watch)
  }
}

struct Audit: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show exactly what the server holds for this account, field by field.",
    usage: "zdc audit [options]",
    discussion: """
      EXAMPLE
        zdc audit

      JSON, one section a line: {"fields":[{"name","value"}],"meaning"?,"title"}
      """)

  @OptionGroup var common: CommonOptions

  func run() async throws {
    try await AuditCommand.run(common.options)
  }
}

struct Completions: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Print a completion script.",
    discussion: """
      EXAMPLES
        zdc completions bash > ~/.local/share/bash-completion/completions/zdc
        zdc completions zsh > ~/.zfunc/_zdc
        zdc completions fish > ~/.config/fish/completions/zdc.fish
      """)

  @Argument(help: "bash, zsh or fish.")
  var shell: String

  func run() throws {
    guard let shell = CompletionShell(rawValue: shell) else {
      throw ValidationError("Unknown shell; use bash, zsh or fish.")
    }
    Terminal.writeOutput(ZDC.completionScript(for: shell) + "\n")
  }
}
