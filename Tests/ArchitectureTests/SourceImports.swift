import Foundation

/// One import statement: its module, whether public API may use its types, and where it was found.
struct SourceImport: Hashable {
  var module: String
  var isPublic: Bool
  /// Relative to the repository's root, with forward slashes.
  var file: String
  var line: Int

  /// `Sources/ZDCServer/Domain/Access.swift` → `ZDCServer`.
  var target: String { String(file.split(separator: "/").dropFirst().first ?? "") }

  /// The file's folders below its target, each followed by a slash; empty at the top.
  var folder: String {
    file.split(separator: "/").dropFirst(2).dropLast().map { $0 + "/" }.joined()
  }
}

enum SourceImports {
  /// Finds the imports of one file. Skips comments and multi-line string literals.
  static func parse(_ text: String, file: String) -> [SourceImport] {
    var found: [SourceImport] = []
    var inString = false
    var inComment = false
    for (index, line) in text.split(separator: "\n", omittingEmptySubsequences: false).enumerated() {
      let wasOutside = !inString && !inComment
      if line.contains("/*") { inComment = true }
      if line.contains("*/") { inComment = false }
      if line.ranges(of: "\"\"\"").count % 2 == 1 { inString.toggle() }
      guard wasOutside, let (module, isPublic) = importedModule(line) else { continue }
      found.append(SourceImport(module: module, isPublic: isPublic, file: file, line: index + 1))
    }
    return found
  }

  private static let modifiers: Set<Substring> = ["public", "package", "internal", "fileprivate", "private"]
  private static let kinds: Set<Substring> = ["struct", "class", "enum", "protocol", "func", "var", "let", "typealias"]

  private static func importedModule(_ line: Substring) -> (module: String, isPublic: Bool)? {
    guard line.contains("import") else { return nil }
    let code = line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line
    var words = code.split(whereSeparator: \.isWhitespace)[...]
    var isPublic = false
    while let word = words.first, word.hasPrefix("@") || modifiers.contains(word) {
      isPublic = isPublic || word == "public" || word.hasPrefix("@_exported")
      words.removeFirst()
    }
    guard words.popFirst() == "import" else { return nil }
    if let word = words.first, kinds.contains(word) { words.removeFirst() }
    guard let path = words.first else { return nil }
    return (String(path.prefix { $0 != "." && $0 != ";" }), isPublic)
  }

  /// Returns all imports below `Sources` or `Tests` of this repository, except the tutorial's code, which belongs to an
  /// app.
  static func ofRepository(below folder: String) throws -> [SourceImport] {
    let root = repositoryRoot.appendingPathComponent(folder)
    let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
    return try paths.filter { $0.hasSuffix(".swift") && !$0.contains(".docc/") }.sorted().flatMap { path in
      let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
      return parse(text, file: "\(folder)/\(path)")
    }
  }

  static let repositoryRoot = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
}
