package import ZDCProtocol

/// A page of a zone's log as received, not yet verified.
package struct CommitPage: Sendable {
  /// A bundle.
  package var body: [UInt8]
  /// The head of the zone's log, as claimed by the server.
  package var head: (seq: UInt64, hash: CommitHash)
  package var hasMore: Bool
  /// The zone that the page is about, as claimed by the server; nil if it does not say so. The answer to a request with
  /// commits of several zones is about one of them.
  package var zone: ZoneID?
  /// The access list in force before the page, which an edit in it changes. Nil for a page from the genesis, and for one
  /// whose lists are whole.
  package var listBefore: ZoneACL?

  package init(body: [UInt8], head: (seq: UInt64, hash: CommitHash), hasMore: Bool, zone: ZoneID? = nil) {
    self.body = body
    self.head = head
    self.hasMore = hasMore
    self.zone = zone
  }
}

/// The answer to a push.
package enum PushAnswer: Sendable {
  case accepted(CommitResponse)
  /// Another commit came first. The page holds the log from there.
  case headMismatch(CommitPage)
}

/// The server's API for one local user, with one function per route.
///
/// It opens a session when it needs one. Every function throws `ZDCServerError` (the server refused), ``ZDCTransportError``
/// (no usable answer), or `CancellationError`. The only retry here is a request that got a 401, once, with a new
/// session. The transport retries a GET whose connection was closed.
package struct ServerAPI: Sendable {
  package let connection: ServerConnection
  package let session: Session

  package init(connection: ServerConnection, session: Session) {
    self.connection = connection
    self.session = session
  }

  // MARK: Requests with a session

  package func answer(
    to request: TransportRequest, limit: Int, accepting: Int? = nil, begun: @Sendable () async -> Void = {}
  ) async throws -> ServerConnection.Answer {
    try await withSession(request) {
      try await connection.answer(to: $0, limit: limit, accepting: accepting, begun: begun)
    }
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
  func authorized(_ token: String) -> TransportRequest {
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

  /// Returns the user's own zones and those that they have accepted, as far as they changed after the cursor; all of
  /// them without a cursor.
  package func zones(since position: FeedPosition?) async throws -> ZoneList {
    try await json(.get(Routes.zones, query: [("since", position?.text)]))
  }

  /// Downloads whole commits after `after`, or from genesis if it is nil. With `withRecords`, the page also has the
  /// live records that they put.
  ///
  /// - Parameter withEdits: Whether access lists may come as edits of the list before.
  package func commitPage(
    _ zone: ZoneID, after: UInt64?, withRecords: Bool, withEdits: Bool = false
  ) async throws -> CommitPage {
    let path = Routes.path(Routes.zoneCommits, zone.tree.text, zone.root.text)
    let query = [
      ("after", after.map(String.init)), ("records", withRecords ? "1" : nil), ("edits", withEdits ? "1" : nil),
    ]
    return try page(try await answer(to: .get(path, query: query), limit: Self.bundleBytes))
  }

  /// Downloads a whole log after `after`, or from genesis if it is nil, as a stream of bundle items without records.
  ///
  /// The stream may end early. To resume it, ask again from the last complete commit.
  ///
  /// - Parameter withEdits: Whether access lists may come as edits of the list before.
  /// - Returns: the head where the stream ends, as claimed by the server, and the bytes.
  package func log(
    _ zone: ZoneID, after: UInt64?, withEdits: Bool = false
  ) async throws -> (head: (seq: UInt64, hash: CommitHash), body: TransportBody) {
    let path = Routes.path(Routes.zoneCommits, zone.tree.text, zone.root.text)
    let query: [(String, String?)] = [
      ("after", after.map(String.init)), ("whole", "1"), ("edits", withEdits ? "1" : nil),
    ]
    let response = try await open(.get(path, query: query))
    guard response.headers["content-type"]?.hasPrefix(Bundle.mediaType) == true, let head = Self.head(response.headers)
    else { throw TransportError(.badAnswer, origin: connection.origin, status: response.status) }
    return (head, response.body)
  }

  /// Downloads the commits of several zones after what the caller has of each, as ``commitPage(_:after:withRecords:)``
  /// does for one. Maximum ``Limits/zonesPerRequest`` zones. Access lists may come as edits of the list before.
  ///
  /// - Parameter begun: Called when the answer begins to arrive.
  /// - Returns: answers for the first of the zones, at least for one. Ask again for the others.
  package func commitPages(
    _ positions: [ZonePosition], withRecords: Bool, begun: @Sendable () async -> Void = {}
  ) async throws -> [ZonePage] {
    var request = TransportRequest.bytes(.post, Routes.zonePages, ZonePosition.bytes(of: positions))
    request.path += withRecords ? "?records=1&edits=1" : "?edits=1"
    let pages: [ZonePage]
    do {
      pages = try ZonePage.all(try await answer(to: request, limit: Self.bundleBytes, begun: begun).body)
    } catch is ZDCSecurityError { throw TransportError(.badAnswer, origin: connection.origin) }
    guard pages.map(\.zone) == positions.prefix(pages.count).map(\.zone), !pages.isEmpty || positions.isEmpty else {
      throw TransportError(.badAnswer, origin: connection.origin)
    }
    return pages
  }

  /// Pushes commits with all objects that belong to them. The same bytes may be sent again at any time.
  package func push(_ bundle: [UInt8]) async throws -> PushAnswer {
    let request = Self.commitRequest(.bytes(bundle))
    let answer = try await answer(to: request, limit: Self.bundleBytes, accepting: 409)
    if answer.status == 409 { return .headMismatch(try page(answer)) }
    return .accepted(try connection.decode(answer.body))
  }

  static func commitRequest(_ body: TransportRequest.Body) -> TransportRequest {
    TransportRequest(.post, Routes.commits, headers: ["content-type": Bundle.mediaType], body: body)
  }

  /// Downloads a bundle of records in the order requested, without those that the server does not have. It may stop
  /// early.
  package func records(_ zone: ZoneID, _ leaves: [LogNode]) async throws -> [UInt8] {
    try await bundle(Routes.records, zone, Self.recordNames(leaves))
  }

  /// Returns what the server still has of versions that were replaced or deleted, in the order requested.
  package func kept(_ zone: ZoneID, _ leaves: [LogNode]) async throws -> [KeptState] {
    let path = Routes.path(Routes.kept, zone.tree.text, zone.root.text)
    let request = TransportRequest.bytes(.post, path, Self.recordNames(leaves))
    let body = try await answer(to: request, limit: KeptState.byteCount * leaves.count).body
    do { return try KeptState.all(body, count: leaves.count) } catch {
      throw TransportError(.badAnswer, origin: connection.origin)
    }
  }

  private static func recordNames(_ leaves: [LogNode]) -> [UInt8] {
    var body = ByteWriter(capacity: 48 * leaves.count)
    for leaf in leaves {
      body.append(leaf.node)
      body.append(leaf.record)
    }
    return body.bytes
  }

  /// Downloads a bundle of small content blobs, without those that are missing or large. It may stop early.
  package func contents(_ zone: ZoneID, _ items: [(NodeID, BlobID)]) async throws -> [UInt8] {
    var body = ByteWriter(capacity: 32 * items.count)
    for (node, blob) in items {
      body.append(node)
      body.append(blob)
    }
    return try await bundle(Routes.contents, zone, body.bytes)
  }

  /// Downloads the state list that the genesis of a zone names. A list has 72 bytes a node, so the caller states how many
  /// it expects.
  ///
  /// - Parameter count: the count that the genesis states. Longer answers are refused.
  /// - Returns: the bytes of a ``StateList``, not yet verified.
  package func stateList(_ zone: ZoneID, count: UInt64) async throws -> [UInt8] {
    let path = Routes.path(Routes.zoneState, zone.tree.text, zone.root.text)
    return try await answer(to: .get(path), limit: StateList.entryBytes * Int(min(count, Limits.splitNodes))).body
  }

  /// Returns the zone that now holds the node.
  package func zone(ofNode node: NodeID, in tree: TreeID) async throws -> ZoneStatus {
    try await json(.get(Routes.path(Routes.node, tree.text, node.text)))
  }

  /// Twice the size that a page should have, because a page never splits a commit from its records.
  static let bundleBytes = Limits.commitRequestBytes + Limits.commitBytes

  private func bundle(_ route: String, _ zone: ZoneID, _ body: [UInt8]) async throws -> [UInt8] {
    let path = Routes.path(route, zone.tree.text, zone.root.text)
    return try requireBundle(try await answer(to: .bytes(.post, path, body), limit: Self.bundleBytes)).body
  }

  /// Throws a ``ZDCTransportError`` if the answer is not a bundle. The page of a captive portal must not count as server
  /// misbehavior, which freezes a zone.
  @discardableResult
  func requireBundle(_ answer: ServerConnection.Answer) throws -> ServerConnection.Answer {
    guard answer.headers["content-type"]?.hasPrefix(Bundle.mediaType) == true else {
      throw TransportError(.badAnswer, origin: connection.origin, status: answer.status)
    }
    return answer
  }

  private func page(_ answer: ServerConnection.Answer) throws -> CommitPage {
    try requireBundle(answer)
    guard let head = Self.head(answer.headers) else { throw TransportError(.badAnswer, origin: connection.origin) }
    return CommitPage(
      body: answer.body, head: head, hasMore: answer.headers[WireHeaders.more] == "1", zone: Self.zone(answer.headers))
  }

  private static func zone(_ headers: [String: String]) -> ZoneID? {
    let parts = headers[WireHeaders.zone]?.split(separator: "/") ?? []
    guard parts.count == 2, let tree = TreeID(text: String(parts[0])), let root = NodeID(text: String(parts[1])) else {
      return nil
    }
    return ZoneID(tree: tree, root: root)
  }

  private static func head(_ headers: [String: String]) -> (seq: UInt64, hash: CommitHash)? {
    let parts = headers[WireHeaders.zoneHead]?.split(separator: ":") ?? []
    guard parts.count == 2, let seq = UInt64(parts[0]), let hash = CommitHash(text: parts[1]) else { return nil }
    return (seq, hash)
  }
}
