internal import Synchronization
public import ZeroDarkCloud

/// The network of a ``TestDevice``. It fails by script and counts the traffic.
///
/// ```swift
/// let network = a.network
/// network.fail(.loseResponse, "POST", "/v1/commits")             // the next one
/// network.fail(.answer(status: 503, code: "shuttingDown"), "GET")  // the next GET
/// network.isOffline = true
/// print(network.counts())                                        // one line per route
/// ```
public final class FaultyTransport: Transport {
  fileprivate struct Rule {
    var fault: Fault
    var method: String?
    var pattern: String?
    var query: String?
    /// The number of matching requests that still pass unaffected.
    var skip: Int
    /// The number of requests that fail after those.
    var times: Int
  }

  fileprivate struct State {
    var rules: [Rule] = []
    var requests: [RecordedRequest] = []
    var isOffline = false
    var traffic: [[UInt8]]?
    var renewals = 0
  }

  private let inner: any Transport
  private let clock: ManualClock
  private let state = Mutex(State())

  /// Creates a network in front of a transport.
  ///
  /// - Parameters:
  ///   - inner: The transport that reaches the server.
  ///   - clock: The clock that ``Fault/delay(_:)`` waits for.
  package init(_ inner: any Transport, clock: ManualClock) {
    self.inner = inner
    self.clock = clock
  }

  // MARK: The script

  /// Whether every request fails immediately.
  public var isOffline: Bool {
    get { state.withLock { $0.isOffline } }
    set { state.withLock { $0.isOffline = newValue } }
  }

  /// Adds a fault for later requests.
  ///
  /// ```swift
  /// let content = "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}"
  /// b.network.fail(.cutResponse(afterBytes: 100_000), "GET", content)
  /// b.network.fail(.loseRequest, "GET", content, occurrence: 2, times: 3)  // its retries
  /// ```
  ///
  /// - Parameters:
  ///   - method: The HTTP method; nil for any.
  ///   - pattern: A path of the wire API with its parameters in braces; nil for any.
  ///   - query: Text that the request's query contains, such as `after=`; nil for any.
  ///   - occurrence: 1 for the first matching request from now on.
  ///   - times: The number of consecutive requests that fail.
  public func fail(
    _ fault: Fault, _ method: String? = nil, _ pattern: String? = nil, query: String? = nil, occurrence: Int = 1,
    times: Int = 1
  ) {
    let rule = Rule(
      fault: fault, method: method, pattern: pattern, query: query, skip: occurrence - 1, times: times)
    state.withLock { $0.rules.append(rule) }
  }

  /// Clears the script and goes online. Faults that have already occurred are not undone.
  public func restoreNetwork() {
    state.withLock {
      $0.rules = []
      $0.isOffline = false
    }
  }

  /// Whether every scripted fault has occurred.
  public var hasStruck: Bool { state.withLock { $0.rules.isEmpty } }

  // MARK: Counting

  /// All requests since the start or the last ``resetCounts()``.
  public var requests: [RecordedRequest] { state.withLock { $0.requests } }

  /// Forgets the recorded ``requests``. Faults that have not occurred yet stay.
  public func resetCounts() { state.withLock { $0.requests = [] } }

  /// Returns the number of requests of a route.
  ///
  /// ```swift
  /// b.network.resetCounts()
  /// try await b.sync()
  /// #expect(b.network.count("GET", "/v1/zones") == 1)
  /// ```
  public func count(_ method: String? = nil, _ pattern: String? = nil) -> Int {
    requests.filter {
      (method ?? $0.route.method) == $0.route.method && (pattern ?? $0.route.pattern) == $0.route.pattern
    }
    .count
  }

  /// Returns one line per route, sorted: `POST /v1/commits × 3`.
  ///
  /// ```swift
  /// a.network.resetCounts()
  /// try await a.sync()
  /// print(a.network.counts())
  /// ```
  public func counts() -> String {
    let byRoute = Dictionary(grouping: requests, by: \.route.description)
    return byRoute.sorted { $0.key < $1.key }.map { "\($0.key) × \($0.value.count)" }.joined(separator: "\n")
  }

