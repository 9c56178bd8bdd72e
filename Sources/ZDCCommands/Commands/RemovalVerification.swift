internal import ZDCTreesystem
internal import ZeroDarkCloud

/// `zdc unshare --verify`: tries a removed user's old keys on what was written since, tree by tree.
struct RemovalVerification {
  let engine: Engine
  let user: String

  /// `{"contents","keyGenerations","lastNumber","lists","missing","number","readable","records","tree","userID"}`
  private struct Report: Encodable, Sendable {
    /// The path of the tree's root.
    var tree: String
    var userID: String
    var number: UInt64
    var lastNumber: UInt64
    var keyGenerations: [UInt32]
    var records: Int
    var lists: Int
    var contents: Int
    var missing: Int
    var readable: Int

    init(_ check: ZDCAccessCheck, of tree: String) {
      (self.tree, userID, keyGenerations) = (tree, check.userID, check.keyGenerations)
      (number, lastNumber) = (check.commitNumber, check.lastCommitNumber)
      (records, lists, contents) = (check.recordCount, check.listCount, check.contentCount)
      (missing, readable) = (check.missingCount, check.readableCount)
    }
  }

  /// `{"cloudID","kind"?,"number"?,"path"?}`
  private struct Node: Encodable, Sendable {
    var cloudID: String
    var path: String?
    /// What opens; nil for a node with old keys.
    var kind: String?
    var number: UInt64?
  }

  private struct Tree: Sendable {
    var root: ZDCNode
    var path: String
  }

  /// Prints the result for each tree at or below a path from which the user was removed.
  ///
  /// - Returns: The number of objects that the user can open.
  func run(below path: ZDCTreesystemPath) async throws -> Int {
    var readable = 0
    for tree in try await trees(below: path) {
      let check = try await engine.opened.sync.verifyRemoval(
        ofUserID: user, forNodeID: tree.root.uuid, forLocalUserID: engine.user)
      try await show(check, tree)
      try await printOldKeys(tree)
      readable += check.readableCount
    }
    return readable
  }

  private func trees(below path: ZDCTreesystemPath) async throws -> [Tree] {
    try await engine.opened.reader.read { [engine, user] transaction in
      let cloud = try engine.opened.cloud(transaction, engine.user).cloud
      let named = cloud.node(path: path).map { [Tree(root: $0, path: path.fullPath())] } ?? []
      let inner = cloud.sharedTreeRoots().compactMap { root -> Tree? in
        guard let place = cloud.path(for: root), place.trunk == path.trunk, place != path,
          place.pathComponents.starts(with: path.pathComponents)
        else { return nil }
        return Tree(root: root, path: place.fullPath())
      }
      return (named + inner).filter { tree in
        cloud.accessReceipts(forNodeID: tree.root.uuid).contains { $0.userID == user }
      }
    }
  }

  private func show(_ check: ZDCAccessCheck, _ tree: Tree) async throws {
    let output = engine.opened.output
    let report = Report(check, of: tree.path)
    try output.object(report)
    output.line("\(ShownName.text(tree.path)): commits \(report.number) to \(report.lastNumber) were verified")
    output.line(
      "  \(Amounts.count(report.records, "record")), \(Amounts.count(report.lists, "access list")) and "
        + "\(Amounts.count(report.contents, "content")) tried, \(report.readable) open with the old keys of \(user)")
    if report.missing > 0 {
      output.line("  \(Amounts.count(report.missing, "replaced object")) not tried: the server no longer has them")
    }
    for node in try await named(check.readable) {
      try output.object(node)
      let shown = ShownName.text(node.path ?? node.cloudID)
      output.line("  \(shown): the \(node.kind ?? "") of commit \(node.number ?? 0) opens")
    }
  }

  private func named(_ found: [ZDCAccessCheck.Readable]) async throws -> [Node] {
    try await engine.opened.reader.read { [engine] transaction in
      let cloud = try engine.opened.cloud(transaction, engine.user).cloud
      return found.map { found in
        Node(
          cloudID: found.cloudID, path: Self.path(of: found.cloudID, cloud), kind: found.kind.rawValue,
          number: found.commitNumber)
      }
    }
  }

  /// Prints the nodes that still have old keys, a page at a time.
  private func printOldKeys(_ tree: Tree) async throws {
    let output = engine.opened.output
    var last: String?
    repeat {
      let page = try await oldKeys(tree, after: last)
      for node in page {
        try output.object(node)
        output.line("  \(ShownName.text(node.path ?? node.cloudID)): not written since, has an old key")
      }
      last = page.last?.cloudID
    } while last != nil
  }

  private func oldKeys(_ tree: Tree, after last: String?) async throws -> [Node] {
    try await engine.opened.reader.read { [engine] transaction in
      let cloud = try engine.opened.cloud(transaction, engine.user).cloud
      return cloud.cloudIDsWithOldKeys(forNodeID: tree.root.uuid, after: last).map {
        Node(cloudID: $0, path: Self.path(of: $0, cloud))
      }
    }
  }

  private static func path(of cloudID: String, _ cloud: ZDCCloudReadTransaction) -> String? {
    cloud.node(cloudID: cloudID).flatMap { cloud.path(for: $0)?.fullPath() }
  }

  static func failed(_ count: Int) -> CommandError {
    CommandError(
      .failure, "oldKeysOpen", "\(Amounts.count(count, "object")) written since can be read by the removed user",
      hint: "a device uses keys that it may not use; write these nodes again on another one, and revoke its access")
  }
}
