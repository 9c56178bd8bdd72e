package import Foundation
internal import ZDCTreesystem
internal import ZeroDarkCloud

/// `zdc history`, `zdc restore` and `zdc trash`: what the server keeps of replaced and deleted nodes.
package enum HistoryCommands {
  /// `{"author","date","id","isContentKept","keptUntil"?,"name","number","replacedAt","replacedBy","size"?}`
  struct Version: Encodable, Sendable {
    /// 1 for the version before the newest one.
    var number: Int
    var id: String
    var name: String
    var date: String
    var author: String
    var replacedAt: String
    var replacedBy: String
    /// Nil without content.
    var size: UInt64?
    var isContentKept: Bool
    var keptUntil: String?

    init(_ version: ZDCNodeVersion, number: Int) {
      self.number = number
      (id, name) = (version.id, version.name)
      (date, replacedAt) = (version.date.formatted(.iso8601), version.replacedAt.formatted(.iso8601))
      (author, replacedBy) = (version.authorID, version.replacedByID)
      (size, isContentKept) = (version.content?.dataSize, version.isContentKept)
      keptUntil = version.keptUntil?.formatted(.iso8601)
    }

    var line: String {
      let size = size.map(Amounts.bytes) ?? "no content"
      let content = self.size == nil || isContentKept ? "" : "  (content no longer kept)"
      let until = keptUntil.map { "  until \($0)" } ?? ""
      return "\(number)  \(date)  \(size)  \(ShownName.text(name))\(until)\(content)"
    }
  }

  /// `{"cloudID","deletedAt","deletedBy","id","isKept","keptUntil"?,"nodes","path","size"?}`
  struct Deleted: Encodable, Sendable {
    var id: String
    var cloudID: String
    var path: String
    var deletedAt: String
    var deletedBy: String
    /// The number of nodes that were deleted with it, itself included.
    var nodes: Int
    var size: UInt64?
    var isKept: Bool
    var keptUntil: String?

    init(_ node: ZDCDeletedNode) {
      (id, cloudID, path) = (node.id, node.cloudID, node.path.fullPath())
      (deletedAt, deletedBy) = (node.deletedAt.formatted(.iso8601), node.deletedByID)
      (nodes, size, isKept) = (node.nodeCount, node.dataSize, node.isKept)
      keptUntil = node.keptUntil?.formatted(.iso8601)
    }

    var line: String {
      let size = nodes > 1 ? Amounts.count(nodes, "node") : size.map(Amounts.bytes) ?? "no content"
      let until = keptUntil.map { "  until \($0)" } ?? ""
      let content = isKept ? "" : "  (content no longer kept)"
      return "\(id.prefix(8))  \(deletedAt)  \(size)  \(ShownName.text(path))\(until)\(content)"
    }
  }

  /// `{"durableMs"?,"left","nodes","path","queuedMs","version"?}`
  struct RestoreReport: Encodable, Sendable {
    var path: String
    /// The id of the version that a node got back.
    var version: String?
    /// The number of nodes that are restored.
    var nodes: Int
    /// The number of nodes that were deleted with them and cannot be restored.
    var left: Int
    var queuedMs: UInt64 = 0
    var durableMs: UInt64?
  }

  /// Which earlier version of a node a user means.
  package enum Choice: Sendable {
    /// The newest one with other content.
    case newest
    case number(Int)
    /// The one that was the newest at that time.
    case asOf(Date)
  }

  // MARK: Listing

  package static func history(_ options: ProfileOptions, path text: String, limit: Int) async throws {
    let path = try NodePath.parse(text)
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    try await engine.pull()
    let node = try await engine.node(at: path)
    let versions = try await opened.sync.versions(ofNodeID: node.uuid, localUserID: engine.user, limit: limit)
    for (index, version) in versions.enumerated() {
      let shown = Version(version, number: index + 1)
      try options.output.object(shown)
      options.output.line(shown.line)
    }
    if versions.isEmpty { options.output.note("the server keeps no earlier version of \(ShownName.text(text))") }
    try await opened.close()
  }

  package static func trash(_ options: ProfileOptions, limit: Int) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    try await engine.pull()
    let deleted = try await opened.sync.deletedNodes(localUserID: engine.user, limit: limit)
    for node in deleted {
      let shown = Deleted(node)
      try options.output.object(shown)
      options.output.line(shown.line)
    }
    if deleted.isEmpty { options.output.note("the server keeps no deleted nodes") }
    try await opened.close()
  }

  // MARK: Restoring

  /// Restores an earlier version of the node at a path, or a deleted node that was there.
  package static func restore(
    _ options: ProfileOptions, path text: String, _ choice: Choice, queuesOnly: Bool
  ) async throws {
    let path = try NodePath.parse(text)
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    try await engine.pull()
    let report: RestoreReport
    if let node = try await engine.optionalNode(at: path) {
      report = try await engine.restore(node, path, choice)
    } else {
      guard case .newest = choice else {
        throw CommandError(
          .usage, "deletedNode", "\(ShownName.text(text)) is deleted: only its last version can be restored")
      }
      report = try await engine.restoreDeleted(
        try await engine.firstDeleted { $0.path == path }, named: text, into: nil)
    }
    try await finish(report, engine, queuesOnly: queuesOnly)
  }

  /// Restores a deleted node.
  ///
  /// - Parameters:
  ///   - id: Its id in the list of deleted nodes, or a prefix of it.
  ///   - folder: Another folder than the one that it was in.
  package static func restore(
    _ options: ProfileOptions, id: String, into folder: String?, queuesOnly: Bool
  ) async throws {
    let folder = try folder.map(NodePath.parse)
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    try await engine.pull()
    guard id.count >= 4 else {
      throw CommandError(.usage, "invalidID", "an id has at least four characters", hint: "list them with zdc trash")
    }
    let report = try await engine.restoreDeleted(try await engine.deleted(id: id), named: id, into: folder)
    try await finish(report, engine, queuesOnly: queuesOnly)
  }

  private static func finish(_ report: RestoreReport, _ engine: Engine, queuesOnly: Bool) async throws {
    var report = report
    let output = engine.opened.output
    report.queuedMs = WallClock.milliseconds
    if !queuesOnly {
      try await engine.settleRestored(report)
      report.durableMs = WallClock.milliseconds
    }
    try output.object(report)
    output.note("restored \(ShownName.text(report.path)) (\(Amounts.count(report.nodes, "node")))")
    try await engine.opened.close()
    guard report.left > 0 else { return }
    output.warning(
      "\(Amounts.count(report.left, "node")) below it are no longer kept by the server, or cannot be opened")
    throw SilentExit(.failure)
  }
}

