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
    /// The number of nodes removed from this device's tree.
    var nodes: Int
    var queuedMs: UInt64
    var durableMs: UInt64?
  }

  /// - Parameter destination: The new path; with a trailing slash, the folder to move the node into.
  package static func move(
    _ options: ProfileOptions, from source: String, to destination: String, queuesOnly: Bool, isDryRun: Bool
  ) async throws {
    let from = try NodePath.parse(source)
    let named = try NodePath.parse(destination)
    let path = destination.hasSuffix("/") ? named.appendingComponent(from.nodeName) : named
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    let seen = try await SeenNodes([from], engine)
    if !queuesOnly { try await engine.pull() }
    let uuid = try await opened.requiringTree(engine.user) {
      try await opened.change(isDryRun: isDryRun) { transaction in
        let tree = try opened.cloud(transaction, engine.user)
        let node = try seen.requireNode(at: from, tree)
        try tree.requireTarget(path, of: from)
        try tree.move(node, to: path)
        return node.uuid
      }
    }
    var report = MoveReport(from: from.fullPath(), path: path.fullPath(), queuedMs: WallClock.milliseconds)
    if !queuesOnly, !isDryRun { report.durableMs = try await settle(engine, NodeSet([uuid]), "mv") }
    try options.output.object(report)
    options.output.note(
      "\(isDryRun ? "would move " : "")\(ShownName.text(from.fullPath())) -> \(ShownName.text(path.fullPath()))")
    try await opened.close()
  }

  package static func remove(
    _ options: ProfileOptions, paths: [String], recursive: Bool, queuesOnly: Bool, isDryRun: Bool
  ) async throws {
    let paths = try paths.map(NodePath.parse)
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    let seen = try await SeenNodes(paths, engine)
    if !queuesOnly { try await engine.pull() }
    let removed = try await opened.requiringTree(engine.user) {
      try await opened.change(isDryRun: isDryRun) { transaction in
        let tree = try opened.cloud(transaction, engine.user)
        return try paths.map { try remove($0, tree, seen, recursive: recursive) }
      }
    }
    let queuedMs = WallClock.milliseconds
    var durableMs: UInt64?
    if !queuesOnly, !isDryRun { durableMs = try await settle(engine, NodeSet(removed.joined()), "rm") }
    for (path, uuids) in zip(paths, removed) {
      try options.output.object(
        RemoveReport(path: path.fullPath(), nodes: uuids.count, queuedMs: queuedMs, durableMs: durableMs))
      options.output.note(
        "\(isDryRun ? "would remove" : "removed") \(ShownName.text(path.fullPath())) (\(Amounts.count(uuids.count, "node")))"
      )
    }
    try await opened.collectSpool()
    try await opened.close()
  }

  private static func remove(
    _ path: ZDCTreesystemPath, _ tree: WritableTree, _ seen: SeenNodes, recursive: Bool
  ) throws -> [String] {
    guard !path.isTrunk else {
      throw CommandError(.usage, "invalidPath", "\(path.fullPath()) is a trunk: it cannot be moved or removed")
    }
    let node = try seen.requireNode(at: path, tree)
    guard try recursive || !tree.hasChildren(node) else {
      throw CommandError(
        .usage, "notEmpty", "\(ShownName.text(path.fullPath())) is not empty",
        hint: "add --recursive to remove all of it")
    }
    return try tree.delete(node)
  }

  private static func settle(_ engine: Engine, _ nodes: NodeSet, _ verb: String) async throws -> UInt64 {
    let progress = ProgressDisplay(
      ProgressLine(verb: verb, itemsTotal: nodes.count), isEnabled: engine.opened.output.showsProgress)
    defer { progress.finish() }
    try await engine.settle(nodes, progress: progress)
    return WallClock.milliseconds
  }
}

/// The nodes that the user meant by their paths: those in the local tree before the pull.
private struct SeenNodes: Sendable {
  private let uuidByPath: [ZDCTreesystemPath: String]

  init(_ paths: [ZDCTreesystemPath], _ engine: Engine) async throws {
    uuidByPath = try await engine.opened.reader.read { transaction in
      let tree = try engine.opened.cloud(transaction, engine.user)
      var seen: [ZDCTreesystemPath: String] = [:]
      for path in paths { seen[path] = try tree.node(at: path)?.uuid }
      return seen
    }
  }

  /// - Throws: ``CommandError`` with `otherNode` if another node now has the path.
  func requireNode(at path: ZDCTreesystemPath, _ tree: WritableTree) throws -> ZDCNode {
    let node = try tree.node(at: path)
    guard let seen = uuidByPath[path], seen != node?.uuid else { return try tree.requireNode(at: path) }
    let moved = tree.cloud.path(forNodeID: seen).map { "the node is now at \(ShownName.text($0.fullPath()))" }
    guard node != nil || moved != nil else { return try tree.requireNode(at: path) }
    throw CommandError(
      .tryAgain, "otherNode",
      "\(ShownName.text(path.fullPath())) changed in the cloud: \(moved ?? "another node has this path now")",
      hint: "nothing was changed; check with zdc ls, then run the command again")
  }
}

extension WritableTree {
  /// - Throws: ``CommandError`` if the node cannot be moved there.
  fileprivate func requireTarget(_ path: ZDCTreesystemPath, of source: ZDCTreesystemPath) throws {
    guard !source.isTrunk else {
      throw CommandError(.usage, "invalidPath", "\(source.fullPath()) is a trunk: it cannot be moved or removed")
    }
    guard path == source || !path.pathComponents.starts(with: source.pathComponents) || path.trunk != source.trunk
    else {
      throw CommandError(
        .usage, "belowItself", "\(ShownName.text(source.fullPath())) cannot be moved into itself")
    }
    guard let parent = path.parent(), let node = try node(at: parent) else { return }
    try requireFolder(node, parent)
  }
}
