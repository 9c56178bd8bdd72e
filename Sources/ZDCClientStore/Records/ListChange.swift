internal import GRDB
package import ZDCProtocol
internal import ZDCSupport

/// A wanted change of a zone's access list. It names the state that is wanted, so it can be applied to any list.
package enum ListChange: Sendable, Hashable {
  case set(UserID, ZoneACL.Permissions)
  /// Other permissions for a user who is a member. A user who has been removed in the meantime gets no access by it.
  case modify(UserID, ZoneACL.Permissions)
  case remove(UserID)
  /// A fresh key for the zone, unless the list has a newer one than this generation.
  case rotate(after: UInt32)

  package var member: UserID? {
    switch self {
    case .set(let user, _), .modify(let user, _), .remove(let user): user
    case .rotate: nil
    }
  }

  /// Whether the zone gets a fresh key with it, unless a member removes themselves.
  package var replacesKey: Bool {
    switch self {
    case .set, .modify: false
    case .remove, .rotate: true
    }
  }

  /// The same change for the list of a branch inside.
  package var inherited: ListChange {
    switch self {
    case .set(let user, let permissions): .set(user, permissions.inherited)
    case .modify(let user, let permissions): .modify(user, permissions.inherited)
    case .remove, .rotate: self
    }
  }

  /// Above all permissions in the column, for those of a user who is a member.
  private static let ofMember: Int64 = 1 << 16

  /// The column beside the member: their permissions, or 0 for none; the generation for a rotation.
  var number: Int64 {
    switch self {
    case .set(_, let permissions): Int64(permissions.rawValue)
    case .modify(_, let permissions): Int64(permissions.rawValue) | Self.ofMember
    case .remove: 0
    case .rotate(let generation): Int64(generation)
    }
  }

  init(member: UserID?, number: Int64) throws {
    switch member {
    case let member? where number == 0: self = .remove(member)
    case let member?:
      let permissions = ZoneACL.Permissions(rawValue: UInt16(truncatingIfNeeded: number))
      self = number & Self.ofMember == 0 ? .set(member, permissions) : .modify(member, permissions)
    case nil: self = .rotate(after: UInt32(truncatingIfNeeded: number))
    }
  }
}

/// The queued changes of access lists inside one transaction.
package struct ListChangeStore {
  package let operations: OperationStore
  private let nodes: NodeStore

  package init(_ transaction: ZDCReadTransaction) {
    (operations, nodes) = (transaction.operations, transaction.nodes)
  }

  /// The queued changes of lists in a zone, in queue order: those of the zone's own list, whose node is the zone's root,
  /// and those of nodes below it that are to get a list of their own.
  package func changes(zone: Int64) throws -> [OperationRow] {
    try operations.fetchAll("WHERE zone = ? AND kind = 6 ORDER BY id", [zone])
  }

  /// The queued changes of access lists, and the delete of the zone's root, which ends the zone. One query, because each
  /// commit begins with it.
  package func zoneChanges(of zone: ZoneRow) throws -> [OperationRow] {
    try operations.fetchAll(
      """
      WHERE id IN (
        SELECT id FROM zdc_operation INDEXED BY zdc_operation_list WHERE zone = ?1 AND kind = 6
        UNION ALL
        SELECT id FROM zdc_operation INDEXED BY zdc_operation_deleted
        WHERE node IS NULL AND zone = ?1 AND nodeID = ?2)
      ORDER BY id
      """, [zone.id, zone.zone.root.data])
  }

  /// The open dependencies of these changes.
  package func dependencies(zone: Int64) throws -> [Int64: [Int64]] {
    var found: [Int64: [Int64]] = [:]
    let query = """
      SELECT o.id, d.dependsOn FROM zdc_operation o CROSS JOIN zdc_dependency d ON d.operation = o.id
      WHERE o.zone = ? AND o.kind = 6 AND EXISTS (SELECT 1 FROM zdc_operation t WHERE t.id = d.dependsOn)
      ORDER BY o.id, d.dependsOn
      """
    try operations.db.forEachRow(query, [zone]) { found[$0[0], default: []].append($0[1]) }
    return found
  }

  /// The changes of one member's entry in a node's list that were not sent yet, in queue order.
  package func waiting(node: NodeRow, member: UserID) throws -> [OperationRow] {
    try operations.fetchAll(
      "WHERE node = ? AND zone = ? AND kind = 6 AND member = ? AND state <> ? ORDER BY id",
      [node.id, node.zone, member.data, OperationRow.State.inFlight.rawValue])
  }

  /// Whether a change of one member's entry was sent, and its outcome is not known yet.
  package func isInFlight(node: NodeRow, member: UserID) throws -> Bool {
    try !operations.fetchAll(
      "WHERE node = ? AND zone = ? AND kind = 6 AND member = ? AND state = ? LIMIT 1",
      [node.id, node.zone, member.data, OperationRow.State.inFlight.rawValue]
    ).isEmpty
  }

  /// The nodes that are to get a list of their own, the outer ones first.
  package func splitNodes(localUser: Int64) throws -> [NodeRow] {
    try nodes.fetchAll(
      """
      WHERE parent IS NOT NULL AND id IN (
        SELECT n.id FROM zdc_zone z
        CROSS JOIN zdc_operation o INDEXED BY zdc_operation_list ON o.zone = z.id AND o.kind = 6
        JOIN zdc_node n ON n.id = o.node AND n.zone = o.zone WHERE z.localUser = ?) ORDER BY depth, id
      """, [localUser])
  }

  /// The operations that wait for another one.
  package func dependents(of id: Int64) throws -> [Int64] {
    let statement = try operations.db.cachedStatement(
      sql: "SELECT operation FROM zdc_dependency WHERE dependsOn = ? ORDER BY operation")
    return try Int64.fetchAll(statement, arguments: [id])
  }

  /// Decides again about operations that the old list did not allow, after a new list came.
  package func retryNotAllowed(zone: Int64) throws {
    let statement = try operations.db.cachedStatement(
      sql: "UPDATE zdc_operation SET reason = 0, reasonDetail = NULL WHERE zone = ? AND reason = ?")
    try statement.execute(arguments: [zone, OperationRow.Reason.notAllowed.rawValue])
  }
}

