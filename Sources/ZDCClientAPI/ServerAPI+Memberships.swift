package import ZDCProtocol

extension ServerAPI {
  /// Returns a page of the zones of other users that the user may read and has not accepted. `ZoneList.next` is the
  /// `cursor` of the next page.
  package func offeredZones(after cursor: UInt64? = nil) async throws -> ZoneList {
    try await json(.get(Routes.zones, query: [("offered", "1"), ("after", cursor.map(String.init))]))
  }

  /// Follows a zone of another user: it is in ``zones(since:)`` and in the event stream from now on, on all devices of
  /// the user. May be repeated.
  ///
  /// - Returns: the zone's head.
  /// - Throws: `ZDCServerError`: `notFound` if the access list does not let the user read, `refused` with `tooManyZones`.
  @discardableResult
  package func acceptZone(_ zone: ZoneID) async throws -> ZoneStatus {
    try await json(TransportRequest(.put, Self.membership(zone)))
  }

  /// Stops following a zone. The user stays a member. Succeeds also if they do not follow it.
  package func forgetZone(_ zone: ZoneID) async throws {
    _ = try await answer(to: TransportRequest(.delete, Self.membership(zone)), limit: Limits.jsonBytes)
  }

  private static func membership(_ zone: ZoneID) -> String {
    Routes.path(Routes.membership, zone.tree.text, zone.root.text)
  }
}
