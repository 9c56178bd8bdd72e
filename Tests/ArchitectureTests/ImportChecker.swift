/// Compares imports and declarations with the table. Pure, so that a test can pass violations to it.
struct ImportChecker {
  var rulesByTarget = AllowedImports.rulesByTarget
  var folderRules = AllowedImports.folderRules

  /// Returns the imports of a source file that its target may not use.
  func findings(_ imports: [SourceImport]) -> [String] {
    imports.flatMap { targetFindings($0) + folderFindings($0) }
  }

  private func targetFindings(_ statement: SourceImport) -> [String] {
    guard let rule = rulesByTarget[statement.target] else {
      return ["\(statement.file): target \(statement.target) is not in the table"]
    }
    let allowed = rule.ours.union(rule.others).union(rule.reachable).union(AllowedImports.platform)
    guard !allowed.contains(statement.module) else { return [] }
    return ["\(statement.file):\(statement.line): \(statement.target) may not import \(statement.module)"]
  }

  private func folderFindings(_ statement: SourceImport) -> [String] {
    let broken = folderRules.filter { rule in
      rule.target == statement.target && rule.modules.contains(statement.module)
        && !(rule.publicOnly && !statement.isPublic)
        && !rule.allowedFolders.contains { isInside(statement.folder, $0) }
    }
    return broken.map { "\(statement.file):\(statement.line): \(statement.module) here, but \($0.reason)" }
  }

  private func isInside(_ folder: String, _ allowed: String) -> Bool {
    allowed.isEmpty ? folder.isEmpty : folder.hasPrefix(allowed)
  }

  /// Returns the differences between Package.swift and the table.
  func findings(_ manifest: PackageManifest) -> [String] {
    rulesByTarget.sorted { $0.key < $1.key }.flatMap { target, rule -> [String] in
      guard let declared = manifest.dependenciesByTarget[target] else { return ["\(target) is not in Package.swift"] }
      let surplus = declared.subtracting(rule.ours).subtracting(rule.others).subtracting(AllowedImports.platform)
      let missing = rule.ours.subtracting(declared)
      return surplus.sorted().map { "Package.swift: \(target) may not depend on \($0)" }
        + missing.sorted().map { "Package.swift: \(target) does not declare \($0), which the table lists" }
    }
  }

  /// Returns imports of our own targets that the importing target does not declare; the package manager accepts them.
  func undeclared(_ imports: [SourceImport], in manifest: PackageManifest) -> [String] {
    let found = imports.filter { statement in
      let isOurs = manifest.dependenciesByTarget[statement.module] != nil && statement.module != statement.target
      return isOurs && manifest.dependenciesByTarget[statement.target]?.contains(statement.module) != true
    }
    return found.map { "\($0.file):\($0.line): \($0.target) imports \($0.module) without declaring it" }
  }

  /// Returns dependencies that a target declares but no file of it imports. Executables are exempt: tests declare them
  /// so that they are built before the tests start them.
  func unused(_ manifest: PackageManifest, _ imports: [SourceImport]) -> [String] {
    let used = Dictionary(grouping: imports, by: \.target).mapValues { Set($0.map(\.module)) }
    return used.sorted { $0.key < $1.key }.flatMap { target, modules in
      (manifest.dependenciesByTarget[target] ?? []).subtracting(modules).subtracting(["zdc", "zdc-server"]).sorted()
        .map { "Package.swift: \(target) declares \($0) and imports it nowhere" }
    }
  }
}
