import ArgumentParser
import Foundation

/// `zdc-server config`.
struct Config: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Check a configuration file.", subcommands: [ConfigCheck.self])
}

struct ConfigCheck: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "check",
    abstract: "Check a configuration file for zdc-server serve --config. Starts nothing.",
    discussion: """
      Checks the names and values of all options, and that the files that they name exist. Addresses, the data folder, the \
      database and the bucket are not opened. Prints the options as arguments of the command line.

      EXAMPLES
        zdc-server config check /etc/zdc-server.json

      \(ExitStatus.help)
      """)

  @Argument(help: "The file.")
  var file: String

  func run() throws {
    do {
      let arguments = try ConfigurationFile(path: file).arguments(beside: [], environment: [:])
      try check(arguments)
      for argument in arguments { print(Self.shown(argument)) }
    } catch let failure as Failure {
      failure.report()
      throw failure.status.code
    }
  }

  private func check(_ arguments: [String]) throws {
    let serve: Serve
    do { serve = try Serve.parse(arguments) } catch {
      throw Failure(.usage, "\(file): \(Serve.message(for: error))")
    }
    try serve.check()
  }

  /// Hides the password of a database, which only its user should see.
  private static func shown(_ argument: String) -> String {
    let prefix = "--database="
    guard argument.hasPrefix(prefix), var parts = URLComponents(string: String(argument.dropFirst(prefix.count))),
      parts.password != nil
    else { return argument }
    parts.password = "…"
    return prefix + (parts.string ?? "…")
  }
}
