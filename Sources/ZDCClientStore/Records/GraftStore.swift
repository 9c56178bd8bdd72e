internal import Foundation
internal import GRDB
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// Branches of other users that the user has put into their own tree, inside one transaction.
///
/// A graft is a pointer in the user's home tree, and the zone that is shown in its place.
package struct GraftStore {
  private let transaction: ZDCReadTransaction

  init(_ transaction: ZDCReadTransaction) { self.transaction = transaction }

  /// Returns the pointer in whose place a row is shown; nil unless the row is the root of a grafted branch.
  package func pointer(to row: NodeRow) throws -> NodeRow? {
    guard row.parent == nil else { return nil }
    return try pointer(toZone: row.zone)
  }

  /// Returns the pointer in the user's own tree in whose place a zone of another user is shown.
  package func pointer(toZone id: Int64) throws -> NodeRow? {
    guard let zone = try transaction.zones.zone(id: id), zone.owner != nil,
      let pointer = try transaction.mounts.pointer(ofZone: id).flatMap({ try transaction.nodes.parent(id: $0) }),
      try transaction.zones.zone(id: pointer.zone)?.owner == nil
    else { return nil }
    return pointer
  }

  /// Returns the roots of grafted branches whose pointer is a node, or below it, in the same zone.
  package func roots(below node: NodeRow) throws -> [NodeRow] {
    try transaction.mounts.zones(below: node.id).compactMap { zone in
      guard try pointer(toZone: zone) != nil else { return nil }
      return try transaction.nodes.root(zone: zone)
    }
  }

  /// Whether the user leaves the zone: it has no nodes any more, and is followed until the log says that they left, or
  /// the server has ended the membership in a zone whose owner has closed their account.
  package func isLeft(zone: Int64) throws -> Bool {
    try transaction.database.hasRow("SELECT 1 FROM zdc_left_zone WHERE zone = ?", [zone])
  }

  /// Returns grafted zones that were never pulled.
  package func unpulled(localUser: Int64, tree: String) throws -> Set<Int64> {
    let query = """
      SELECT id FROM zdc_zone
      WHERE localUser = ? AND appTreeID = ? AND owner IS NOT NULL AND headSeq IS NULL AND mount IS NOT NULL
      """
    var zones: Set<Int64> = []
    try transaction.database.forEachRow(query, [localUser, tree]) { zones.insert($0[0]) }
    return zones
  }
}

extension ZDCReadTransaction {
  package var grafts: GraftStore { GraftStore(self) }
}

extension NodeRow {
  /// Whether the row stands for the root of a zone whose record was not read yet. Records have key generations from 1.
  package var isPlaceholder: Bool { parent == nil && keyGen == 0 }

  /// The same node in a row that is not inserted yet.
  fileprivate init(copyOf row: NodeRow, uuid: String) {
    self.init(
      uuid: uuid, zone: row.zone, nodeID: row.nodeID, parent: row.parent, depth: row.depth, nameTag: row.nameTag,
      name: row.name, key: row.key, keyGen: row.keyGen, historyWrap: row.historyWrap, createdMs: row.createdMs,
      burnMs: row.burnMs, cloud: row.cloud, content: row.content, quarantine: row.quarantine, unused: row.unused)
  }
}

