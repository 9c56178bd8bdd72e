import ArgumentParser
import ZDCCommands

/// The program `zdc`.
struct ZDC: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "zdc",
    abstract: "Files in an end-to-end encrypted tree: put, get, sync, and see what the server knows.",
    discussion: """
      Paths in the tree are written home:/a/b, ~/a/b or /a/b. A backslash before a slash makes it part of a name.

      EXAMPLES
        zdc account create --server https://sync.example.org
        zdc put Documents home:/
        zdc tree
        zdc get home:/Documents/letter.txt
        zdc sync --watch

      A profile is one account with one database. --profile NAME or ZDC_PROFILE selects it; settings are in XDG_CONFIG_HOME, data in \
      XDG_DATA_HOME. Secrets are never taken from the command line: they come from a prompt, standard input or a file.

      With --json, results are JSON on standard output, one object a line, and an error is one object on standard error: \
      {"error":{"code","exit","hint"?,"message"}}.

      \(ExitStatus.help)
      """,
    version: "0.1.0",
    subcommands: [
      Account.self, DeviceCommands.self, User.self, List.self, Tree.self, Put.self, Get.self, Move.self, Remove.self,
      Sync.self, Watch.self, Share.self, Unshare.self, Shares.self, Accept.self, Invite.self, Graft.self, Leave.self,
      Send.self, Burn.self, Inbox.self, Status.self, Doctor.self, Explain.self, Journal.self, History.self,
      Restore.self,
      Trash.self, Repair.self, Audit.self,
      Completions.self,
    ])
}

/// The options that all commands accept.
struct CommonOptions: ParsableArguments {
  @Option(
    help: ArgumentHelp(
      "The profile: one account, one database. (default: $ZDC_PROFILE, else \"default\")", valueName: "name"))
  var profile: String?

  @Option(
    help: ArgumentHelp("The server, https://host[:port]. (default: the profile's, else $ZDC_SERVER)", valueName: "url"))
  var server: String?

  @Option(help: ArgumentHelp("Trust the certificates in this PEM file instead of the system's.", valueName: "file"))
  var caFile: String?

  @Option(
    help: ArgumentHelp(
      "Read the passphrase of the profile's database from this file, or - for standard input.", valueName: "file"))
  var passphraseFile: String?

  @Flag(help: "Print JSON.")
  var json = false

  @Flag(name: [.short, .long], help: "Suppress notes and the progress bar.")
  var quiet = false

  @Flag(
    name: [.short, .long],
    help: "Log the framework's activity to standard error; never names, keys or file content.")
  var verbose = false

  /// Moves these options from before the command to after it: `zdc --profile work ls` becomes `zdc ls --profile work`.
  ///
  /// Also handles options after the name of a group: `zdc journal --profile work undo ID`.
  static func moved(_ arguments: [String]) -> [String] {
    var rest = arguments[...]
    var options = taken(from: &rest)
    let group = rest.first.flatMap { groups.contains($0) ? $0 : nil }
    if group != nil {
      rest.removeFirst()
      options += taken(from: &rest)
    }
    guard !options.isEmpty, !rest.isEmpty || group != nil else { return arguments }
    let end = rest.firstIndex(of: "--") ?? rest.endIndex
    return (group.map { [$0] } ?? []) + Array(rest[..<end]) + options + Array(rest[end...])
  }

  private static func taken(from rest: inout ArraySlice<String>) -> [String] {
    var options: [String] = []
    while let argument = rest.first {
      if ["--json", "-q", "--quiet", "-v", "--verbose"].contains(argument)
        || values.contains(where: { argument.hasPrefix($0 + "=") })
      {
        options.append(rest.removeFirst())
      } else if values.contains(argument), rest.count > 1 {
        options += rest.prefix(2)
        rest = rest.dropFirst(2)
      } else {
        break
      }
    }
    return options
  }

  private static let groups = ["account", "devices", "inbox", "journal", "trash", "user"]
  private static let values = ["--profile", "--server", "--ca-file", "--passphrase-file"]

  var output: Output { Output(isJSON: json, isQuiet: quiet) }

  var options: ProfileOptions {
    let environment = Environment.current
    return ProfileOptions(
      name: profile ?? environment["ZDC_PROFILE"].flatMap { $0.isEmpty ? nil : $0 } ?? "default", server: server,
      caFile: caFile, passphraseFile: passphraseFile, isVerbose: verbose, output: output, environment: environment)
  }
}
