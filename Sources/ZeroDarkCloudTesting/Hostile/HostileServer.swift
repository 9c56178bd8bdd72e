internal import Foundation
internal import Synchronization
internal import ZDCProtocol
package import ZeroDarkCloud

/// A man in the middle before the real server: a script alters, withholds, replaces or invents answers.
///
/// Devices reach it through ``transport(for:)``, so that every lie passes through the client's real code. Each device
/// can get different answers, and each can be led to a separate server, for example two that were forked from one
/// ``TestServer/Backup``.
///
/// ```swift
/// let hostile = HostileServer(server)
/// let b = try await TestDevice("B", server: server, clock: clock, through: hostile)
/// hostile.tell(.turnBit(.content, at: -1), to: "B")     // all content that B gets from now on
/// hostile.tell(.withhold(.commit), from: 3, times: 1)   // only in the third answer with commits
/// hostile.stopTampering()
/// #expect(hostile.liesTold > 0)
/// ```
package final class HostileServer: Sendable {
  /// A request as a device sent it.
  package struct HeardRequest: Sendable {
    package let device: String
    package let route: WireRoutes.Route
    package let path: String
    package let body: [UInt8]
    /// The value of `liesTold` when the request arrived.
    package let liesBefore: Int
  }

  private struct Rule {
    var lie: Lie
    var device: String?
    var skip: Int
    var times: Int
  }

  private struct State {
    var rules: [Rule] = []
    var upstream: [String: any Transport] = [:]
    var told = 0
    var heard: [HeardRequest] = []
    var taken: [String: Int] = [:]
  }

  private let server: TestServer
  private let state = Mutex(State())

  package init(_ server: TestServer) {
    self.server = server
  }

  // MARK: The script

  /// Adds a lie to the script.
  ///
  /// - Parameters:
  ///   - device: The name of the device that is lied to; nil for all devices.
  ///   - occurrence: 1 for the first answer to which the lie applies.
  ///   - times: The number of consecutive answers to alter.
  package func tell(_ lie: Lie, to device: String? = nil, from occurrence: Int = 1, times: Int = .max) {
    state.withLock { $0.rules.append(Rule(lie: lie, device: device, skip: occurrence - 1, times: times)) }
  }

  /// Clears the script. Devices stay connected to the servers that they were led to.
  package func stopTampering() { state.withLock { $0.rules = [] } }

  /// Leads a device to another server. If it had a server before, this counts as a lie.
  package func lead(_ device: String, to server: TestServer) throws {
    let upstream = try AsyncHTTPTransport(serverURL: server.url.absoluteString)
    state.withLock { state in
      if state.upstream.updateValue(upstream, forKey: device) != nil { state.told += 1 }
    }
  }

  // MARK: Statistics

  package var liesTold: Int { state.withLock { $0.told } }

  /// All requests from devices, in order, since the start or the last ``forgetRequests()``.
  package var requests: [HeardRequest] { state.withLock { $0.heard } }

  package func forgetRequests() { state.withLock { $0.heard = [] } }

  /// Returns the maximum number of bytes that a device read of an altered answer before it disconnected.
  package func mostBytesTaken(by device: String) -> Int { state.withLock { $0.taken[device] ?? 0 } }

  // MARK: Sending

  /// Returns the transport through which a device reaches its server.
  package func transport(for device: String) throws -> any Transport {
    try lead(device, to: server)
    return HostileTransport(hostile: self, device: device)
  }

  fileprivate func send(_ request: TransportRequest, from device: String) async throws -> TransportResponse {
    let route = WireRoutes.route(method: request.method.rawValue, path: request.path)
    var body: [UInt8] = []
    if case .bytes(let bytes) = request.body { body = bytes }
    let upstream = try hear(device: device, route: route, path: request.path, body: body)
    if let invented = invention(device: device, route: route, path: request.path, body: body) {
      return response(invented, device: device)
    }
    let honest = try await upstream.send(request)
    if route.pattern == Routes.events { return altered(events: honest, device: device) }
    guard state.withLock({ $0.rules.contains { $0.device == nil || $0.device == device } }) else { return honest }
    var answer = ServedAnswer(
      route: route, path: request.path, request: body, status: honest.status, headers: honest.headers,
      body: try await honest.body.collect(upTo: .max))
    try alter(&answer, device: device)
    return response(answer, device: device)
  }

  private func hear(
    device: String, route: WireRoutes.Route, path: String, body: [UInt8]
  ) throws -> any Transport {
    try state.withLock { state in
      state.heard.append(
        HeardRequest(device: device, route: route, path: path, body: body, liesBefore: state.told))
      guard let upstream = state.upstream[device] else { throw TestFailure("no server for \(device)") }
      return upstream
    }
  }

  private func invention(
    device: String, route: WireRoutes.Route, path: String, body: [UInt8]
  ) -> ServedAnswer? {
    for (index, lie) in rules(for: device) {
      guard case .fabricate(let make) = lie.act, let answer = make(route, path, body), take(index) else { continue }
      return answer
    }
    return nil
  }

  private func alter(_ answer: inout ServedAnswer, device: String) throws {
    for (index, lie) in rules(for: device) {
      guard case .alter(let alter) = lie.act else { continue }
      var altered = answer
      if try alter(&altered), take(index) { answer = altered }
    }
  }

  private func rules(for device: String) -> [(index: Int, lie: Lie)] {
    state.withLock { state in
      state.rules.indices.filter { state.rules[$0].device == nil || state.rules[$0].device == device }
        .map { ($0, state.rules[$0].lie) }
    }
  }

  /// Counts an occurrence, and returns whether to lie this time.
  private func take(_ index: Int) -> Bool {
    state.withLock { state in
      guard state.rules.indices.contains(index), state.rules[index].times > 0 else { return false }
      if state.rules[index].skip > 0 {
        state.rules[index].skip -= 1
        return false
      }
      if state.rules[index].times < .max { state.rules[index].times -= 1 }
      state.told += 1
      return true
    }
  }

  // MARK: Answers

  private func response(_ answer: ServedAnswer, device: String) -> TransportResponse {
    var headers = answer.headers
    if answer.endlessly.isEmpty { headers["content-length"] = String(answer.body.count) }
    if let length = answer.announcedLength { headers["content-length"] = String(length) }
    let source = SlicedBody(answer.body, endlessly: answer.endlessly)
    let body = TransportBody { [weak self] in
      guard let slice = source.next() else { return nil }
      self?.state.withLock { $0.taken[device] = max($0.taken[device] ?? 0, source.taken) }
      return slice
    }
    return TransportResponse(status: answer.status, headers: headers, body: body)
  }

  private func altered(events honest: TransportResponse, device: String) -> TransportResponse {
    let splitter = EventSplitter()
    let body = TransportBody { [weak self] in
      while let slice = try await honest.body.next() {
        let events = splitter.push(slice)
        if events.isEmpty { continue }
        let altered = self?.alter(events, device: device) ?? events
        if !altered.isEmpty { return Array(altered.joined().utf8) }
      }
      return nil
    }
    return TransportResponse(status: honest.status, headers: honest.headers, body: body)
  }

  private func alter(_ events: [String], device: String) -> [String] {
    var events = events
    for (index, lie) in rules(for: device) {
      guard case .events(let change) = lie.act else { continue }
      let altered = change(events)
      if altered != events, take(index) { events = altered }
    }
    return events
  }
}

