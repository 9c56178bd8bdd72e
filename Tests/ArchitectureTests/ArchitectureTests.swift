import Testing

/// Zero knowledge is a property of the module graph: the server cannot read what it cannot import.
@Suite struct ArchitectureTests {
  private static let client = [
    "ZDCTreesystem", "ZDCCrypto", "ZDCSupport", "ZDCClientAPI", "ZDCClientStore", "ZDCAccounts", "ZDCTransfers",
    "ZDCSync", "ZeroDarkCloud", "zdc",
  ]

  @Test func everySourceFileImportsOnlyWhatItsTargetMay() throws {
    let imports = try SourceImports.ofRepository(below: "Sources")
    #expect(Set(imports.map(\.target)).isSuperset(of: ["ZDCProtocol", "zdc", "zdc-server"]), "nothing was read")
    #expect(ImportChecker().findings(imports) == [])
  }

  @Test func packageDeclaresWhatTheTableSays() throws {
    #expect(ImportChecker().findings(try PackageManifest.ofRepository()) == [])
  }

  @Test func ourTargetsAreImportedOnlyWhereTheyAreDeclared() throws {
    let manifest = try PackageManifest.ofRepository()
    let imports = try SourceImports.ofRepository(below: "Sources") + SourceImports.ofRepository(below: "Tests")
    #expect(ImportChecker().undeclared(imports, in: manifest) == [])
  }

  @Test func everyDeclaredDependencyIsImported() throws {
    let imports = try SourceImports.ofRepository(below: "Sources") + SourceImports.ofRepository(below: "Tests")
    #expect(ImportChecker().unused(try PackageManifest.ofRepository(), imports) == [])
  }

  @Test func everyTargetOfThePackageIsInTheTableUnlessItIsATest() throws {
    let targets = Set(try PackageManifest.ofRepository().dependenciesByTarget.keys.filter { !$0.hasSuffix("Tests") })
    #expect(targets == Set(AllowedImports.rulesByTarget.keys))
  }

  @Test func serverAndClientShareTheProtocolOnly() {
    let rules = AllowedImports.rulesByTarget
    let servers: Set = ["ZDCServer", "ZDCServerPostgres", "ZDCServerS3", "ZDCServerSQLite"]
    for server in servers.union(["zdc-server"]) {
      #expect(rules[server]?.ours.isSubset(of: servers.union(["ZDCProtocol"])) == true)
    }
    for client in Self.client {
      #expect(rules[client]?.ours.isDisjoint(with: servers) == true)
      #expect(rules[client]?.others.contains("Hummingbird") == false)
    }
  }

  @Test func productCodeNeverImportsTheTestingProduct() {
    for (target, rule) in AllowedImports.rulesByTarget {
      #expect(!rule.ours.contains("ZeroDarkCloudTesting"), "\(target)")
    }
  }
}
