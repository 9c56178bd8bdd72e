import Foundation
import Testing

/// The public API that apps rely on.
@Suite struct PublicAPITests {
  private struct SourceFile {
    var path: String
    var text: String
  }

  private static func files(below folder: String) throws -> [SourceFile] {
    let root = SourceImports.repositoryRoot.appendingPathComponent(folder)
    return try FileManager.default.subpathsOfDirectory(atPath: root.path).filter { $0.hasSuffix(".swift") }.sorted()
      .map { path in
        let text = try String(contentsOf: root.appendingPathComponent(path), encoding: .utf8)
        return SourceFile(path: "\(folder)/\(path)", text: text)
      }
  }

  private static func text(of path: String) throws -> String {
    try String(contentsOf: SourceImports.repositoryRoot.appendingPathComponent(path), encoding: .utf8)
  }

  // MARK: The app of PublicAppTests

  /// Modules that an app can import.
  private static let modulesOfApps: Set<String> = [
    "Foundation", "Synchronization", "Testing", "ZDCMerge", "ZeroDarkCloud", "ZeroDarkCloudTesting",
  ]

  @Test func theAppKnowsOnlyWhatIsPublic() throws {
    let imports = try SourceImports.ofRepository(below: "Tests").filter { $0.target == "PublicAppTests" }
    #expect(imports.count > 5, "nothing was read")
    #expect(Set(imports.map(\.module)).subtracting(Self.modulesOfApps) == [])
    for file in try Self.files(below: "Tests/PublicAppTests") {
      #expect(!file.text.contains("@testable") && !file.text.contains("@_spi"), "\(file.path)")
    }
  }

  /// Without it, the compiler would show `package` declarations to the app.
  @Test func theAppHasNoPackageAccess() throws {
    let manifest = try String(
      contentsOf: SourceImports.repositoryRoot.appendingPathComponent("Package.swift"), encoding: .utf8)
    let declaration = try #require(manifest.firstRange(of: "name: \"PublicAppTests\""))
    let rest = manifest[declaration.upperBound...]
    let end = try #require(rest.firstRange(of: "target(") ?? rest.firstRange(of: "Target("))
    #expect(rest[..<end.lowerBound].contains("packageAccess: false"))
  }

  // MARK: Names

  /// Names without the framework's prefix, with the reason.
  private static let unprefixed: [String: String] = [
    "DatabaseError": "GRDB's own type",
    "KeyedDecodingContainer": "the standard library's type, extended",
    "KeyedEncodingContainer": "the standard library's type, extended",
    "NSNotification": "Foundation's type, extended",
    "Syncable": "the original framework's property wrapper",
    "ThumbnailManager": "a name of the original framework",
    "YapDatabaseReadTransaction": "a name of the original framework",
    "YapDatabaseReadWriteTransaction": "a name of the original framework",
    "Bytes16": "what ZDCNodeID stands for; apps cannot name it",
    "Bytes32": "what ZDCUserID and ZDCTreeID stand for; apps cannot name it",
    "NodeRole": "part of ZDCNodeID; apps cannot name it",
    "TreeRole": "part of ZDCTreeID; apps cannot name it",
    "UserRole": "part of ZDCUserID; apps cannot name it",
  ]

  /// The names at the start of the lines of a baseline: types, and functions and values outside of types.
  private static func topLevelNames(in baseline: String) -> Set<String> {
    Set(
      baseline.split(separator: "\n").filter { !$0.hasPrefix("#") }
        .compactMap { line in line.firstMatch(of: /^\w+/).map { String($0.output) } })
  }

  private static func withoutPrefix(_ names: Set<String>) -> Set<String> {
    names.filter { !$0.hasPrefix("ZDC") && !$0.hasPrefix("kZDC") && !$0.hasPrefix("ZeroDarkCloud") }
  }

  /// An app may have a type of any other name.
  @Test func publicNamesHaveTheFrameworksPrefix() throws {
    let baseline = try Self.text(of: "api/ZeroDarkCloud.txt")
    let names = Self.topLevelNames(in: baseline)
    #expect(names.count > 100, "nothing was read")
    #expect(Self.withoutPrefix(names).subtracting(Self.unprefixed.keys) == [])
    let exports = try Self.text(of: "Sources/ZeroDarkCloud/Exports.swift")
    let exported = Set(exports.matches(of: /import \w+ \w+\.(\w+)/).map { String($0.output.1) })
    #expect(exported.contains("ZDCNodeID"), "nothing was read")
    #expect(Self.withoutPrefix(exported) == ["DatabaseError"])
    let probe = Self.topLevelNames(in: "# a\nZDCNode: struct\nServerError.Code: struct")
    #expect(Self.withoutPrefix(probe) == ["ServerError"], "the check does not work")
  }

  // MARK: Sendable

  /// Returns the name of the public type that a line declares.
  private static func publicType(_ line: Substring) -> String? {
    // A pattern for each line of the package takes half a minute.
    guard line.contains("public ") || line.contains("open ") else { return nil }
    let pattern = /^\s*(?:@\w+\s+)*(?:public|open)\s+(?:final\s+|indirect\s+)*(?:class|struct|enum|actor)\s+(\w+)/
    return line.firstMatch(of: pattern).map { String($0.output.1) }
  }

  /// Returns the lines that declare an unchecked Sendable conformance of a public type, or of one in `publicTypes`.
  private static func unchecked(in text: String, publicTypes: Set<String>) -> [Substring] {
    guard text.contains("@unchecked") else { return [] }
    return text.split(separator: "\n").filter { line in
      guard line.contains("@unchecked") else { return false }
      let code = line.firstRange(of: "//").map { line[..<$0.lowerBound] } ?? line
      guard code.contains(/@unchecked\s+Sendable/) else { return false }
      if publicType(code) != nil { return true }
      guard let extended = code.firstMatch(of: /extension\s+([\w.]+)/) else { return false }
      return publicTypes.contains(String(extended.output.1.split(separator: ".").last ?? ""))
    }
  }

  @Test func noPublicTypeIsSendableUnchecked() throws {
    let files = try Self.files(below: "Sources")
    let publicTypes = Set(files.flatMap { $0.text.split(separator: "\n").compactMap(Self.publicType) })
    #expect(publicTypes.isSuperset(of: ["ZeroDarkCloud", "ZDCNode", "ZDCDatabaseConnection"]), "nothing was read")
    for file in files {
      #expect(Self.unchecked(in: file.text, publicTypes: publicTypes) == [], "\(file.path)")
    }
  }

  @Test func theCheckFindsWhatItShould() {
    let found = Self.unchecked(
      in: """
        public final class A: @unchecked Sendable {}
        extension B: @unchecked Sendable {}
        extension Inner.B: P, @unchecked Sendable {}
        final class C: @unchecked Sendable {}
        extension C: @unchecked Sendable {}
        // public final class D: @unchecked Sendable {}
        """, publicTypes: ["B"])
    #expect(found.count == 3)
  }
}
