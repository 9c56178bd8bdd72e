import Foundation

/// The targets that Package.swift declares, parsed from its text. Calling the package manager from its own test run
/// would wait for the lock that the run holds.
struct PackageManifest {
  /// Our targets by name, with the modules that each declares.
  private(set) var dependenciesByTarget: [String: Set<String>] = [:]

  init(_ text: String) {
    let modulesByConstant = Self.constants(in: text)
    for declaration in Self.targetDeclarations(in: text) {
      guard let name = Self.value(of: "name", in: declaration) else { continue }
      let words = Self.list(after: "dependencies", in: declaration)
      dependenciesByTarget[name] = Set(words.map { modulesByConstant[$0] ?? $0 })
    }
  }

  static func ofRepository() throws -> PackageManifest {
    let file = SourceImports.repositoryRoot.appendingPathComponent("Package.swift")
    return PackageManifest(try String(contentsOf: file, encoding: .utf8))
  }

  /// `let grdb: Target.Dependency = .product(name: "GRDB", …)` → `grdb: GRDB`.
  private static func constants(in text: String) -> [String: String] {
    let pattern = /let (?<constant>\w+): Target\.Dependency = \.product\(name: "(?<module>\w+)"/
    let pairs = text.matches(of: pattern).map { (String($0.output.constant), String($0.output.module)) }
    return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
  }

  private static func targetDeclarations(in text: String) -> [Substring] {
    text.matches(of: /\.(?:target|executableTarget|testTarget)\(/).map { match in
      insideParentheses(text[match.range.upperBound...])
    }
  }

  /// Returns the text up to the parenthesis that closes the one before it.
  private static func insideParentheses(_ text: Substring) -> Substring {
    var depth = 1
    for index in text.indices {
      if text[index] == "(" { depth += 1 }
      if text[index] == ")" { depth -= 1 }
      if depth == 0 { return text[..<index] }
    }
    return text
  }

  private static func value(of label: String, in declaration: Substring) -> String? {
    guard let label = declaration.range(of: label + ": \"") else { return nil }
    return String(declaration[label.upperBound...].prefix { $0 != "\"" })
  }

  private static func list(after label: String, in declaration: Substring) -> [String] {
    guard let label = declaration.range(of: label + ": [") else { return [] }
    let list = declaration[label.upperBound...].prefix { $0 != "]" }
    return list.matches(of: /[\w-]+/).map { String($0.output) }
  }
}