extension Engine {
  func optionalNode(at path: ZDCTreesystemPath) async throws -> ZDCNode? {
    try await opened.reader.read { [opened, user] transaction in
      try opened.cloud(transaction, user).node(at: path)
    }
  }

  func node(at path: ZDCTreesystemPath) async throws -> ZDCNode {
    if let node = try await optionalNode(at: path) { return node }
    throw CommandError(
      .noInput, "nodeNotFound", "\(ShownName.text(path.fullPath())): no such node in the tree",
      hint: "see what was deleted: zdc trash")
  }

  private func path(of uuid: String) async throws -> String {
    try await opened.reader.read { [opened, user] transaction in
      try opened.cloud(transaction, user).cloud.path(forNodeID: uuid)?.fullPath() ?? ""
    }
  }

  // MARK: Versions

  fileprivate func restore(
    _ node: ZDCNode, _ path: ZDCTreesystemPath, _ choice: HistoryCommands.Choice
  ) async throws -> HistoryCommands.RestoreReport {
    let version = try await version(of: node, path, choice)
    guard version.content?.eTag != node.eTag_data else {
      throw CommandError(.usage, "sameContent", "\(ShownName.text(path.fullPath())) has the content of this version")
    }
    try await opened.sync.restore(version, localUserID: user)
    return HistoryCommands.RestoreReport(path: path.fullPath(), version: version.id, nodes: 1, left: 0)
  }

  /// Returns the version that the user means, if the server still keeps its content.
  func version(
    of node: ZDCNode, _ path: ZDCTreesystemPath, _ choice: HistoryCommands.Choice
  ) async throws -> ZDCNodeVersion {
    let versions = try await opened.sync.versions(ofNodeID: node.uuid, localUserID: user, limit: 10_000)
    let shown = ShownName.text(path.fullPath())
    guard let version = try Self.chosen(choice, of: versions, node, shown) else {
      throw CommandError(
        .noInput, "versionNotFound", "the server keeps no such version of \(shown)",
        hint: "list the versions: zdc history \(shown)")
    }
    guard version.isContentKept else {
      throw CommandError(
        .noInput, "contentGone", "the server no longer keeps the content of this version of \(shown)",
        hint: "list the versions: zdc history \(shown)")
    }
    return version
  }

