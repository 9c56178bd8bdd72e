import Foundation
import Testing
import ZDCProtocol

@Suite struct WireTests {
  private func comesBack<T: Codable & Equatable>(_ value: T, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let data = try JSONEncoder().encode(value)
    #expect(try JSONDecoder().decode(T.self, from: data) == value, sourceLocation: sourceLocation)
  }

  private func json<T: Encodable>(_ value: T) throws -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return String(decoding: try encoder.encode(value), as: UTF8.self)
  }

  @Test func everyBodySurvivesARoundTripThroughJSON() throws {
    var generator = SeededGenerator(seed: 1)
    let zone = Samples.zone(&generator)
    let bytes = WireBytes(generator.bytes(33))
    let status = ZoneStatus(zone: zone, seq: 4, head: Samples.id32(&generator))
    #expect(status.zone == zone)
    try comesBack(
      ServerInfo(name: "zdc-server", version: "1", protocols: [1], registration: "open", timeMs: 5))
    try comesBack(
      RegisterRequest(
        genesis: bytes, keyring: bytes, lookupID: Samples.id16(&generator), loginKey: bytes, invite: "i",
        tree: .init(appTreeID: "com.example.app", trunks: [bytes, bytes])))
    try comesBack(RegisterResponse(userID: Samples.id32(&generator)))
    try comesBack(ChallengeRequest(lookupID: Samples.id16(&generator)))
    try comesBack(ChallengeRequest(userID: Samples.id32(&generator)))
    try comesBack(ChallengeResponse(nonce: bytes, expiresMs: .max))
    try comesBack(SessionResponse(token: bytes, userID: Samples.id32(&generator), expiresMs: 1))
    try comesBack(
      SessionList(
        sessions: [.init(deviceID: Samples.id16(&generator), createdMs: 1, expiresMs: 2, isCurrent: true)],
        devices: [.init(deviceID: Samples.id16(&generator), createdMs: 1, lastLoginMs: nil, isCurrent: false)]))
    try comesBack(AppendLinkRequest(link: bytes, keyring: bytes, lookupID: Samples.id16(&generator), loginKey: bytes))
    try comesBack(ZoneList(feedPosition: FeedPosition("9"), zones: [status]))
    try comesBack(HeadEvent(status: status, page: bytes))
    try comesBack(CommitResponse(receivedMs: 7, zones: [status]))
    try comesBack(
      BlobTicketRequest(
        blobID: Samples.id16(&generator), treeID: zone.tree, nodeID: zone.root, cipherLength: 1 << 34))
    try comesBack(
      BlobStatus(
        blobID: Samples.id16(&generator), cipherLength: 200, isComplete: true, contentRoot: Samples.id32(&generator),
        parts: [.init(index: 0, hash: bytes)]))
    try comesBack(AuditReport(sections: [.init(title: "account", fields: [.init(name: "userID", value: "x")])]))
  }

  @Test func bytesAreBase64AndIdsAreText() throws {
    let node = NodeID(high: 0, low: 0)
    #expect(try json(WireBytes([0xfb, 0xff])) == "\"+/8=\"")
    #expect(try json(["id": node]) == "{\"id\":\"\(node.text)\"}")
  }

  @Test(arguments: ["\"*\"", "\"YQ\"", "1", "null", "\"YQ==\\n=\""])
  func invalidBase64IsRefused(text: String) {
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(WireBytes.self, from: Data(text.utf8)) }
  }

  @Test(arguments: ["\"yy\"", "\"\"", "5", "\"YYYYYYYYYYYYYYYYYYYYYYYYYY\""])
  func invalidIDsAreRefused(text: String) {
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(NodeID.self, from: Data(text.utf8)) }
    #expect(throws: DecodingError.self) { try JSONDecoder().decode(UserID.self, from: Data(text.utf8)) }
  }

  @Test func loginSignsOriginDeviceAndNonceInTheOrderOfTheTable() {
    var generator = SeededGenerator(seed: 2)
    let request = LoginRequest(
      lookupID: Samples.id16(&generator), origin: "https://zdc.example", deviceID: Samples.id16(&generator),
      deviceKey: WireBytes(generator.bytes(32)), nonce: WireBytes(generator.bytes(32)), expiresMs: 0x0102,
      signature: WireBytes([]))
    let expected =
      [0, 19] + Array("https://zdc.example".utf8) + request.lookupID.bytes + request.deviceID.bytes
      + request.deviceKey.bytes + request.nonce.bytes + [0, 0, 0, 0, 0, 0, 1, 2]
    #expect(request.signedBytes == expected)
  }

  @Test func deviceLoginSignsUserDeviceAndNonceAndNeverTrapsOnALongOrigin() {
    var generator = SeededGenerator(seed: 3)
    var request = DeviceLoginRequest(
      userID: Samples.id32(&generator), origin: "http://[::1]:1", deviceID: Samples.id16(&generator),
      nonce: WireBytes(generator.bytes(32)), expiresMs: 1, signature: WireBytes([]))
    let expected =
      [0, 14] + Array("http://[::1]:1".utf8) + request.userID.bytes + request.deviceID.bytes + request.nonce.bytes
      + [0, 0, 0, 0, 0, 0, 0, 1]
    #expect(request.signedBytes == expected)
    request.origin = String(repeating: "o", count: 100_000)
    #expect(request.signedBytes.count == 2 + 1_024 + 32 + 16 + 32 + 8)
  }

  @Test func errorCodesAreTheirNames_andUnknownOnesAreRefused() throws {
    for code in ServerError.Code.allCases {
      #expect(try JSONEncoder().encode([code]) == Data("[\"\(code.rawValue)\"]".utf8))
      #expect(try JSONDecoder().decode([ServerError.Code].self, from: JSONEncoder().encode([code])) == [code])
    }
    for code in ZDCSecurityError.Code.allCases {
      #expect(try JSONDecoder().decode([ZDCSecurityError.Code].self, from: JSONEncoder().encode([code])) == [code])
    }
    let unknown = Data(#"["newInVersion2"]"#.utf8)
    #expect(throws: DecodingError.self) { try JSONDecoder().decode([ServerError.Code].self, from: unknown) }
    #expect(throws: DecodingError.self) { try JSONDecoder().decode([ZDCSecurityError.Code].self, from: unknown) }
    #expect(ServerError.Code(rawValue: "newInVersion2") == nil)
  }

  @Test func everyErrorCodeHasAStatusThatIsNotASuccess() throws {
    for code in ServerError.Code.allCases {
      let error = ServerError(code, "message", retryable: true, retryAfterMs: 1_500, security: .treeCycle)
      #expect((400...599).contains(error.status))
      try comesBack(error)
    }
    #expect(ServerError(.headMismatch, "").status == 409)
    #expect(ServerError(.refused, "").status == 422)
    #expect(ServerError(.storageFull, "").status == 507)
  }

  @Test func aRouteIsFilledFromLeftToRight() {
    #expect(Routes.path(Routes.content, "T", "N", "B") == "/v1/trees/T/nodes/N/blobs/B")
    #expect(Routes.path(Routes.blobPart, "B", "7") == "/v1/blobs/B/parts/7")
    #expect(Routes.path(Routes.commits) == Routes.commits)
  }
}
