package import ZDCProtocol

/// The zones of other users that a user follows (PROTOCOL 4.4).
///
/// A list that names a user costs them nothing until one of their devices accepts the zone.
enum Memberships {
  /// Returns the zone's status if the user follows it already.
  ///
  /// - Throws: `notFound` for a zone that the user may not read; `invalidRequest` for one of their own.
  static func known(_ id: ZoneID, of user: UserID, in reader: any MetadataReader) throws -> ZoneStatus? {
    let zone = try readable(id, by: user, in: reader)
    guard let known = try reader.membership(of: user, in: zone.key), known.endedSeq == nil else { return nil }
    return zone.status
  }

  /// Lets a member who may read follow the zone: it is in their lists and event streams from now on.
  ///
  /// - Throws: as ``known(_:of:in:)``; `tooManyZones`.
  static func accept(
    _ id: ZoneID, by user: UserID, limit: Int, now: UInt64, in tx: any MetadataTransaction
  ) throws -> ZoneStatus {
    let zone = try readable(id, by: user, in: tx)
    let known = try tx.membership(of: user, in: zone.key)
    if let known, known.endedSeq == nil { return zone.status }
    if known == nil { try makeRoom(for: user, limit: limit, in: tx) }
    try tx.putMembership(of: user, in: zone.key, now: now)
    return zone.status
  }

  /// Removes ended memberships to make room for a new one. A former member learns of the end from the zone's log too.
  private static func makeRoom(for user: UserID, limit: Int, in tx: any MetadataTransaction) throws {
    let all = try tx.memberships(of: user)
    guard all.count >= limit else { return }
    guard let ended = all.first(where: { $0.endedSeq != nil }), let zone = try tx.zone(ended.zone) else {
      throw ZDCSecurityError(.tooManyZones, user: user)
    }
    try tx.removeMembership(of: user, in: zone.key)
  }

  /// Ends a membership. Does nothing if there is none.
  static func end(_ id: ZoneID, of user: UserID, in tx: any MetadataTransaction) throws {
    guard let zone = try tx.zone(id) else { return }
    try tx.removeMembership(of: user, in: zone.key)
  }

  private static func readable(_ id: ZoneID, by user: UserID, in reader: any MetadataReader) throws -> ZoneRow {
    let zone = try Access.zone(id, of: user, needs: .read, in: reader)
    guard try ZoneACL(zone.acl).fields.owner != user else {
      throw ServerError(.invalidRequest, "your own zones are always in the list")
    }
    return zone
  }
}

/// A user follows a zone, or no longer does, on all of their devices.
package struct MembershipNotice: Sendable, Codable {
  package let user: UserID
  private let treeID: TreeID
  private let zoneRoot: NodeID
  /// The head of the accepted zone; nil if the user no longer follows it.
  package let status: ZoneStatus?

  package init(user: UserID, zone: ZoneID, status: ZoneStatus?) {
    self.user = user
    (treeID, zoneRoot) = (zone.tree, zone.root)
    self.status = status
  }

  package var zone: ZoneID { ZoneID(tree: treeID, root: zoneRoot) }
}
