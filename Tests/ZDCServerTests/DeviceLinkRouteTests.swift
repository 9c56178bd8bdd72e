import Testing
import ZDCProtocol

@testable import ZDCServer

@Suite struct DeviceLinkRouteTests {
  private static let nonce = DeviceLinkNonce.random()
  private static let offer = DeviceLinkOffer(publicKey: randomBytes(IdentityLink.encPubBytes), nonce: nonce).bytes

  private static func path(_ id: DeviceLinkID, _ route: String = Routes.deviceLink) -> String {
    Routes.path(route, id.text)
  }

  @Test func theAnswerReachesTheDeviceThatWaits() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let id = DeviceLinkID.random()
      for _ in 0..<2 { _ = try await server.send(.PUT, Self.path(id), body: Self.offer).expect(204) }
      #expect(try await server.send(.GET, Self.path(id), token: token).bytes == Self.offer)
      async let waiting = server.send(.GET, Self.path(id, Routes.deviceLinkAnswer))
      let sealed = randomBytes(2_000)
      for _ in 0..<2 {
        _ = try await server.send(.PUT, Self.path(id, Routes.deviceLinkAnswer), token: token, body: sealed).expect(204)
      }
      #expect(try await waiting.bytes == sealed)
    }
  }

  /// Another person who has seen the code could otherwise replace the nonce.
  @Test func onlyTheDevicesNonceIsTaken_andReachesTheAccount() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let id = DeviceLinkID.random()
      let path = Self.path(id, Routes.deviceLinkNonce)
      #expect(try await server.send(.PUT, path, body: Self.nonce.bytes).status == 404)
      _ = try await server.send(.PUT, Self.path(id), body: Self.offer).expect(204)
      #expect(try await server.send(.GET, path).status == 401)
      async let waiting = server.send(.GET, path, token: token)
      #expect(try await server.send(.PUT, path, body: DeviceLinkNonce.random().bytes).status == 409)
      #expect(try await server.send(.PUT, path, body: [1]).status == 400)
      #expect(try await server.send(.PUT, path, body: Self.nonce.bytes + [1]).status == 413)
      for _ in 0..<2 { _ = try await server.send(.PUT, path, body: Self.nonce.bytes).expect(204) }
      #expect(try await waiting.bytes == Self.nonce.bytes)
    }
  }

  @Test func onlyAccountsReadKeysAndAnswer_andNothingIsReplaced() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let id = DeviceLinkID.random()
      _ = try await server.send(.PUT, Self.path(id), body: Self.offer).expect(204)
      #expect(try await server.send(.GET, Self.path(id)).status == 401)
      #expect(try await server.send(.PUT, Self.path(id, Routes.deviceLinkAnswer), body: [1]).status == 401)
      #expect(try await server.send(.PUT, Self.path(id), body: randomBytes(Self.offer.count)).status == 409)
      #expect(try await server.send(.PUT, Self.path(.random()), body: [1]).status == 400)
      #expect(try await server.send(.PUT, Self.path(.random()), body: Self.offer + [1]).status == 413)
      let answer = Self.path(id, Routes.deviceLinkAnswer)
      _ = try await server.send(.PUT, answer, token: token, body: [1]).expect(204)
      #expect(try await server.send(.PUT, answer, token: token, body: [2]).status == 409)
      let long = [UInt8](repeating: 0, count: Limits.deviceLinkAnswerBytes + 1)
      #expect(try await server.send(.PUT, answer, token: token, body: long).status == 413)
      #expect(try await server.send(.GET, Self.path(.random()), token: token).status == 404)
    }
  }

  @Test func linksExpire_andAnAddressHasEightAtMost() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (_, token) = try await server.newAccount()
      let ids = (0..<8).map { _ in DeviceLinkID.random() }
      for id in ids { _ = try await server.send(.PUT, Self.path(id), body: Self.offer).expect(204) }
      #expect(try await server.send(.PUT, Self.path(.random()), body: Self.offer).status == 429)
      server.clock.advance(ms: 600_001)
      #expect(try await server.send(.GET, Self.path(ids[0]), token: token).status == 404)
      #expect(try await server.send(.GET, Self.path(ids[0], Routes.deviceLinkAnswer)).status == 404)
      _ = try await server.send(.PUT, Self.path(.random()), body: Self.offer).expect(204)
    }
  }

  /// - A host with 128 addresses has as many links as all may have, and a device of another address asks
  /// => the oldest link of the host makes room; an address of the host is refused
  /// - Each address has one link, the other device too
  /// => the device cannot ask for a second one
  @Test func manyAddressesKeepNoDeviceOut() throws {
    var links = DeviceLinks()
    let ids = (0..<1_024).map { _ in DeviceLinkID.random() }
    for (index, id) in ids.enumerated() {
      try links.offer(Self.offer, as: id, from: "host \(index / 8)", now: UInt64(index))
    }
    #expect(throws: ServerError.self) { try links.offer(Self.offer, as: .random(), from: "host 0", now: 2_000) }
    let id = DeviceLinkID.random()
    try links.offer(Self.offer, as: id, from: "other", now: 2_000)
    #expect(links.link(id, now: 2_000) != nil && links.link(ids[0], now: 2_000) == nil)
    #expect(ids.dropFirst().allSatisfy { links.link($0, now: 2_000) != nil })
    #expect(try DeviceLinks.mustMakeRoom(all: 1_024, ofParty: 0, largest: 1))
    #expect(throws: ServerError.self) { try DeviceLinks.mustMakeRoom(all: 1_024, ofParty: 1, largest: 1) }
  }
}
