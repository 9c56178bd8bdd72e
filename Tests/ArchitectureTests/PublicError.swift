import Foundation
import Testing

/// A public error type with codes, read from its sources.
struct PublicError: Sendable, CustomTestStringConvertible {
  /// The name that the sources write: without the framework's prefix where there is such an alias.
  var name: String
  /// The path of its files, up to `.swift` or `+Codes.swift`.
  var path: String

  var testDescription: String { name }

  static let all = [
    PublicError(name: "ZDCError", path: "Sources/ZDCSupport/ZDCError"),
    PublicError(name: "ZDCSecurityError", path: "Sources/ZDCProtocol/ZDCSecurityError"),
    PublicError(name: "ServerError", path: "Sources/ZDCProtocol/Wire/ZDCServerError"),
    PublicError(name: "TransportError", path: "Sources/ZDCClientAPI/ZDCTransportError"),
    PublicError(name: "ZDCCloudError", path: "Sources/ZDCClientStore/Cloud/ZDCCloudError"),
    PublicError(name: "ZDCSyncableError", path: "Sources/ZDCMerge/ZDCSyncableError"),
  ]

  private var text: String {
    get throws {
      let root = SourceImports.repositoryRoot
      let paths = ["\(path).swift", "\(path)+Codes.swift"].map { root.appendingPathComponent($0) }
      return try paths.filter { FileManager.default.fileExists(atPath: $0.path) }
        .map { try String(contentsOf: $0, encoding: .utf8) }.joined(separator: "\n")
    }
  }

  /// The cases of the enum that our own switches cover.
  var names: Set<String> {
    get throws {
      let text = try text
      guard let start = text.firstRange(of: "enum Name") else { return [] }
      let body = text[start.upperBound...].prefix { $0 != "}" }
      let lines = body.split(separator: "\n").filter { $0.contains(/^\s*case\b/) }
      return Set(lines.flatMap { line in line.matches(of: /\w+/).dropFirst().map { String($0.output) } })
    }
  }

  /// The static members that apps name, with their doc comments.
  var members: [String: String] {
    get throws {
      var (members, comment) = ([String: String](), "")
      for line in try text.split(separator: "\n", omittingEmptySubsequences: false) {
        if let part = line.firstMatch(of: /^\s*\/\/\/ (.*)/) {
          comment += part.output.1
        } else {
          if let member = line.firstMatch(of: /public static let (\w+) = Self\(\.(\w+)\)/),
            member.output.1 == member.output.2
          {
            members[String(member.output.1)] = comment
          }
          comment = ""
        }
      }
      return members
    }
  }
}

/// The sources of all targets, without comments, in which errors are made.
struct ThrowingSources {
  private(set) var textByPath: [String: String]

  init(_ texts: [String: String]) {
    textByPath = texts.mapValues { $0.replacing(/\/\/.*/, with: "") }
  }

  /// Reads the repository, except the tutorial's code, which belongs to an app.
  init() throws {
    let root = SourceImports.repositoryRoot.appendingPathComponent("Sources")
    let paths = try FileManager.default.subpathsOfDirectory(atPath: root.path)
      .filter { $0.hasSuffix(".swift") && !$0.contains(".docc/") }
    let texts = try paths.map { path in
      ("Sources/\(path)", try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8))
    }
    self.init(Dictionary(uniqueKeysWithValues: texts))
  }

  /// Returns the codes that are passed to the type's initializer, or to a function that throws it.
  func codes(thrownAs error: PublicError) -> Set<String> {
    textByPath.filter { !$0.key.hasPrefix(error.path) }.values.reduce(into: []) { codes, text in
      for call in calls(error, in: text) {
        for range in text.ranges(of: call) {
          let argument = Self.arguments(text[range.upperBound...], first: call != Self.requirement)
          codes.formUnion(argument.matches(of: /(?:^|[\s(?:,])\.(\w+)/).map { String($0.output.1) })
        }
      }
    }
  }

  private static let requirement = "require("

  private func calls(_ error: PublicError, in text: String) -> [String] {
    var calls = [" \(error.name)(", "(\(error.name)("]
    if error.name == "ZDCSecurityError" { calls.append(Self.requirement) }
    if text.contains("extension \(error.name) ") { calls.append("self.init(") }
    return calls
  }

  /// Returns the text up to the parenthesis that closes the call, or up to the comma after its first argument.
  private static func arguments(_ rest: Substring, first: Bool) -> Substring {
    var depth = 0
    return rest.prefix { character in
      if "([{".contains(character) { depth += 1 }
      if ")]}".contains(character) { depth -= 1 }
      return depth >= 0 && !(first && depth == 0 && character == ",")
    }
  }

  /// Whether a file has the code as a value, and not only as the label of a `case`.
  func mentions(_ code: String, in path: String) -> Bool {
    guard let text = textByPath[path] else { return false }
    return text.replacing(/case \.[^:]*:/, with: "").firstRange(of: ".\(code)") != nil
  }
}
