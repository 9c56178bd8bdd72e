internal import Foundation
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

extension ZDCSyncManager {
  /// Returns the nodes whose version in the cloud this device cannot read. Each pull asks again for missing records. A
  /// later version of a node may also make it readable.
  ///
  /// A grafted branch that the server does not let the user read is one of them, with the code `inviteNotAuthorized`.
  ///
  /// ```swift
  /// let damaged = try await session.syncManager.unreadableNodes(localUserID: user.uuid)
  /// if !damaged.isEmpty { show(["\(damaged.count) items cannot be opened."]) }
  /// ```
  ///
  /// - Parameters:
  ///   - localUserID: The account whose trees are searched.
  ///   - limit: Maximum number of nodes of each tree.
  /// - Throws: ``ZDCError``: `localUserNotFound`.
  public func unreadableNodes(localUserID: String, limit: Int = 1_000) async throws -> [ZDCUnreadableNode] {
    guard let user = UserID(text: localUserID) else { throw ZDCError(.localUserNotFound) }
    return try await database.roDatabaseConnection.asyncRead { transaction in
      guard let row = try transaction.localUsers.user(user) else { throw ZDCError(.localUserNotFound) }
      return try transaction.zones.zones(localUser: row.id).flatMap { zone in
        try transaction.unreadableNodes(of: zone, limit: limit)
      }
    }
  }
}

extension ZoneRow {
  /// Whether the zone is a grafted branch that the server does not let the user read. It counts as one unreadable node.
  var isUnreachable: Bool { isUnread && doubt == .inviteNotAuthorized }
}

extension ZDCReadTransaction {
  fileprivate func unreadableNodes(of zone: ZoneRow, limit: Int) throws -> [ZDCUnreadableNode] {
    if zone.isUnreachable { return try unreachableBranch(zone) }
    let leaves = leaves(zone: zone.id)
    return try unreadable.entries(zone: zone.id, limit: limit).compactMap { entry in
      // A newer version of the framework may have stored an unknown code.
      guard let code = ZDCSecurityError.Code(rawValue: entry.code) else { return nil }
      return ZDCUnreadableNode(
        zone: zone.zone, trunk: ZDCTreesystemTrunk(zone.trunk), treeID: zone.appTreeID, cloudID: entry.node.text,
        nodeID: try nodes.node(zone: zone.id, nodeID: entry.node)?.uuid,
        parentID: try nearest(above: entry.node, leaves)?.uuid, code: code, since: Date(ms: entry.sinceMs),
        isBelow: entry.isBelow)
    }
  }

  private func unreachableBranch(_ zone: ZoneRow) throws -> [ZDCUnreadableNode] {
    guard let root = try nodes.root(zone: zone.id), let pointer = try grafts.pointer(to: root) else { return [] }
    return [
      ZDCUnreadableNode(
        zone: zone.zone, trunk: ZDCTreesystemTrunk(zone.trunk), treeID: zone.appTreeID, cloudID: zone.zone.root.text,
        nodeID: root.uuid, parentID: try pointer.parent.flatMap { try nodes.parent(id: $0)?.uuid },
        code: .inviteNotAuthorized, since: Date(ms: pointer.createdMs), isBelow: false)
    ]
  }

  private func nearest(above node: NodeID, _ leaves: LogNodeStore) throws -> NodeRow? {
    for ancestor in try leaves.ancestors(of: node) {
      if let row = try nodes.parent(zone: leaves.zone, nodeID: ancestor) { return row }
    }
    return nil
  }
}