extension ZDCReadWriteTransaction {
  /// The pause before a member who is not the owner replaces a zone's key (K-7): several who may do so would otherwise all
  /// try at once.
  private static let rotationPauseMs: ClosedRange<Double> = 60_000...600_000

  /// Queues a fresh key for a zone, unless one is queued already or the user may not replace it.
  ///
  /// - Parameter random: In 0..<1. Draws the pause of a member who is not the owner.
  package func queueRotation(
    of zone: ZoneRow, by user: UserID, atMs now: UInt64, random: () -> Double
  ) throws {
    guard let list = zone.head?.acl.fields, !zone.isClosed, let root = try nodes.root(zone: zone.id) else { return }
    let change = ListChange.rotate(after: list.zoneKeyGen)
    guard list.allows(change, by: user),
      try !ListChangeStore(self).changes(zone: zone.id).contains(where: { $0.listChange == change })
    else { return }
    let range = Self.rotationPauseMs
    let pause = UInt64(range.lowerBound + (range.upperBound - range.lowerBound) * random())
    try queue(change, of: root, localUser: zone.localUser, atMs: now, after: user == list.owner ? nil : pause)
  }

  /// Queues a change of a zone's access list that the app has not asked for.
  ///
  /// - Parameter pauseMs: How long other devices have the time to make it; nil to send it at once.
  package func queue(
    _ change: ListChange, of root: NodeRow, localUser: Int64, atMs now: UInt64, after pauseMs: UInt64? = nil
  ) throws {
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: root.zone, kind: .changeList, node: root.id, nodeUUID: root.uuid,
      nodeID: root.nodeID, createdMs: now)
    operation.listChange = change
    if let pauseMs { (operation.reason, operation.notBeforeMs) = (.backoff, now + pauseMs) }
    try operations.insert(&operation)
    signal(.queue(localUser: localUser))
  }

  /// Drops the lists that nodes of another user's zone were to get, after their move to the local user's tree was given up.
  /// Only the owner of a zone can give its nodes lists of their own.
  package func dropSplits(atOrBelow row: NodeRow) throws {
    guard let zone = try zones.zone(id: row.zone), zone.owner != nil else { return }
    for change in try ListChangeStore(self).changes(zone: zone.id) where change.nodeID != zone.zone.root {
      guard let node = change.node, try nodes.isNode(node, atOrBelow: row.id) else { continue }
      try operations.delete(id: change.id)
    }
  }
}
