internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// Lists the nodes of a user's trees that the verified logs have deleted and the server still keeps.
struct Trash {
  let session: SyncSession

  /// Returns a page of deleted nodes, newest deletion first.
  func page(before: Int64, limit: Int) async throws -> [ZDCDeletedNode] {
    var (found, last): ([ZDCDeletedNode], Int64) = ([], before)
    while found.count < limit {
      let (before, room) = (last, limit - found.count)
      let page = try await session.database.asyncRead { try tops($0, before: before, limit: room) }
      guard let oldest = page.last else { break }
      last = oldest.id
      found += try await entries(page)
    }
    return found
  }

  /// Apps create nodes in these trunks.
  private func tops(_ transaction: ZDCReadTransaction, before: Int64, limit: Int) throws -> [FormerVersion] {
    let zones = try transaction.zones.zones(localUser: session.localUser).filter { zone in
      (zone.trunk == .home || zone.trunk == .prefs) && zone.appTreeID == session.appTreeID
    }
    return try FormerStore(transaction).deletedTops(zones: zones.map(\.id), before: before, limit: limit)
  }

  private func entries(_ tops: [FormerVersion]) async throws -> [ZDCDeletedNode] {
    let gone = try await session.database.asyncRead { transaction in
      // A node that was restored is live again.
      try tops.filter { try transaction.leaves(zone: $0.zone).leaf($0.node) == nil }
    }
    let read = try await FormerReader(session: session).read(gone)
    return try await session.database.asyncRead { transaction in
      var places = FormerPlaces(session: session, transaction: transaction)
      return try read.compactMap { read in try entry(read, transaction, &places) }
    }
  }

  private func entry(
    _ read: FormerReader.Read, _ transaction: ZDCReadTransaction, _ places: inout FormerPlaces
  ) throws -> ZDCDeletedNode? {
    // A pointer is no node for apps. What it showed is a zone of its own.
    guard let opened = read.opened, opened.opened.secrets.pointer == nil else { return nil }
    let version = read.version
    let parent = try places.parent(of: version)
    return ZDCDeletedNode(
      id: version.record.text, cloudID: version.node.text, name: opened.opened.name,
      path: try places.path(below: parent, version).appendingComponent(opened.opened.name),
      deletedAt: Date(ms: version.endMs), deletedByID: version.endWriter.text,
      nodeCount: try FormerStore(transaction).branchCount(of: version),
      dataSize: opened.content?.secrets.sizes.data,
      isKept: read.state.hasRecord && (opened.content == nil || read.state.hasContent),
      keptUntil: read.state.untilMs == 0 ? nil : Date(ms: read.state.untilMs), hasParent: parent != nil,
      former: version)
  }
}

/// Where former versions were, inside one transaction.
struct FormerPlaces {
  let session: SyncSession
  let transaction: ZDCReadTransaction
  private var paths: [Int64: ZDCTreesystemPath] = [:]

  init(session: SyncSession, transaction: ZDCReadTransaction) {
    (self.session, self.transaction) = (session, transaction)
  }

  /// Returns the folder that a version was in, if it is still there.
  func parent(of version: FormerVersion) throws -> NodeRow? {
    try transaction.nodes.parent(zone: version.zone, nodeID: version.expected.leaf.parent)
  }

  /// Returns the folder's path. If it is gone, the path is that of the zone's root.
  mutating func path(below parent: NodeRow?, _ version: FormerVersion) throws -> ZDCTreesystemPath {
    guard let row = try parent ?? transaction.nodes.root(zone: version.zone) else {
      return ZDCTreesystemPath(pathComponents: [])
    }
    if let known = paths[row.id] { return known }
    let path = try session.path(row, in: transaction)
    paths[row.id] = path
    return path
  }
}