private struct HostileTransport: Transport {
  let hostile: HostileServer
  let device: String

  func send(_ request: TransportRequest) async throws -> TransportResponse {
    try await hostile.send(request, from: device)
  }
}

/// A body in slices of the size that a socket would deliver, so that limits take effect at the right byte.
private final class SlicedBody: Sendable {
  private static let sliceBytes = 64 << 10

  private let rest: Mutex<ArraySlice<UInt8>>
  private let count = Mutex(0)
  private let endlessly: [UInt8]

  /// The number of bytes read so far.
  var taken: Int { count.withLock { $0 } }

  init(_ bytes: [UInt8], endlessly: [UInt8]) {
    rest = Mutex(bytes[...])
    self.endlessly = endlessly
  }

  func next() -> [UInt8]? {
    let slice = rest.withLock { rest in
      let slice = Array(rest.prefix(Self.sliceBytes))
      rest = rest.dropFirst(slice.count)
      return slice
    }
    let next = slice.isEmpty ? endlessly : slice
    count.withLock { $0 += next.count }
    return next.isEmpty ? nil : next
  }
}

/// Splits an event stream's bytes into whole events.
final class EventSplitter: Sendable {
  private let rest = Mutex<[UInt8]>([])

  /// Returns the events that these bytes complete, each with its empty line.
  func push(_ slice: [UInt8]) -> [String] {
    rest.withLock { rest in
      rest += slice
      var events: [String] = []
      while let end = rest.indices.dropLast().first(where: { rest[$0] == 10 && rest[$0 + 1] == 10 }) {
        events.append(String(decoding: rest[...(end + 1)], as: UTF8.self))
        rest.removeSubrange(...(end + 1))
      }
      return events
    }
  }
}
