import Foundation

/// Every sentence that `zdc` and `zdc-server` can print, in one text: the help of all commands, and the string literals
/// of all sources that the programs consist of.
enum SentenceCatalogue {
  private static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent()
  /// Where the text is kept.
  static let file = root.appendingPathComponent("Tests/CommandTests/Sentences.txt")

  /// Modules whose literals are for a user of the programs.
  private static let commands = ["ZDCCommands", "zdc", "zdc-server"]
  /// Sources of the framework and the server whose single words a user sees as well: titles and names of fields.
  private static let reports = ["Sources/ZDCServer/Domain/Audit.swift", "Sources/ZeroDarkCloud/Diagnosis/"]
  /// Modules that no program contains.
  private static let others: Set = ["ZDCServerMemory", "ZeroDarkCloudTesting"]

  private static let introduction = """
    Every sentence that zdc and zdc-server can print. `make sentences` writes this file, and a test compares it: read a
    change to it as a user would. «…» is an expression, ⏎ a line feed within a text.

    """

  static func text() async throws -> String {
    let pages = try await HelpPages.all()
    let help = squeezed(pages.map(\.text).joined(separator: "\n"))
    var parts = [introduction]
    parts += pages.map { chapter($0.command, $0.text.split(separator: "\n", omittingEmptySubsequences: false)) }
    let exitCodes = try exitCodes()
    for path in try sources() {
      let literals = SwiftLiterals(try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8))
      let file = SentenceFile(literals, rule: rule(for: path), exitCodes: exitCodes) { text in
        holdsHelp(path) && isContained(text, in: help)
      }
      if !file.lines.isEmpty { parts.append(chapter(path, file.lines)) }
    }
    return parts.joined(separator: "\n")
  }

  private static func chapter(_ title: String, _ lines: [some StringProtocol]) -> String {
    let shown = lines.map { $0.replacingOccurrences(of: "\n", with: "\n      ") }
    return "==== \(title)\n" + shown.map { $0.isEmpty ? "\n" : "  \($0)\n" }.joined()
  }

  private static func squeezed(_ text: String) -> String {
    text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
  }

  /// Whether the help contains a text, between the results of its expressions. Short pieces do not count: they may be part
  /// of another sentence.
  private static func isContained(_ text: String, in help: String) -> Bool {
    let pieces = text.replacing(/«[^»]*»/, with: "\u{0}").split(separator: "\u{0}").map { squeezed(String($0)) }
    return text.count >= 20 && pieces.allSatisfy(help.contains)
  }

  private static func rule(for path: String) -> SentenceFile.Rule {
    let showsWords = commands.contains(module(of: path)) || reports.contains { path.hasPrefix($0) }
    return showsWords ? .everything : .prose
  }

  /// Whether the reader has seen the file's texts in the help.
  private static func holdsHelp(_ path: String) -> Bool {
    path.hasPrefix("Sources/zdc") || path.hasSuffix("/ExitStatus.swift")
  }

  private static func module(of path: String) -> String { String(path.split(separator: "/")[1]) }

  /// The paths of the programs' sources: first those of the commands, then those of the framework and of the server.
  private static func sources() throws -> [String] {
    let folder = root.appendingPathComponent("Sources").path
    let paths = try FileManager.default.subpathsOfDirectory(atPath: folder)
      .filter { $0.hasSuffix(".swift") && !$0.contains(".docc/") }.map { "Sources/\($0)" }.sorted()
      .filter { !others.contains(module(of: $0)) }
    return paths.filter { commands.contains(module(of: $0)) } + paths.filter { !commands.contains(module(of: $0)) }
  }

  /// The numbers of the exit codes of both programs, by their names in the sources.
  private static func exitCodes() throws -> [String: String] {
    var numbers: [String: String] = [:]
    for module in ["ZDCCommands", "zdc-server"] {
      let file = root.appendingPathComponent("Sources/\(module)/ExitStatus.swift")
      for match in try String(contentsOf: file, encoding: .utf8).matches(of: /case (\w+) = (\d+)/) {
        numbers[String(match.output.1)] = String(match.output.2)
      }
    }
    return numbers
  }
}
