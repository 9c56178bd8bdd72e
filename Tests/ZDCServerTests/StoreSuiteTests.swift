import Foundation
import Testing

/// Every function that a store must have is called in a suite that runs over all stores.
@Suite struct StoreSuiteTests {
  /// A function's name and the labels of its parameters, as `users(after:limit:)`.
  private typealias Signature = String

  private static let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

  private static func text(_ path: String) throws -> String {
    try String(contentsOf: root.appending(path: path), encoding: .utf8)
  }

  private static func suites(over stores: String) throws -> [String] {
    let folder = "Tests/ZDCServerTests"
    let names = try FileManager.default.contentsOfDirectory(atPath: root.appending(path: folder).path)
    return try names.filter { $0.hasSuffix("Tests.swift") }.map { try text("\(folder)/\($0)") }
      .filter { $0.contains(stores) }
  }

  @Test(arguments: [
    ("MetadataStore", "StoreContractTests", 60), ("InboxStore", "StoreContractTests", 13),
    ("CopyableStore", "StoreContractTests", 10), ("BlobStore", "BlobStoreContractTests", 11),
  ]) func everyFunctionOfAStoreIsInItsContract(_ file: String, _ stores: String, _ minimum: Int) throws {
    let declared = Self.declared(in: try Self.text("Sources/ZDCServer/Stores/\(file).swift"))
    #expect(declared.count >= minimum)
    let called = try Self.suites(over: stores).reduce(into: Set<Signature>()) { $0.formUnion(Self.called(in: $1)) }
    #expect(declared.subtracting(called).sorted() == [])
  }

  /// `make test` leaves these suites out of its runs over other stores than folders. A server, and the worlds of tests
  /// that start one, would use the store of the run.
  @Test func suitesThatRunOverFoldersOnly_startNoServer() throws {
    let lines = try Self.text("Makefile").split(separator: "\n")
    let list = try #require(lines.first { $0.hasPrefix("OWN_STORES :=") })
    let found = try #require(list.firstMatch(of: /\((.+)\)Tests/))
    let names = found.1.split(separator: "|")
    #expect(names.count > 10)
    let starting = /TestServer(?!\.(?:newFolder|remove|bytes|write)\b)|TestStores|SharedBranch|\bSplitTests/
    for name in names {
      let suite = try Self.text("Tests/ZDCServerTests/\(name)Tests.swift")
      #expect(suite.contains("struct \(name)Tests {"))
      let starts = suite.matches(of: starting).map { String($0.output) }
      #expect(starts == [], "\(name)Tests")
    }
  }

  @Test func aFunctionThatIsNotCalledIsFound() throws {
    let protocols = """
      package protocol Store {
        func user(_ id: UserID) throws -> UserRow?
        func users(
          after id: [Int: (Int, Int)], limit: Int
        ) throws
        func read<T>(_ body: (Int) -> T) throws -> T
        func end()
      }
      extension Store {
        package func other() {}
      }
      """
    #expect(Self.declared(in: protocols) == ["user(_:)", "users(after:limit:)", "read(_:)", "end()"])
    let calls = "try reader.users(after: [a, f(b: 1)], limit: 2) + $0.user(x ? y : z) + Self.end() + tx.read { 1 }"
    #expect(Self.called(in: calls) == ["users(after:limit:)", "user(_:)", "read(_:)"])
  }

  /// The requirements of all protocols of a file.
  private static func declared(in text: String) -> Set<Signature> {
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    var (isInside, body) = (false, "")
    for line in lines {
      if line.contains("protocol "), line.hasSuffix("{") { isInside = true }
      if line == "}" { isInside = false }
      if isInside, !line.trimmingPrefix(" ").hasPrefix("//") { body += line + "\n" }
    }
    return Set(
      body.matches(of: /func (\w+)(<[^>]*>)?\(/).map { match in
        signature(String(match.output.1), arguments(body[match.range.upperBound...]).parts)
      })
  }

  /// The calls of these receivers alone: helpers of a suite may have the name of a function of the store.
  private static func called(in text: String) -> Set<Signature> {
    let call = /\b(?:reader|tx|store|target|rows|writer|world\.store|\$0)\??\.(\w+)(\(| \{)/
    return text.matches(of: call).reduce(into: []) { found, match in
      let name = String(match.output.1)
      guard match.output.2 == "(" else {
        found.insert("\(name)(_:)")
        return
      }
      let (parts, rest) = arguments(text[match.range.upperBound...])
      found.insert(signature(name, parts))
      if rest.hasPrefix(" {") { found.insert(signature(name, parts + ["_"])) }
    }
  }

  /// Splits what is between a parenthesis and its partner at its commas; returns also the text after it.
  private static func arguments(_ text: Substring) -> (parts: [String], rest: Substring) {
    var (depth, parts) = (0, [""])
    for index in text.indices {
      let character = text[index]
      if character == ")", depth == 0 { return (parts == [""] ? [] : parts, text[text.index(after: index)...]) }
      if "([{".contains(character) { depth += 1 }
      if ")]}".contains(character) { depth -= 1 }
      if character == ",", depth == 0 { parts.append("") } else { parts[parts.count - 1].append(character) }
    }
    return (parts, "")
  }

  private static func signature(_ name: String, _ parts: [String]) -> Signature {
    let labels = parts.map { part in part.firstMatch(of: #/^\s*(\w+)( \w+)?: /#).map { String($0.output.1) } ?? "_" }
    return "\(name)(\(labels.map { $0 + ":" }.joined()))"
  }
}