  private static func chosen(
    _ choice: HistoryCommands.Choice, of versions: [ZDCNodeVersion], _ node: ZDCNode, _ shown: String
  ) throws -> ZDCNodeVersion? {
    switch choice {
    case .newest: return versions.first { $0.isContentKept && $0.content?.eTag != node.eTag_data }
    case .number(let number): return versions.indices.contains(number - 1) ? versions[number - 1] : nil
    case .asOf(let date):
      if let newest = versions.first, newest.replacedAt <= date {
        throw CommandError(.usage, "sameContent", "\(shown) has not changed since then")
      }
      return versions.first { $0.date <= date }
    }
  }

  // MARK: Deleted nodes

  fileprivate func restoreDeleted(
    _ deleted: ZDCDeletedNode?, named text: String, into folder: ZDCTreesystemPath?
  ) async throws -> HistoryCommands.RestoreReport {
    guard let deleted else {
      throw CommandError(
        .noInput, "notDeleted", "\(ShownName.text(text)): no such node in the tree, nor among the deleted ones",
        hint: "see what was deleted: zdc trash")
    }
    let folderID = if let folder { try await node(at: folder).uuid as String? } else { nil as String? }
    guard deleted.hasParent || folderID != nil else {
      throw CommandError(
        .cannotCreate, "folderGone", "the folder of \(ShownName.text(deleted.name)) is gone",
        hint: "name another one: zdc trash restore \(deleted.id.prefix(8)) --into PATH")
    }
    let result = try await opened.sync.restore(deleted, intoFolderID: folderID, localUserID: user)
    return HistoryCommands.RestoreReport(
      path: try await path(of: result.node.uuid), nodes: result.restored, left: result.left)
  }

  /// Returns the newest deletion of the node that the user means: a prefix may not belong to several nodes.
  fileprivate func deleted(id: String) async throws -> ZDCDeletedNode? {
    guard let newest = try await firstDeleted({ $0.id.hasPrefix(id) }), newest.id != id else {
      return try await firstDeleted { $0.id == id }
    }
    if try await firstDeleted({ $0.id.hasPrefix(id) && $0.id != newest.id }) != nil {
      throw CommandError(
        .noInput, "entryNotFound", "\(ShownName.text(id)): more than one entry begins with this id",
        hint: "list the whole ids with zdc trash --json")
    }
    return newest
  }

  fileprivate func firstDeleted(_ isMeant: (ZDCDeletedNode) -> Bool) async throws -> ZDCDeletedNode? {
    var last: ZDCDeletedNode?
    while true {
      let page = try await opened.sync.deletedNodes(localUserID: user, after: last, limit: 500)
      if let found = page.first(where: isMeant) { return found }
      guard let oldest = page.last else { return nil }
      last = oldest
    }
  }

  // MARK: Waiting for the server

  /// Returns when the server has everything that was restored. Restored nodes send no content, so the queue is what shows
  /// how far it is.
  fileprivate func settleRestored(_ report: HistoryCommands.RestoreReport) async throws {
    guard let top = ZDCTreesystemPath(report.path) else { return }
    let nodes = try await opened.reader.read { [opened, user] transaction in
      let tree = try opened.cloud(transaction, user)
      return NodeSet(try tree.node(at: top).map { try tree.uuids(atOrBelow: $0.uuid) } ?? [])
    }
    let line = ProgressLine(verb: "restore", itemsTotal: report.nodes)
    let progress = ProgressDisplay(line, isEnabled: opened.output.showsProgress)
    let poll = Task {
      while !Task.isCancelled {
        try await Task.sleep(for: .seconds(1))
        let left = try await queued(nodes)
        progress.update { $0.itemsDone = max(report.nodes - left, 0) }
      }
    }
    defer {
      poll.cancel()
      progress.finish()
    }
    try await settle(nodes, progress: ProgressDisplay(line, isEnabled: false))
  }
}
