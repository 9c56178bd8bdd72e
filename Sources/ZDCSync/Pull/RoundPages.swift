package import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// Fetches the newest pages of many zones, up to ``Limits/zonesPerRequest`` with one request, when the first of them is
/// pulled.
///
/// If the answer to such a request does not begin soon, its zones are requested alone: the server may be slow with one of
/// them.
package actor RoundPages {
  private static let patience = Duration.seconds(5)

  private let session: SyncSession
  /// Zones that were not requested yet.
  private var rest: [Int64]
  private var pages: [Int64: CommitPage] = [:]
  private let requests = SharedWork<Int, Void>()
  /// Whether the answer to the current request is arriving.
  private var hasBegun = false

  package init(session: SyncSession, zones: [Int64]) {
    self.session = session
    rest = zones
  }

  /// Returns the zone's page. Each page is returned once.
  ///
  /// - Returns: Nil if the zone must be requested alone: at its first pull, if the server does not show it, or if its
  ///   answer is late.
  /// - Throws: `ZDCServerError`, `ZDCTransportError`, `CancellationError`.
  package func page(of zone: Int64) async throws -> CommitPage? {
    while pages[zone] == nil, rest.contains(zone) {
      try await requests.value(0) { try await self.request(zone) }
    }
    return pages.removeValue(forKey: zone)
  }

  private func request(_ zone: Int64) async throws {
    // Another zone's request may have included this one.
    guard rest.contains(zone) else { return }
    let zones = [zone] + rest.filter { $0 != zone }.prefix(Limits.zonesPerRequest - 1)
    let rows = try await rows(of: zones)
    rest.removeAll { zones.contains($0) && rows[$0] == nil }
    let wanted = zones.compactMap { rows[$0] }
    guard !wanted.isEmpty else { return }
    let positions = wanted.map { ZonePosition(zone: $0.zone, after: $0.head?.seq) }
    do {
      if let answers = try await answers(to: positions) { return take(answers, of: wanted) }
      rest.removeAll { rows[$0] != nil }
    } catch let error as TransportError where error.code == .badAnswer {
      rest = []
    }
  }

  /// - Returns: Nil if the answer did not begin in time.
  private func answers(to positions: [ZonePosition]) async throws -> [ZonePage]? {
    hasBegun = false
    return try await withThrowingTaskGroup(of: [ZonePage]?.self) { [session] group in
      defer { group.cancelAll() }
      group.addTask {
        try await session.api.commitPages(positions, withRecords: true) { await self.begin() }
      }
      group.addTask {
        try await session.time.sleep(Self.patience)
        return nil
      }
      if let answers = try await group.next() ?? nil { return answers }
      return hasBegun ? try await group.next() ?? nil : nil
    }
  }

  private func begin() { hasBegun = true }

  /// - Parameter answers: The answers for the first zones. There was no room for the others.
  private func take(_ answers: [ZonePage], of zones: [ZoneRow]) {
    for (zone, answer) in zip(zones, answers) {
      rest.removeAll { $0 == zone.id }
      guard let log = answer.log else { continue }
      var page = CommitPage(body: Array(log.body), head: (log.seq, log.head), hasMore: log.hasMore)
      page.listBefore = zone.head?.acl
      pages[zone.id] = page
    }
  }

  /// Returns the rows of zones. Those whose first pull has not ended are left out.
  private func rows(of zones: [Int64]) async throws -> [Int64: ZoneRow] {
    try await session.database.asyncRead { transaction in
      var rows: [Int64: ZoneRow] = [:]
      for id in zones {
        guard let row = try transaction.zones.zone(id: id), row.head != nil,
          try transaction.nodes.root(zone: id) != nil
        else { continue }
        rows[id] = row
      }
      return rows
    }
  }
}

extension ZonePuller {
  /// Returns the page that was fetched with those of other zones, unless the zone has grown here since.
  func nextPage(_ row: ZoneRow, _ fetched: CommitPage?, withRecords: Bool) async throws -> CommitPage {
    if let fetched, fetched.head.seq >= row.head?.seq ?? 0 { return fetched }
    return try await commitPage(row, withRecords: withRecords)
  }
}
