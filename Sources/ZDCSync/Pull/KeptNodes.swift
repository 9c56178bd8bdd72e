internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// Keeps nodes of an ended branch that have queued changes, if the app asks for it (S-9). They become new nodes of the local
/// user's own home trunk: with the same rows, links and tags, but with fresh IDs and keys, because the other members know
/// the old ones.
struct KeptNodes {
  let lost: LostAccess
  private var session: SyncSession { lost.session }
  private var transaction: ZDCReadWriteTransaction { lost.transaction }
  private var nodes: NodeStore { lost.transaction.nodes }
  private let places: LocalTreeResolver

  init(lost: LostAccess) {
    self.lost = lost
    places = LocalTreeResolver(session: lost.session, transaction: lost.transaction)
  }

  /// Notifies the app of the queued changes, and moves the nodes that it keeps, with those above them, to the home trunk.
  ///
  /// - Returns: False if the app keeps nothing, so that the branch is still to be deleted.
  func keep(_ before: NodeRow) throws -> Bool {
    let dirty = try lost.removal.dirtyNodes(atOrBelow: before)
    guard !dirty.isEmpty, let home = try homeRoot() else { return false }
    let path = try session.path(before, in: transaction)
    // Operations that the app queues in the call below are not parked. They show which nodes it keeps.
    try lost.removal.parkAll(try nodes.subtree(of: before.id))
    try lost.removal.announceDirty(before, dirty)
    guard let top = try nodes.node(id: before.id) else {
      try lost.removal.recordDirty(before, path)
      return true
    }
    let wanted = try lost.removal.wantedNodes(try nodes.subtree(of: top.id))
    guard wanted.contains(top.id) else { return false }
    try deleteOthers(below: top, except: wanted)
    try move(top, to: home, from: path)
    try lost.removal.recordDirty(before, path)
    transaction.signal(.queue(localUser: session.localUser))
    return true
  }

  private func homeRoot() throws -> NodeRow? {
    let home = try transaction.zones.trunk(.home, localUser: session.localUser, appTreeID: session.appTreeID)
    return try home.flatMap { try nodes.root(zone: $0.id) }
  }

  /// Deletes the topmost nodes that the app does not keep, and notifies it.
  private func deleteOthers(below top: NodeRow, except wanted: Set<Int64>) throws {
    for row in try nodes.subtree(of: top.id) where !wanted.contains(row.id) {
      guard let parent = row.parent, wanted.contains(parent), try nodes.node(id: row.id) != nil else { continue }
      try lost.journal(row)
      try lost.removal.delete(row)
    }
  }

  private func move(_ top: NodeRow, to home: NodeRow, from old: ZDCTreesystemPath) throws {
    let place = try transaction.place(of: top)
    let name = place.name.isEmpty ? Array(top.nodeID.text.utf8) : place.name
    if let pointer = try transaction.grafts.pointer(to: top) {
      try GraftChange(transaction, localUser: session.localUser, user: session.user).delete(pointer)
    }
    try BranchRows(transaction, from: lost.zone, to: home.zone).moveLocalNodes(below: top.id)
    guard var row = try nodes.node(id: top.id) else { throw ZDCError(.corruptDatabase) }
    try places.place(&row, under: home, name: try places.freeName(name, under: home, except: row.id))
    let removal = RemoteRemoval(
      session: session, zone: home.zone, transaction: transaction, receivedMs: lost.receivedMs)
    for id in try nodes.subtreeIDs(of: row.id) {
      guard let kept = try nodes.node(id: id) else { throw ZDCError(.corruptDatabase) }
      try removal.resetCloudFacts(try withFreshKey(kept), isWanted: true)
    }
    _ = try places.announceMove(row, from: old)
  }

  /// Stores the row with another key, without queued changes of the branch's access lists.
  private func withFreshKey(_ row: NodeRow) throws -> NodeRow {
    for operation in try transaction.operations.operations(node: row.id) where operation.kind == .changeList {
      try transaction.operations.delete(id: operation.id)
    }
    var row = row
    (row.key, row.keyGen) = (.random(), 1)
    try nodes.update(row)
    return row
  }
}
