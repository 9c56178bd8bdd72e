import ArgumentParser
import Foundation
import ZDCCommands

/// Parses, runs, and turns whatever goes wrong into one message and one exit code.
@main
enum Main {
  static func main() async {
    CoreDumps.disable()
    let command = Task { try await run() }
    let signals = Interruption { command.cancel() }
    defer { signals.end() }
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
    // Help, version and wrong command lines are the parser's own.
    if ZDC.exitCode(for: error) != .failure || error is ExitCode { ZDC.exit(withError: error) }
    let report = ErrorReport(error)
    let isJSON = CommandLine.arguments.contains("--json")
    let text = isJSON ? (try? Output.json(report.json)) ?? report.text : report.text
    Terminal.writeError(text + "\n")
    exit(report.status.rawValue)
  }
}

/// SIGINT and SIGTERM cancel the command, which then tidies up; a second one ends it at once.
final class Interruption {
  private let sources: [any DispatchSourceSignal]

  init(_ cancel: @escaping @Sendable () -> Void) {
    sources = [SIGINT, SIGTERM].map { number in
      signal(number, SIG_IGN)
      let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
      source.setEventHandler {
        cancel()
        signal(number, SIG_DFL)
      }
      source.resume()
      return source
    }
  }

  func end() {
    for source in sources { source.cancel() }
  }
}
