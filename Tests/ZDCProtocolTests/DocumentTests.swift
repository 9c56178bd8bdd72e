import Foundation
import Testing
import ZDCProtocol

/// PROTOCOL.md is normative: it must contain every name in the code, and no others.
@Suite struct DocumentTests {
  private static let root = URL(fileURLWithPath: #filePath)
    .deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()

  private func text(_ path: String) throws -> String {
    try String(contentsOf: Self.root.appendingPathComponent(path), encoding: .utf8)
  }

  /// Returns the document from the heading that begins with `heading` to the next heading of any level.
  private func section(_ heading: String) throws -> Substring {
    let document = try text("PROTOCOL.md")
    let start = try #require(document.range(of: "\n\(heading)"), "no such heading: \(heading)")
    let rest = document[start.upperBound...]
    return rest[..<(rest.range(of: "\n#")?.lowerBound ?? rest.endIndex)]
  }

  @Test func everySecurityErrorHasItsName() throws {
    let section = try section("### 3.15")
    let list = section.drop { $0 != ":" }.prefix { $0 != "." }
    let names = list.matches(of: /[a-z]\w+/).map { String($0.output) }
    #expect(Set(names) == Set(ZDCSecurityError.Code.allCases.map(\.rawValue)))
    #expect(names.count == Set(names).count)
  }

  @Test func everyWireErrorHasItsStatus() throws {
    var codesByStatus: [Int: Set<String>] = [:]
    for row in try section("### 4.6").split(separator: "\n") {
      guard let match = row.firstMatch(of: /^\| (?<status>\d{3}) \| (?<codes>[^(|]*)/) else { continue }
      codesByStatus[Int(match.output.status) ?? 0] = Set(
        match.output.codes.matches(of: /\w+/).map { String($0.output) })
    }
    let stated = Dictionary(grouping: ServerError.Code.allCases) { ServerError($0, "").status }
    #expect(codesByStatus == stated.mapValues { Set($0.map(\.rawValue)) })
  }

  /// `Routes.zones` → `/v1/zones`.
  private func pathsByName() throws -> [String: String] {
    let source = try text("Sources/ZDCProtocol/Wire/Routes.swift")
    let constants = source.matches(of: /static let (?<name>\w+) = "(?<path>\/[^"]*)"/)
    return Dictionary(uniqueKeysWithValues: constants.map { (String($0.output.name), String($0.output.path)) })
  }

  /// `GET /v1/zones`, as the tables of the wire API list it.
  private func describedRoutes() throws -> Set<String> {
    let rows = try text("PROTOCOL.md").matches(of: /\| `(?<verb>GET|PUT|POST|DELETE) (?<path>[^?`]+)/)
    return Set(rows.map { "\($0.output.verb) \($0.output.path)" })
  }

  @Test func everyRouteIsDescribed() throws {
    let paths = Set(try pathsByName().values)
    #expect(paths.count > 20)
    #expect(Set(try describedRoutes().map { $0.drop { $0 != "/" } }.map(String.init)) == paths)
  }

  @Test func theServerAnswersTheRoutesThatAreDescribedAndNoOthers() throws {
    let table = try text("Sources/ZDCServer/RouteTable.swift")
    let paths = try pathsByName()
    let served = table.matches(of: /Route\(\s*\.(?<verb>\w+), Routes\.(?<name>\w+)/).map { match in
      "\(match.output.verb.uppercased()) \(paths[String(match.output.name)] ?? "")"
    }
    #expect(Set(served) == (try describedRoutes()))
    #expect(served.count == Set(served).count)
  }

  @Test func operationsAndBundleItemsHaveTheirNumbers() throws {
    let zoneLog = try section("### 3.7")
    for (kind, size) in [(1, 73), (2, 57), (3, 37), (4, 57), (8, 37), (10, 73)] {
      #expect(zoneLog.contains(try Regex("\\| \(kind) \\| \\w+ \\| .* \\| \(size) \\|")), "operation \(kind)")
    }
    let items = try section("### 3.13").split(separator: "\n").compactMap { $0.firstMatch(of: /^\| (?<type>[1-9]) \|/) }
    #expect(items.map { String($0.output.type) } == (1...9).map(String.init))
  }
}
