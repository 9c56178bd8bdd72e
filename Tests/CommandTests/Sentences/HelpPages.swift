import Foundation
import Testing

/// The help of both programs and of all their commands, as the programs print it.
enum HelpPages {
  struct Page {
    var command: String
    var text: String
  }

  /// A description of the commands of a program, as it is printed for tools.
  private struct Description: Decodable {
    var command: Command
  }

  private struct Command: Decodable {
    var commandName: String
    var subcommands: [Command]?
  }

  static func all() async throws -> [Page] {
    var pages: [Page] = []
    for program in [Programs.zdc, Programs.server] {
      let description = try await output(program, ["--experimental-dump-help"])
      let root = try JSONDecoder().decode(Description.self, from: Data(description.utf8)).command
      for words in commands(below: root) {
        let text = try await output(program, words + ["--help"])
        pages.append(Page(command: ([root.commandName] + words + ["--help"]).joined(separator: " "), text: text))
      }
    }
    return pages
  }

  private static func commands(below command: Command) -> [[String]] {
    let children = (command.subcommands ?? []).filter { $0.commandName != "help" }
    return [[]] + children.flatMap { child in commands(below: child).map { [child.commandName] + $0 } }
  }

  private static func output(_ program: String, _ arguments: [String]) async throws -> String {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("zdc-help-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    var environment = Programs.environment(home: folder)
    environment["COLUMNS"] = "110"
    let output = folder.appendingPathComponent("output")
    let process = try ChildProcess(
      program, arguments, environment: environment, output: output, errors: folder.appendingPathComponent("errors"))
    try #require(await process.wait() == 0, "\(program) \(arguments)")
    return try String(contentsOf: output, encoding: .utf8)
  }
}
