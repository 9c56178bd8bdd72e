import Testing

/// A check that cannot fail is worse than none, so each rule gets input that it must refuse.
@Suite struct ImportCheckerTests {
  private func findings(_ text: String, file: String) -> [String] {
    ImportChecker().findings(SourceImports.parse(text, file: file))
  }

  @Test(arguments: [
    ("import ZDCTreesystem", "Sources/ZDCServer/Domain/Access.swift"),
    ("import ZDCCrypto", "Sources/zdc-server/Main.swift"),
    ("internal import struct ZDCCrypto.NodeKey", "Sources/ZDCServer/Server.swift"),
    ("import GRDB", "Sources/ZDCTreesystem/ZDCNode.swift"),
    ("import NIOCore", "Sources/ZDCTreesystem/ZDCNode.swift"),
    ("@testable import ZeroDarkCloudTesting", "Sources/ZDCSync/Manager/Explain.swift"),
    ("import ZDCServer", "Sources/ZDCSync/Push/CommitBuilder.swift"),
    ("import ZeroDarkCloud", "Sources/ZDCServerSQLite/Store.swift"),
    ("import ZeroDarkCloud", "Sources/ZDCClientAPI/ServerAPI.swift"),
    ("import ZDCClientAPI", "Sources/ZDCSupport/Backoff.swift"),
    ("public import GRDB", "Sources/ZDCClientStore/Queue/OperationConversion.swift"),
    ("public import GRDB", "Sources/ZDCSync/Tree/InFlightStore.swift"),
    ("import AsyncHTTPClient", "Sources/ZDCSync/Push/ZonePusher.swift"),
    ("import ZDCSync", "Sources/ZDCTransfers/Download/ZDCDownloadManager.swift"),
    ("import Hummingbird", "Sources/ZDCServer/Domain/Commits.swift"),
    ("import Anything", "Sources/NewTarget/File.swift"),
  ])
  func aMadeUpBadImportIsFound(text: String, file: String) {
    #expect(findings(text, file: file).count == 1)
  }

  @Test(arguments: [
    ("public import GRDB", "Sources/ZDCClientStore/Database/ZDCReadTransaction.swift"),
    ("internal import GRDB", "Sources/ZDCSync/Tree/InFlightStore.swift"),
    ("import AsyncHTTPClient", "Sources/ZDCClientAPI/AsyncHTTPTransport.swift"),
    ("import NIOCore", "Sources/ZDCClientAPI/AnswerGuard.swift"),
    ("import Hummingbird", "Sources/ZDCServer/Server.swift"),
    ("// import ZDCCrypto", "Sources/ZDCServer/Server.swift"),
    ("/* why not\nimport ZDCCrypto\n*/", "Sources/ZDCServer/Server.swift"),
    ("let text = \"\"\"\nimport ZDCCrypto\n\"\"\"", "Sources/ZDCServer/Server.swift"),
  ])
  func allowedImportsPass(text: String, file: String) {
    #expect(findings(text, file: file) == [])
  }

  @Test func everyFormOfAnImportIsRead() {
    let text = """
      import A
      public import B
      @testable import C
        @preconcurrency internal import D // reason
      import struct E.Thing
      @_exported import F
      importance = 1
      """
    let imports = SourceImports.parse(text, file: "Sources/T/A/B/file.swift")
    #expect(imports.map(\.module) == ["A", "B", "C", "D", "E", "F"])
    #expect(imports.filter(\.isPublic).map(\.module) == ["B", "F"])
    #expect(imports.map(\.line) == [1, 2, 3, 4, 5, 6])
    #expect(imports.allSatisfy { $0.target == "T" && $0.folder == "A/B/" })
  }

  @Test func aManifestThatDependsOnTooMuchIsFound() {
    let manifest = PackageManifest(
      """
      let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
      .target(name: "ZDCTreesystem", dependencies: ["ZDCProtocol", grdb]),
      .executableTarget(name: "zdc", path: f(1)),
      """)
    var checker = ImportChecker()
    checker.rulesByTarget = checker.rulesByTarget.filter { ["ZDCTreesystem", "ZDCCrypto", "zdc"].contains($0.key) }
    let expected = [
      "ZDCCrypto is not in Package.swift",
      "Package.swift: ZDCTreesystem may not depend on GRDB",
      "Package.swift: zdc does not declare ZDCCommands, which the table lists",
    ]
    #expect(checker.findings(manifest) == expected)
  }

  @Test func anImportThatOnlyTransitivityAllowsIsFound() {
    let manifest = PackageManifest(
      """
      .target(name: "A"),
      .target(name: "B", dependencies: ["A"]),
      .testTarget(name: "CTests", dependencies: ["B"]),
      """)
    let imports = SourceImports.parse("import A\nimport B", file: "Tests/CTests/File.swift")
    let expected = ["Tests/CTests/File.swift:1: CTests imports A without declaring it"]
    #expect(ImportChecker().undeclared(imports, in: manifest) == expected)
  }

  @Test func aDependencyThatIsImportedNowhereIsFound() {
    let manifest = PackageManifest(
      """
      .target(name: "A"),
      .target(name: "B", dependencies: ["A", "C"]),
      """)
    let imports = SourceImports.parse("import A", file: "Sources/B/File.swift")
    let expected = ["Package.swift: B declares C and imports it nowhere"]
    #expect(ImportChecker().unused(manifest, imports) == expected)
  }
}
