import Foundation

/// Defines which folders of a target may use which: ARCHITECTURE.md, "Targets". Imports say nothing about folders, so
/// the check compares type names. A folder may name its own types and those of the folders below it.
///
/// The check does not see members that only an extension adds to a type.
enum FolderOrder {
  /// From bottom to top; folders on one line may use each other. The empty name is the top of the target's folder.
  static let byTarget: [String: [[String]]] = [
    "ZDCProtocol": [["", "Codec"], ["Objects"], ["Replay"], ["Wire"]],
    "ZDCCrypto": [
      [""], ["Names"], ["Primitives"], ["Sealing"], ["Keys"], ["Content"], ["Records"], ["Messages"],
      ["Account"], ["Local"],
    ],
    "ZDCMerge": [["", "Changesets"], ["Collections"], ["Compatibility"]],
    "ZDCClientStore": [["Database"], ["Records"], ["Journal"], ["Queue"], ["Cloud"], ["Manager"]],
    "ZDCTransfers": [["Progress"], ["CryptoFiles"], ["Sources"], ["Files"], ["Disk"], ["Download"], ["Images"]],
    "ZDCSync": [
      ["Delegate"], ["Status"], ["Session"], ["Rules"], ["Tree"], ["Pull"],
      ["History"], ["Push"], ["Messages"], ["Zone"], ["Engine"], ["Manager"],
    ],
    "ZeroDarkCloud": [[""], ["Diagnosis"], ["Compatibility"]],
    "ZDCServer": [
      ["Settings"], ["Stores"], ["Copy"], ["Metrics"], ["Domain"], ["Coordination"], ["Events"], ["Core"],
      ["Middleware"],
      ["Routes"], [""],
    ],
    "ZDCServerSQLite": [["", "Rows"], ["Check"], ["Backup"]],
    "ZDCServerPostgres": [[""], ["Coordination"]],
    "ZDCCommands": [["", "Terminal"], ["Files"], ["Tree"], ["Profile"], ["Export"], ["Commands"]],
    "ZeroDarkCloudTesting": [
      ["Support"], ["Canary"], ["Server"], ["Network"], ["Hostile"], ["Device"], ["Rogue"], ["World"],
    ],
  ]

  struct SourceFile {
    var target: String
    /// The first folder below the target; empty at its top.
    var folder: String
    var name: String
    var text: String
  }

  /// Returns each use of a higher folder, and each folder that is missing in the table.
  static func findings(_ files: [SourceFile]) -> [String] {
    Dictionary(grouping: files, by: \.target).sorted { $0.key < $1.key }.flatMap { target, files -> [String] in
      guard let order = byTarget[target] else {
        return Set(files.map(\.folder)).count > 1 ? ["\(target) has folders and is not in the table"] : []
      }
      let levels = Dictionary(
        uniqueKeysWithValues: order.enumerated().flatMap { level, folders in folders.map { ($0, level) } })
      let homeless = Set(files.map(\.folder)).subtracting(levels.keys).sorted()
      return homeless.map { "\(target)/\($0) is not in the table" } + backEdges(files, levels)
    }
  }

  private static func backEdges(_ files: [SourceFile], _ levels: [String: Int]) -> [String] {
    var declared: [String: SourceFile] = [:]
    for file in files { for name in types(in: file.text) { declared[name] = file } }
    return files.flatMap { file in
      names(in: file.text).compactMap { name -> String? in
        guard let home = declared[name], let own = levels[file.folder], let other = levels[home.folder], other > own
        else {
          return nil
        }
        return "\(file.target)/\(file.folder)/\(file.name) uses \(name), which is above it in \(home.folder)"
      }.sorted()
    }
  }

  /// Returns the types that a file declares at top level, except private ones.
  static func types(in text: String) -> [String] {
    let modifiers: Set<Substring> = ["public", "package", "internal", "final", "indirect", "nonisolated"]
    let kinds: Set<Substring> = ["struct", "class", "enum", "actor", "protocol", "typealias"]
    return text.split(separator: "\n").compactMap { line in
      guard line.first?.isWhitespace == false else { return nil }
      let words = line.split(whereSeparator: \.isWhitespace).drop { modifiers.contains($0) || $0.hasPrefix("@") }
      guard let kind = words.first, kinds.contains(kind), let name = words.dropFirst().first else { return nil }
      return String(name.prefix { $0.isLetter || $0.isNumber || $0 == "_" })
    }
  }

  /// Returns every word of the code that may be a type's name; ignores comments and string literals.
  private static func names(in text: String) -> Set<String> {
    var names: Set<String> = []
    for line in text.split(separator: "\n") {
      let code = line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line
      // Even-numbered pieces are outside quotes.
      for (index, piece) in code.split(separator: "\"", omittingEmptySubsequences: false).enumerated()
      where index % 2 == 0 {
        for word in piece.split(whereSeparator: { !$0.isLetter && !$0.isNumber && $0 != "_" }) {
          if word.first?.isUppercase == true { names.insert(String(word)) }
        }
      }
    }
    return names
  }

  /// Returns the source files of all targets of this repository.
  static func ofRepository() throws -> [SourceFile] {
    let root = SourceImports.repositoryRoot.appendingPathComponent("Sources")
    let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
    return try paths.filter { $0.hasSuffix(".swift") && !$0.contains(".docc/") }.sorted().map { path in
      let parts = path.split(separator: "/").map(String.init)
      return SourceFile(
        target: parts[0], folder: parts.count > 2 ? parts[1] : "", name: parts[parts.count - 1],
        text: try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8))
    }
  }
}
