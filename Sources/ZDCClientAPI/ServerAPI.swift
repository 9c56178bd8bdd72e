package import ZDCProtocol

/// A page of a zone's log as it came, not yet verified.
package struct CommitPage: Sendable {
  /// A bundle.
  package var body: [UInt8]
  /// Where the server says that the zone's log ends.
  package var head: (seq: UInt64, hash: CommitHash)
  package var hasMore: Bool

  package init(body: [UInt8], head: (seq: UInt64, hash: CommitHash), hasMore: Bool) {
    self.body = body
    self.head = head
    self.hasMore = hasMore
  }
}

/// The answer to a push.
package enum PushAnswer: Sendable {
  case accepted(CommitResponse)
  /// Somebody else's commit came first: the log from there.
  case headMismatch(CommitPage)
}

/// The server's API for one local user: one function per route.
///
/// Opens the session when it is needed. Every function throws `ServerError` (the server said no), ``TransportError`` (no
/// usable answer), or `CancellationError`. Nothing is repeated here but a request that got a 401, once, with a new session;
/// the transport repeats a GET whose connection had ended.
package struct ServerAPI: Sendable {
  package let connection: ServerConnection
  package let session: Session

  package init(connection: ServerConnection, session: Session) {
    self.connection = connection
    self.session = session
  }

  // MARK: Requests with a session

  package func answer(
    to request: TransportRequest, limit: Int, accepting: Int? = nil
  ) async throws -> ServerConnection.Answer {
    try await withSession(request) { try await connection.answer(to: $0, limit: limit, accepting: accepting) }
  }

  package func open(_ request: TransportRequest) async throws -> TransportResponse {
    try await withSession(request) { try await connection.open($0) }
  }

  package func json<Value: Decodable>(
    _ request: TransportRequest, as type: Value.Type = Value.self
  ) async throws -> Value {
    try connection.decode(try await answer(to: request, limit: Limits.jsonBytes).body)
  }

  private func withSession<Result>(
    _ request: TransportRequest, _ send: (TransportRequest) async throws -> Result
  ) async throws -> Result {
    let token = try await session.currentToken()
    do {
      return try await send(request.authorized(token))
    } catch let error as ServerError where error.code == .unauthorized {
      return try await send(request.authorized(try await session.token(after: token)))
    }
  }
}

extension TransportRequest {
  fileprivate func authorized(_ token: String) -> TransportRequest {
    var request = self
    request.headers["authorization"] = "Bearer \(token)"
    return request
  }
}

// MARK: Zones and commits

extension ServerAPI {
  package func info() async throws -> ServerInfo {
    try await connection.info()
  }

  /// My zones with a commit behind the cursor; all of them without one.
  package func zones(since position: FeedPosition?) async throws -> ZoneList {
    try await json(.get(Routes.zones, query: [("since", position?.text)]))
  }

  /// Whole commits behind `after`, from genesis without it; with the live records of what they put, if asked for.
  package func commitPage(_ zone: ZoneID, after: UInt64?, withRecords: Bool) async throws -> CommitPage {
    let path = Routes.path(Routes.zoneCommits, zone.tree.text, zone.root.text)
    let query = [("after", after.map(String.init)), ("records", withRecords ? "1" : nil)]
    return try page(try await answer(to: .get(path, query: query), limit: Self.bundleBytes))
  }

  /// Sends commits with all that belongs to them. The same bytes may be sent again at any time.
  package func push(_ bundle: [UInt8]) async throws -> PushAnswer {
    let request = TransportRequest.bytes(.post, Routes.commits, bundle, type: Bundle.mediaType)
    let answer = try await answer(to: request, limit: Self.bundleBytes, accepting: 409)
    if answer.status == 409 { return .headMismatch(try page(answer)) }
    return .accepted(try connection.decode(answer.body))
  }

  /// A bundle of records in the order asked for, without those that the server does not have; it may stop early.
  package func records(_ zone: ZoneID, _ hashes: [RecordHash]) async throws -> [UInt8] {
    var body = ByteWriter(capacity: 32 * hashes.count)
    for hash in hashes { body.append(hash) }
    return try await bundle(Routes.records, zone, body.bytes)
  }

  /// A bundle of small contents, without those that are missing or large; it may stop early.
  package func contents(_ zone: ZoneID, _ items: [(NodeID, BlobID)]) async throws -> [UInt8] {
    var body = ByteWriter(capacity: 32 * items.count)
    for (node, blob) in items {
      body.append(node)
      body.append(blob)
    }
    return try await bundle(Routes.contents, zone, body.bytes)
  }

  /// The zone that now holds the node.
  package func zone(ofNode node: NodeID, in tree: TreeID) async throws -> ZoneStatus {
    try await json(.get(Routes.path(Routes.node, tree.text, node.text)))
  }

  /// Twice what a page should have: a page never splits a commit from its records.
  static let bundleBytes = Limits.commitRequestBytes + Limits.commitBytes

  private func bundle(_ route: String, _ zone: ZoneID, _ body: [UInt8]) async throws -> [UInt8] {
    let path = Routes.path(route, zone.tree.text, zone.root.text)
    return try requireBundle(try await answer(to: .bytes(.post, path, body), limit: Self.bundleBytes)).body
  }

  /// A page of a captive portal is none of a server's lies, which freeze a zone.
  @discardableResult
  func requireBundle(_ answer: ServerConnection.Answer) throws -> ServerConnection.Answer {
    guard answer.headers["content-type"]?.hasPrefix(Bundle.mediaType) == true else {
      throw TransportError(.badAnswer, origin: connection.origin, status: answer.status)
    }
    return answer
  }

  private func page(_ answer: ServerConnection.Answer) throws -> CommitPage {
    try requireBundle(answer)
    let head = answer.headers[WireHeaders.zoneHead]?.split(separator: ":") ?? []
    guard head.count == 2, let seq = UInt64(head[0]), let hash = CommitHash(text: head[1]) else {
      throw TransportError(.badAnswer, origin: connection.origin)
    }
    return CommitPage(body: answer.body, head: (seq, hash), hasMore: answer.headers[WireHeaders.more] == "1")
  }
}
