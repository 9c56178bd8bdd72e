import Foundation

/// A readable test of commands (scripts/*.txt):
///
/// ```
/// # a remark
/// $ a put src home:/       a shell command; `a` and `b` run zdc as two devices,
///                          `$URL` is the server, `$T` an empty folder
/// < a line of its standard input
/// a line of its standard output, exactly; `*` stands for anything, and a line `...` for any lines
/// ! a line that its standard error contains, with the same `*`
/// = 64                     its exit code, 0 if it is not given
/// ```
/// Any other output fails the test, unless a line `...` allows it. Standard error is checked only against `!` lines.
struct Script: Sendable, CustomStringConvertible {
  struct Step: Sendable {
    var line: Int
    var command: String
    var input: [String] = []
    var output: [String] = []
    var errors: [String] = []
    var status: Int32 = 0
  }

  var name: String
  var steps: [Step]

  var description: String { name }

  static var folder: URL { URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent() }

  static var all: [Script] {
    let folder = folder.appendingPathComponent("scripts")
    // To run a single script: ZDC_SCRIPT=files swift test --filter CommandTests
    let only = ProcessInfo.processInfo.environment["ZDC_SCRIPT"].map { $0 + ".txt" }
    let files = (try? FileManager.default.contentsOfDirectory(atPath: folder.path)) ?? []
    return files.filter { $0.hasSuffix(".txt") && $0 == only ?? $0 }.sorted().compactMap { file in
      let text = try? String(contentsOf: folder.appendingPathComponent(file), encoding: .utf8)
      return text.map { Script(name: String(file.dropLast(4)), steps: steps($0)) }
    }
  }

  private static func steps(_ text: String) -> [Step] {
    var steps: [Step] = []
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      if line.hasPrefix("$ ") {
        steps.append(Step(line: index + 1, command: String(line.dropFirst(2))))
        continue
      }
      guard !steps.isEmpty, !line.isEmpty, !line.hasPrefix("#") else { continue }
      let last = steps.count - 1
      if line.hasPrefix("< ") {
        steps[last].input.append(String(line.dropFirst(2)))
      } else if line.hasPrefix("! ") {
        steps[last].errors.append(String(line.dropFirst(2)))
      } else if line.hasPrefix("= "), let status = Int32(line.dropFirst(2)) {
        steps[last].status = status
      } else {
        steps[last].output.append(String(line))
      }
    }
    return steps
  }
}

/// Matches lines with `*` for anything and `...` for any number of lines.
enum Pattern {
  static func matches(_ line: some StringProtocol, _ pattern: String) -> Bool {
    let parts = pattern.split(separator: "*", omittingEmptySubsequences: false).map(String.init)
    guard parts.count > 1 else { return line == pattern }
    var rest = line[...]
    guard let first = parts.first, rest.hasPrefix(first) else { return false }
    rest = rest.dropFirst(first.count)
    for part in parts.dropFirst().dropLast() where !part.isEmpty {
      guard let range = rest.range(of: part) else { return false }
      rest = rest[range.upperBound...]
    }
    return rest.hasSuffix(parts[parts.count - 1])
  }

  static func matches(_ lines: ArraySlice<String>, _ patterns: ArraySlice<String>) -> Bool {
    guard let pattern = patterns.first else { return lines.isEmpty }
    if pattern == "..." {
      return (lines.startIndex...lines.endIndex).contains { matches(lines[$0...], patterns.dropFirst()) }
    }
    guard let line = lines.first, matches(line, pattern) else { return false }
    return matches(lines.dropFirst(), patterns.dropFirst())
  }
}
