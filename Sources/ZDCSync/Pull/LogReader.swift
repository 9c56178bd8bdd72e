internal import ZDCClientAPI
internal import ZDCProtocol

/// Reads a zone's whole log from one answer, page by page.
///
/// It reads no further than the end of the next page, so a slow reader of pages slows the server.
actor LogReader {
  /// The head where the log ends, as claimed by the server.
  nonisolated let head: (seq: UInt64, hash: CommitHash)
  private let zone: ZoneID
  private let body: TransportBody
  private let origin: String
  private var cutter = Bundle.PageCutter()
  private var pages: [[UInt8]] = []
  private var hasReturnedPage = false
  private var hasEnded = false

  /// - Parameter origin: The server's address, for errors.
  init(zone: ZoneID, head: (seq: UInt64, hash: CommitHash), body: TransportBody, origin: String) {
    self.zone = zone
    self.head = head
    self.body = body
    self.origin = origin
  }

  /// Returns the next page of whole commits, or nil at the end. An empty log is one page, because its head still
  /// counts.
  ///
  /// - Throws: `Doubt` if the bytes are not a log; `ZDCTransportError`, also if they end inside of a commit.
  func next() async throws -> CommitPage? {
    do {
      while pages.isEmpty, !hasEnded { try await read() }
    } catch let error as ZDCSecurityError {
      throw Doubt(error.with(zone: zone), isSigned: false)
    }
    guard !pages.isEmpty else { return nil }
    hasReturnedPage = true
    return CommitPage(body: pages.removeFirst(), head: head, hasMore: false)
  }

  /// Returns the page after one that was returned, or nil at the end. The log also ends where the connection breaks:
  /// the caller asks again from there.
  func following() async throws -> CommitPage? {
    do { return try await next() } catch let error as TransportError where error.isTemporary { return nil }
  }

  private func read() async throws {
    if let slice = try await body.next() {
      pages = try cutter.add(slice)
      return
    }
    hasEnded = true
    // The body of a cancelled request ends, too.
    try Task.checkCancellation()
    guard let rest = cutter.rest else { throw TransportError(.cut, origin: origin) }
    if !rest.isEmpty || !hasReturnedPage { pages = [rest] }
  }
}
