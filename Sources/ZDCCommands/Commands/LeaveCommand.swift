internal import ZeroDarkCloud

/// `zdc leave`.
package enum LeaveCommand {
  /// `{"durableMs"?,"nodes","ownerID","path","queuedMs"}`
  struct Report: Encodable, Sendable {
    var path: String
    var ownerID: String
    /// The number of nodes removed from this device's tree.
    var nodes: Int
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  /// Ends this account's access to a branch or tree of another user, and removes it from the account's tree.
  package static func leave(_ options: ProfileOptions, path: String, queuesOnly: Bool) async throws {
    let path = try NodePath.parse(path)
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    let (owner, removed) = try await opened.connection.write { [opened, user = engine.user] transaction in
      try leave(path, opened.cloud(transaction, user))
    }
    var report = Report(
      path: path.fullPath(), ownerID: owner, nodes: removed.count, queuedMs: WallClock.milliseconds)
    if !queuesOnly { report.durableMs = try await settle(engine, removed) }
    try options.output.object(report)
    let shown = ShownName.text(path.fullPath())
    options.output.note(queuesOnly ? "queued: zdc sync leaves \(shown)" : "left \(shown) (\(owner) keeps it)")
    try await opened.collectSpool()
    try await opened.close()
  }

  private static func leave(_ path: ZDCTreesystemPath, _ tree: WritableTree) throws -> (owner: String, [String]) {
    let root = try tree.requireNode(at: path)
    guard let anchor = root.anchor else {
      throw CommandError(
        .usage, "ownNode", "\(ShownName.text(path.fullPath())) belongs to this account",
        hint: "zdc unshare ends another user's access, zdc rm removes the node")
    }
    let parent = tree.cloud.parentNode(root)
    if let parent, parent.anchor?.userID == anchor.userID { throw inside(path) }
    if parent != nil { return (anchor.userID, try tree.delete(root)) }
    let uuids = try tree.uuids(atOrBelow: root.uuid)
    _ = try tree.writable.unshare(nodeID: root.uuid, withUserID: tree.cloud.localUserID)
    return (anchor.userID, Array(uuids))
  }

  private static func inside(_ path: ZDCTreesystemPath) -> CommandError {
    CommandError(
      .usage, "insideBranch", "\(ShownName.text(path.fullPath())) is inside a branch of another user",
      hint: "leave the whole branch by its topmost node, see zdc shares; zdc rm removes this node for all members")
  }

  private static func settle(_ engine: Engine, _ removed: [String]) async throws -> UInt64 {
    let progress = ProgressDisplay(ProgressLine(verb: "leave", itemsTotal: 1), isEnabled: false)
    try await engine.settle(NodeSet(removed), progress: progress)
    return WallClock.milliseconds
  }
}
