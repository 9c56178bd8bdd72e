import Foundation

/// The tests in this package's sources and in the sample app's, as `Suite/function`.
struct TestSources {
  private(set) var tests: Set<String> = []
  private(set) var disabled: Set<String> = []

  init(folders: [URL]) throws {
    for folder in folders {
      guard let files = FileManager.default.enumerator(at: folder, includingPropertiesForKeys: nil) else { continue }
      for case let file as URL in files where file.pathExtension == "swift" {
        add(try String(contentsOf: file, encoding: .utf8))
      }
    }
  }

  init(text: String) {
    add(text)
  }

  /// Adds the tests of a source text. Suites are the outermost types: `swift format` indents all other types.
  private mutating func add(_ text: String) {
    var suite = ""
    var attribute: String?
    for line in text.split(separator: "\n") {
      if let type = Self.name(after: ["struct", "class", "actor", "enum", "extension"], in: line), line.first != " " {
        suite = type
      }
      if line.trimmed.hasPrefix("@Test") { attribute = "" }
      guard let traits = attribute else { continue }
      guard let function = Self.name(after: ["func"], in: line) else {
        attribute = traits + line
        continue
      }
      tests.insert("\(suite)/\(function)")
      if (traits + line).contains(".disabled(") { disabled.insert("\(suite)/\(function)") }
      attribute = nil
    }
  }

  private static func name(after keywords: Set<String>, in line: Substring) -> String? {
    guard !line.trimmed.hasPrefix("//") else { return nil }
    let words = line.split { $0 == " " }
    guard let index = words.firstIndex(where: { keywords.contains(String($0)) }), index + 1 < words.count else {
      return nil
    }
    let name = words[index + 1].prefix { $0.isLetter || $0.isNumber || $0 == "_" }
    return name.isEmpty ? nil : String(name)
  }
}

extension Substring {
  fileprivate var trimmed: Substring { drop { $0 == " " } }
}