  /// Starts to record all bytes of bodies, paths and headers for ``traffic``.
  ///
  /// ```swift
  /// a.network.keepTraffic()
  /// try await a.create("/canary-in-a-name-7f3a", "")
  /// try await a.sync()
  /// let scanner = CanaryScanner(["canary-in-a-name-7f3a"])
  /// #expect(a.network.traffic.allSatisfy { scanner.scan($0, place: "traffic").isEmpty })
  /// ```
  public func keepTraffic() { state.withLock { $0.traffic = $0.traffic ?? [] } }

  /// The traffic since ``keepTraffic()``. Each element is a path, header block, request body or slice of an answer.
  public var traffic: [[UInt8]] { state.withLock { $0.traffic ?? [] } }

  // MARK: Sending

  /// Sends a request through the script: its faults are applied in the order in which they were added.
  package func send(_ request: TransportRequest) async throws -> TransportResponse {
    let (number, faults, isOffline) = enter(request)
    guard !isOffline else { throw TransportError(.offline) }
    var request = request
    for fault in faults {
      if let response = try await apply(fault, to: &request, number: number) { return response }
    }
    note(request)
    let response = try await inner.send(request)
    state.withLock { $0.setStatus(response.status, of: number) }
    note(headers: response.headers)
    var body = watched(response.body, number: number)
    for fault in faults {
      if case .loseResponse = fault {
        try await Self.drain(TransportResponse(status: 0, headers: response.headers, body: body), of: request)
        throw TransportError(.cut)
      }
      body = try await apply(fault, to: body)
    }
    return TransportResponse(status: response.status, headers: response.headers, body: body)
  }

  /// The number of times that new connections were requested.
  package var renewals: Int { state.withLock { $0.renewals } }

  /// Closes the device's connections to the server, so that its next requests use new ones. Call it after
  /// ``TestServer/restart(quotaBytes:)``; a connection to the stopped server fails once.
  ///
  /// ```swift
  /// try await server.restart()
  /// await a.network.renewConnections()
  /// ```
  public func renewConnections() async {
    state.withLock { $0.renewals += 1 }
    await inner.renewConnections()
  }

  private func enter(_ request: TransportRequest) -> (number: Int, faults: [Fault], isOffline: Bool) {
    let route = WireRoutes.route(method: request.method.rawValue, path: request.path)
    return state.withLock { state in
      let number = state.requests.count
      state.requests.append(
        RecordedRequest(
          number: number, route: route, path: request.path, bytesSent: request.body.count, bytesReceived: 0, status: nil
        ))
      return (number, state.isOffline ? [] : state.faults(for: route, path: request.path), state.isOffline)
    }
  }

  /// Applies a fault before the server receives the request. Returns an answer if one replaces the server's.
  private func apply(
    _ fault: Fault, to request: inout TransportRequest, number: Int
  ) async throws -> TransportResponse? {
    switch fault {
    case .loseRequest: throw TransportError(.cut)
    case .delay(let duration): try await clock.sleep(for: duration)
    case .before(let body): try await body()
    case .answer(let status, let code):
      state.withLock { $0.setStatus(status, of: number) }
      return Self.answer(status: status, code: code)
    case .duplicate:
      try await Self.drain(try await inner.send(request), of: request)
    case .corruptRequest(let offset):
      if case .bytes(let bytes) = request.body { request.body = .bytes(bytes.turningBit(ofByteAt: offset)) }
    case .loseResponse, .cutResponse, .slowResponse, .corruptResponse, .after: break
    }
    return nil
  }

  private func apply(_ fault: Fault, to body: TransportBody) async throws -> TransportBody {
    switch fault {
    case .cutResponse(let count): return body.cut(after: count)
    case .slowResponse(let count): return body.sliced(count)
    case .corruptResponse(let offset):
      var all: [UInt8] = []
      while let slice = try await body.next() { all += slice }
      return TransportBody(bytes: all.turningBit(ofByteAt: offset))
    case .after(let work):
      try await work()
      return body
    case .loseRequest, .loseResponse, .delay, .answer, .duplicate, .corruptRequest, .before: return body
    }
  }

  /// Reads an answer to its end and discards it. An event stream has no end, so it is not read.
  private static func drain(_ response: TransportResponse, of request: TransportRequest) async throws {
    guard request.headers["accept"] != "text/event-stream" else { return }
    while try await response.body.next() != nil {}
  }

