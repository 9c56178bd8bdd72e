internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol

// Reads a long log with one request, however many pages it has.

extension ZonePuller {
  /// Applies the rest of a log. Each page is read while the one before is applied, so at most two are in memory.
  ///
  /// - Parameter row: The zone at the start; at the end, the zone after the last page.
  /// - Returns: Whether the answer ended before its head, so that the rest must be requested.
  func pullWholeLog(
    _ row: inout ZoneRow, _ summary: inout ZDCPullSummary, _ left: inout DeferredNodes
  ) async throws -> Bool {
    let log = try await wholeLog(row)
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
