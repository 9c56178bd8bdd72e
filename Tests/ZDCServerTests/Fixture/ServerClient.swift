import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import ZDCProtocol
import ZDCServer

/// Requests to a server, in this process or in another one.
protocol ServerClient: Sendable {
  /// `http://127.0.0.1:PORT`.
  var origin: String { get }
  var http: HTTPClient { get }
}

extension ServerClient {
  var http: HTTPClient { .shared }

  func send(
    _ method: Method, _ path: String, token: [UInt8]? = nil, headers: [(String, String)] = [],
    body: [UInt8]? = nil
  ) async throws -> Answer {
    var request = HTTPClientRequest(url: origin + path)
    request.method = HTTPMethod(rawValue: method.rawValue)
    if let token { request.headers.add(name: "authorization", value: "Bearer \(ZBase32.encode(token))") }
    for (name, value) in headers { request.headers.add(name: name, value: value) }
    if let body { request.body = .bytes(body) }
    let response = try await http.execute(request, timeout: .seconds(60))
    let buffer = try await response.body.collect(upTo: 64 << 20)
    let pairs = response.headers.map { ($0.name.lowercased(), $0.value) }
    return Answer(
      status: Int(response.status.code), headers: Dictionary(pairs, uniquingKeysWith: { first, _ in first }),
      bytes: Array(buffer.readableBytesView))
  }

  func sendJSON(_ method: Method, _ path: String, _ value: some Encodable, token: [UInt8]? = nil) async throws -> Answer
  {
    try await send(method, path, token: token, body: [UInt8](JSONEncoder().encode(value)))
  }

  func challenge(_ account: TestAccount) async throws -> ChallengeResponse {
    try await sendJSON(.POST, Routes.challenge, ChallengeRequest(lookupID: account.lookupID)).json()
  }

  func login(_ account: TestAccount, device: DeviceID? = nil) async throws -> [UInt8] {
    let request = try account.login(try await challenge(account), origin: origin, device: device)
    let session: SessionResponse = try await sendJSON(.POST, Routes.login, request).json()
    return session.token.bytes
  }

  /// An account that is registered and logged in.
  func newAccount() async throws -> (account: TestAccount, token: [UInt8]) {
    let account = try TestAccount()
    _ = try await sendJSON(.POST, Routes.accounts, account.registration()).expect(201)
    return (account, try await login(account))
  }

  func commit(_ body: [UInt8], token: [UInt8]) async throws -> Answer {
    try await send(.POST, Routes.commits, token: token, body: body)
  }

  /// Puts nodes and moves the zone on.
  func put(
    _ puts: [NodeRecord], contents: [TestZone.Content] = [], in zone: inout TestZone, token: [UInt8]
  ) async throws {
    let (commit, body) = try zone.put(puts, contents: contents)
    _ = try await self.commit(body, token: token).expect(200)
    zone.accepted(commit, records: puts)
  }

  /// Deletes a node and all below it, and moves the zone on.
  func delete(_ node: NodeID, descendants: UInt64 = 0, in zone: inout TestZone, token: [UInt8]) async throws {
    let record = zone.records[node]?.hash ?? .zero
    let commit = try zone.commit([.delete(node: node, record: record, liveDescendants: descendants)])
    _ = try await self.commit(TestZone.body(commit), token: token).expect(200)
    zone.accepted(commit)
  }

  func page(_ zone: ZoneID, after: UInt64? = nil, token: [UInt8]) async throws -> Answer {
    let query = after.map { "?after=\($0)&records=1" } ?? "?records=1"
    return try await send(
      .GET, Routes.path(Routes.zoneCommits, zone.tree.text, zone.root.text) + query, token: token)
  }
}