/// Begins and ends grafts, inside one transaction.
package struct GraftChange {
  private let transaction: ZDCReadWriteTransaction
  private let localUser: Int64
  private let user: UserID

  package init(_ transaction: ZDCReadWriteTransaction, localUser: Int64, user: UserID) {
    (self.transaction, self.localUser, self.user) = (transaction, localUser, user)
  }

  private var now: UInt64 { transaction.context.clock() }

  // MARK: Beginning

  /// Follows the zone that a pointer names, and inserts a placeholder for its root. The engine reads it with the next pull.
  ///
  /// - Returns: The zone; nil if a zone that is followed already is another one than the pointer names.
  package func follow(_ target: PointerTarget, appTreeID: String) throws -> Int64? {
    if let known = try transaction.zones.zone(localUser: localUser, target.zone) {
      guard try transaction.grafts.isLeft(zone: known.id) else {
        return try known.begins(with: target.genesis, transaction) ? known.id : nil
      }
      // The user came back before their removal was sent.
      try remove(known)
    }
    let zone = try insertZone(target, appTreeID)
    var root = NodeRow(
      uuid: "\(user.text)|\(appTreeID)|\(target.node.text)", zone: zone.id, nodeID: target.node, depth: 0,
      nameTag: .zero, name: [], key: .random(), keyGen: 0, createdMs: now)
    try transaction.nodes.insert(&root)
    transaction.signal(.queue(localUser: localUser))
    return zone.id
  }

  /// Follows a zone that a known pointer in another user's zone names, and shows it in the pointer's place.
  ///
  /// - Returns: The zone.
  package func follow(_ target: PointerTarget, at pointer: NodeRow, appTreeID: String) throws -> Int64 {
    let zone = try insertZone(target, appTreeID)
    try show(zone, root: target.node, at: pointer)
    return zone.id
  }

  /// Shows a zone, whose root has no row, in the place of a pointer that the app knows.
  ///
  /// The pointer's row becomes the placeholder for the root, with the app's links and tags. The pointer gets a new row,
  /// with the operations that are queued.
  package func show(_ zone: ZoneRow, root node: NodeID, at pointer: NodeRow) throws {
    let root = NodeRow(
      id: pointer.id, uuid: pointer.uuid, zone: zone.id, nodeID: node, depth: 0, nameTag: .zero, name: [],
      key: .random(), keyGen: 0, createdMs: pointer.createdMs)
    try transaction.nodes.update(root)
    try transaction.database.execute(sql: "DELETE FROM zdc_pointer WHERE node = ?", arguments: [root.id])
    var place = NodeRow(copyOf: pointer, uuid: UUIDv7.make(atMs: now))
    try transaction.nodes.insert(&place)
    for var operation in try transaction.operations.operations(node: root.id) where operation.zone == pointer.zone {
      operation.node = place.id
      try transaction.operations.update(operation)
    }
    try transaction.mounts.set(zone: zone.id, at: place.id)
  }

  private func insertZone(_ target: PointerTarget, _ appTreeID: String) throws -> ZoneRow {
    var zone = ZoneRow(
      localUser: localUser, appTreeID: appTreeID, trunk: .home, zone: target.zone, owner: target.owner,
      genesis: target.genesis)
    try transaction.zones.insert(&zone)
    return zone
  }

  // MARK: Ending

  /// Removes a zone's nodes, and those of zones shown inside of it, and queues the user's removal from their access lists.
  ///
  /// - Parameters:
  ///   - before: An operation that is sent first.
  ///   - time: The earliest time at which the removal is sent, or 0.
  package func leave(zone id: Int64, after before: Int64?, notBeforeMs time: UInt64 = 0) throws {
    guard let zone = try transaction.zones.zone(id: id), zone.owner != nil else { return }
    if let root = try transaction.nodes.root(zone: id) {
      for inner in try transaction.mounts.zones(below: root.id) {
        try leave(zone: inner, after: before, notBeforeMs: time)
      }
      try transaction.nodes.deleteSubtree(of: root.id)
    }
    guard zone.head?.acl.fields.entry(for: user) != nil else { return try remove(zone) }
    try empty(zone)
    // Where the owner has closed their account, the access list cannot change any more. The engine ends the membership
    // on the server, and removes the zone.
    guard zone.ownerAccount == .open else { return transaction.signal(.queue(localUser: localUser)) }
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: id, kind: .changeList, node: nil, nodeUUID: UUIDv7.make(atMs: now),
      nodeID: zone.zone.root, createdMs: now)
    operation.listChange = .remove(user)
    if time > 0 { (operation.reason, operation.notBeforeMs) = (.backoff, time) }
    try transaction.operations.insert(&operation, dependsOn: before.map { [$0] } ?? [])
    transaction.signal(.queue(localUser: localUser))
  }

  /// Keeps nothing of a zone but its log.
  private func empty(_ zone: ZoneRow) throws {
    for statement in [
      "DELETE FROM zdc_operation WHERE zone = ?", "DELETE FROM zdc_unreadable WHERE zone = ?",
      "DELETE FROM zdc_delegate_failure WHERE zone = ?",
      "UPDATE zdc_leaf SET pending = 0 WHERE zone = ? AND pending <> 0",
      "INSERT OR IGNORE INTO zdc_left_zone (zone) VALUES (?)",
    ] { try transaction.database.execute(sql: statement, arguments: [zone.id]) }
    try transaction.mounts.set(zone: zone.id, at: nil)
    forgetCaches(zone)
  }

  /// Removes a zone that is followed no longer.
  package func remove(_ zone: ZoneRow) throws {
    try transaction.zones.delete(zone)
    forgetCaches(zone)
    try transaction.mounts.resolveCircles()
  }

  private func forgetCaches(_ zone: ZoneRow) {
    transaction.cloudState.forget(zone: zone.id)
    transaction.nodes.invalidate()
    transaction.operations.invalidate()
    transaction.mounts.invalidate()
    transaction.unreadable.invalidate()
    transaction.delegateFailures.invalidate()
  }

  /// Deletes a pointer, here and in the cloud.
  ///
  /// - Returns: The queued operation; nil if the cloud never had the pointer.
  @discardableResult
  package func delete(_ pointer: NodeRow) throws -> OperationRow? {
    let isInCloud =
      try pointer.isUploaded || transaction.operations.nodesInFlight(zone: pointer.zone).contains(pointer.id)
    let uuid = try transaction.shown(pointer).uuid
    try transaction.nodes.deleteSubtree(of: pointer.id)
    transaction.mounts.invalidate()
    try transaction.mounts.resolveCircles()
    guard isInCloud else { return nil }
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: pointer.zone, kind: .delete, node: nil, nodeUUID: uuid,
      nodeID: pointer.nodeID, changeset: pointer.nameInCloud, createdMs: now)
    try transaction.operations.insert(&operation)
    transaction.signal(.queue(localUser: localUser))
    return operation
  }
}

extension ZoneRow {
  /// Whether the log begins with that commit, as far as this device knows it.
  package func begins(with commit: CommitHash, _ transaction: ZDCReadTransaction) throws -> Bool {
    let first = try genesis ?? CommitLogStore(db: transaction.database, zone: id).hash(seq: 0)
    return first.map { $0 == commit } ?? true
  }
}