  private static func answer(status: Int, code: String) -> TransportResponse {
    let json = #"{"code":"\#(code)","message":"by script","retryable":true}"#
    return TransportResponse(
      status: status, headers: ["content-type": "application/json", "content-length": "\(json.utf8.count)"],
      body: TransportBody(bytes: Array(json.utf8)))
  }

  // MARK: Recording traffic

  private func note(_ request: TransportRequest) {
    guard state.withLock({ $0.traffic != nil }) else { return }
    note(headers: request.headers)
    state.withLock { state in
      state.traffic?.append(Array(request.path.utf8))
      if case .bytes(let bytes) = request.body { state.traffic?.append(bytes) }
    }
  }

  private func note(headers: [String: String]) {
    let text = headers.map { "\($0.key): \($0.value)\n" }.joined()
    state.withLock { $0.traffic?.append(Array(text.utf8)) }
  }

  private func watched(_ body: TransportBody, number: Int) -> TransportBody {
    TransportBody { [weak self] in
      let slice = try await body.next()
      if let slice { self?.state.withLock { $0.received(slice, by: number) } }
      return slice
    }
  }
}

extension FaultyTransport.Rule {
  func matches(_ route: WireRoutes.Route, path: String) -> Bool {
    guard (method ?? route.method) == route.method, (pattern ?? route.pattern) == route.pattern else { return false }
    guard let query else { return true }
    return path.split(separator: "?", maxSplits: 1).dropFirst().contains { $0.contains(query) }
  }
}

extension FaultyTransport.State {
  mutating func faults(for route: WireRoutes.Route, path: String) -> [Fault] {
    var struck: [Fault] = []
    for index in rules.indices where rules[index].matches(route, path: path) {
      if rules[index].skip > 0 {
        rules[index].skip -= 1
      } else {
        rules[index].times -= 1
        struck.append(rules[index].fault)
      }
    }
    rules.removeAll { $0.times <= 0 }
    return struck
  }

  mutating func setStatus(_ status: Int, of number: Int) {
    guard requests.indices.contains(number) else { return }
    requests[number].status = status
  }

  mutating func received(_ slice: [UInt8], by number: Int) {
    if requests.indices.contains(number) { requests[number].bytesReceived += slice.count }
    traffic?.append(slice)
  }
}

extension TransportRequest.Body {
  fileprivate var count: Int {
    switch self {
    case .none: 0
    case .bytes(let bytes): bytes.count
    case .stream(let length, _): Int(clamping: length)
    }
  }
}

extension [UInt8] {
  fileprivate func turningBit(ofByteAt offset: Int) -> [UInt8] {
    let index = offset < 0 ? count + offset : offset
    guard indices.contains(index) else { return self }
    var bytes = self
    bytes[index] ^= 1
    return bytes
  }
}

extension TransportBody {
  /// Returns the same bytes in smaller slices.
  fileprivate func sliced(_ count: Int) -> TransportBody {
    let rest = Mutex<ArraySlice<UInt8>>([])
    let next: @Sendable () async throws -> [UInt8]? = {
      if rest.withLock({ $0.isEmpty }) {
        guard let slice = try await self.next() else { return nil }
        rest.withLock { $0 = slice[...] }
      }
      return rest.withLock { rest in
        defer { rest = rest.dropFirst(count) }
        return Array(rest.prefix(count))
      }
    }
    return TransportBody(next)
  }

  /// Returns the first `limit` bytes, then breaks the connection, even if the body has no more bytes.
  fileprivate func cut(after limit: Int) -> TransportBody {
    let shared = SharedCount(left: limit)
    return TransportBody {
      guard let slice = try await self.next() else { throw TransportError(.cut) }
      let allowed = shared.take(slice.count)
      guard allowed > 0 else { throw TransportError(.cut) }
      return Array(slice.prefix(allowed))
    }
  }
}

private final class SharedCount: Sendable {
  private let left: Mutex<Int>

  init(left: Int) {
    self.left = Mutex(left)
  }

  func take(_ wanted: Int) -> Int {
    left.withLock { left in
      let taken = Swift.min(left, wanted)
      left -= taken
      return taken
    }
  }
}
