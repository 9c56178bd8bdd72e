internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Decides which zone is shown in place of a pointer.
///
/// A pointer is followed only to a zone that this device follows already, because its user owns it or has accepted it: a
/// pointer of another member makes this device fetch nothing. A zone is shown in one place, and never inside of itself.
struct Mounting {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction

  /// Returns the zone to show in place of a pointer; nil if the row is no pointer, or is shown as it is.
  func zone(for row: NodeRow) throws -> Int64? {
    guard let target = row.pointer, target.node == target.zone.root,
      let zone = try transaction.zones.zone(localUser: session.localUser, target.zone), isTarget(zone, target),
      try transaction.mounts.pointer(ofZone: zone.id) == nil, try !isInside(row, zone)
    else { return nil }
    return zone.id
  }

  /// Another first commit is another zone, and a trunk of the user's has its place.
  private func isTarget(_ zone: ZoneRow, _ target: PointerTarget) -> Bool {
    let isSame = zone.genesis.map { $0 == target.genesis } ?? true
    return isSame && zone.appTreeID == session.appTreeID && (zone.owner != nil || !zone.isTrunk)
  }

  private func isInside(_ row: NodeRow, _ zone: ZoneRow) throws -> Bool {
    let (top, path) = try transaction.ancestry(of: row)
    return top.zone == zone.id || path.contains { $0.zone == zone.id }
  }

  /// Shows a zone in place of the first pointer to it that this device has.
  func mount(zone id: Int64) throws {
    guard let zone = try transaction.zones.zone(id: id), try transaction.mounts.pointer(ofZone: zone.id) == nil else {
      return
    }
    for other in try transaction.zones.zones(localUser: session.localUser) where other.appTreeID == zone.appTreeID {
      let pointers = try transaction.nodes.pointers(zone: other.id).filter { $0.pointer?.zone == zone.zone }
      guard let pointer = try pointers.first(where: { try self.zone(for: $0) == zone.id }) else { continue }
      return try transaction.mounts.set(zone: zone.id, at: pointer.id)
    }
  }
}
