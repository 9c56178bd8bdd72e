internal import ZeroDarkCloud

/// `zdc mv` and `zdc rm`.
package enum ChangeCommands {
  /// `{"durableMs"?,"from","path","queuedMs"}`
  struct MoveReport: Encodable, Sendable {
    var from: String
    var path: String
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  /// `{"durableMs"?,"nodes","path","queuedMs"}`
  struct RemoveReport: Encodable, Sendable {
    var path: String
    /// How many nodes of this device's tree went.
    var nodes: Int
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  /// - Parameter destination: The new path; with a slash at its end, the folder that the node goes into.
  package static func move(
    _ options: ProfileOptions, from source: String, to destination: String, queuesOnly: Bool
  ) async throws {
    let from = try NodePath.parse(source)
    let named = try NodePath.parse(destination)
    let path = destination.hasSuffix("/") ? named.appendingComponent(from.nodeName) : named
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    let uuid = try await opened.connection.write { transaction in
      let tree = try opened.cloud(transaction, engine.user)
      let node = try tree.requireNode(at: from)
      try tree.move(node, to: path)
      return node.uuid
    }
    var report = MoveReport(from: from.fullPath(), path: path.fullPath(), queuedMs: WallClock.milliseconds)
    if !queuesOnly { report.durableMs = try await settle(engine, [uuid], "mv") }
    try options.output.object(report)
    options.output.note("\(ShownName.text(from.fullPath())) -> \(ShownName.text(path.fullPath()))")
    try await opened.close()
  }

  package static func remove(
    _ options: ProfileOptions, paths: [String], recursive: Bool, queuesOnly: Bool
  ) async throws {
    let paths = try paths.map(NodePath.parse)
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    if !queuesOnly { try await engine.pull() }
    let removed = try await opened.connection.write { transaction in
      let tree = try opened.cloud(transaction, engine.user)
      return try paths.map { try remove($0, tree, recursive: recursive) }
    }
    let queuedMs = WallClock.milliseconds
    var durableMs: UInt64?
    if !queuesOnly { durableMs = try await settle(engine, Set(removed.joined()), "rm") }
    for (path, uuids) in zip(paths, removed) {
      try options.output.object(
        RemoveReport(path: path.fullPath(), nodes: uuids.count, queuedMs: queuedMs, durableMs: durableMs))
      options.output.note("removed \(ShownName.text(path.fullPath())) (\(Amounts.count(uuids.count, "node")))")
    }
    try await opened.close()
  }

  private static func remove(
    _ path: ZDCTreesystemPath, _ tree: WritableTree, recursive: Bool
  ) throws -> [String] {
    guard !path.isTrunk else {
      throw CommandError(.usage, "invalidPath", "\(path.fullPath()) is a trunk and stays")
    }
    let node = try tree.requireNode(at: path)
    guard try recursive || !tree.hasChildren(node) else {
      throw CommandError(
        .usage, "notEmpty", "\(ShownName.text(path.fullPath())) is not empty",
        hint: "add --recursive to remove all of it")
    }
    return try tree.delete(node)
  }

  private static func settle(_ engine: Engine, _ nodes: Set<String>, _ verb: String) async throws -> UInt64 {
    let progress = ProgressDisplay(
      ProgressLine(verb: verb, itemsTotal: nodes.count), isEnabled: engine.opened.output.showsProgress)
    defer { progress.finish() }
    try await engine.settle(nodes, progress: progress)
    return WallClock.milliseconds
  }
}
