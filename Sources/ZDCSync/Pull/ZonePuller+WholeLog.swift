internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Reads a long log with one request, however many pages it has.

extension ZonePuller {
  /// An answer keeps its connection until its last page is applied, which may take other requests. A user's further zones
  /// ask page by page, so that connections remain for these.
  private static let wholeLogsAtOnce = 2

  /// Applies the rest of a log, unless other whole logs are being read.
  ///
  /// - Parameter row: The zone at the start; at the end, the zone after the last page.
  /// - Returns: Whether more of the log must be requested.
  func pullWholeLog(
    _ row: inout ZoneRow, _ summary: inout ZDCPullSummary, _ left: inout DeferredNodes
  ) async throws -> Bool {
    let isFree = session.wholeLogs.withLock { count in
      guard count < Self.wholeLogsAtOnce else { return false }
      count += 1
      return true
    }
    guard isFree else { return true }
    defer { session.wholeLogs.withLock { $0 -= 1 } }
    return try await pull(try await wholeLog(row), &row, &summary, &left)
  }

  /// Applies the pages of a log. Each is read while the one before is applied, so at most two are in memory.
  ///
  /// - Returns: Whether the answer ended before its head, so that the rest must be requested.
  private func pull(
    _ log: LogReader, _ row: inout ZoneRow, _ summary: inout ZDCPullSummary, _ left: inout DeferredNodes
  ) async throws -> Bool {
    var next = try await log.next()
    while var page = next {
      async let following = log.following()
      page.listBefore = row.head?.acl
      try await checkExpected(page, row)
      let applied = try await apply(page, to: row)
      summary.commits += applied.commits
      left.note(applied.refusal)
      guard applied.commits > 0, let current = try await zoneRow() else { return false }
      row = current
      next = try await following
      // Another commit may have come since the answer began. The next pull reads what is after its head.
      guard let seq = row.head?.seq, seq < log.head.seq else { return false }
    }
    return true
  }

  private func wholeLog(_ row: ZoneRow) async throws -> LogReader {
    let (head, body) = try await answer(about: row) {
      try await session.api.log(row.zone, after: row.head?.seq, withEdits: true)
    }
    return LogReader(zone: row.zone, head: head, body: body, origin: session.api.connection.origin)
  }
}
