import Foundation
import Testing

/// The table of SECURITY.md that says who may make which change in a shared branch.
struct PermissionTable {
  static let codes = "refused with"

  /// The cells by change and then by role.
  let rows: [String: [String: String]]

  init() throws {
    let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../..").standardizedFileURL
    let text = try String(contentsOf: root.appending(path: "SECURITY.md"), encoding: .utf8)
    let title = "## Who may do what in a shared branch\n"
    let section = try #require(text.components(separatedBy: title).dropFirst().first)
    let lines = section.split(separator: "\n").drop { !$0.hasPrefix("|") }.prefix { $0.hasPrefix("|") }.map { line in
      line.split(separator: "|").map { $0.trimmingCharacters(in: [" ", "`", "–"]) }
    }
    let names = try #require(lines.first)
    rows = lines.dropFirst(2).reduce(into: [:]) { rows, cells in
      for (name, cell) in zip(names, cells).dropFirst() { rows[cells[0], default: [:]][name] = cell }
    }
  }

  func allows(_ change: String, _ role: String) -> Bool { rows[change]?[role] == "yes" }

  /// The error of the change for a role that may not make it; empty if every member may make it.
  func code(_ change: String) -> String { rows[change]?[Self.codes] ?? "" }
}
