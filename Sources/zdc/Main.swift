import ArgumentParser
import Foundation
import ZDCCommands

/// Parses the command line, runs the command, and turns any error into one message and one exit code.
@main
enum Main {
  static func main() async {
    CoreDumps.disable()
    let command = Task { try await run() }
    // A signal before this line ends the process, as in any program.
    Interruption.begin { command.cancel() }
    do { try await command.value } catch { fail(error) }
  }

  private static func run() async throws {
    var command = try ZDC.parseAsRoot(CommonOptions.moved(Array(CommandLine.arguments.dropFirst())))
    if var command = command as? any AsyncParsableCommand {
      try await command.run()
    } else {
      try command.run()
    }
  }

  private static func fail(_ error: any Error) -> Never {
    if let silent = error as? SilentExit { exit(silent.status.rawValue) }
    // The parser prints help, the version and usage errors itself.
    if ZDC.exitCode(for: error) != .failure || error is ExitCode { ZDC.exit(withError: error) }
    let report = ErrorReport(error)
    let isJSON = CommandLine.arguments.contains("--json")
    let text = isJSON ? (try? Output.json(report.json)) ?? report.text : report.text
    Terminal.writeError(text + "\n")
    exit(report.status.rawValue)
  }
}
