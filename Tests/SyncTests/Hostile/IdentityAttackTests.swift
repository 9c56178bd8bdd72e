import Foundation
import Testing
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

extension HostileServerTests {
  private static func fresh() -> HostileScenario {
    HostileScenario("A7", story: "", error: "", .fails, from: .fresh, fromLogin: true) { _ in }
  }

  /// SECURITY 5.7, 10: a thousand times, the outcome of a login does not depend on how the keyring is wrong.
  @Test func alteredKeyrings_areAnsweredAlike() async throws {
    let act = try await HostileAct.start(Self.fresh())
    var traffic: Set<[String]> = []
    let length = try await act.rogue().keyring().count
    for number in 0..<1_000 {
      act.hostile.tell(.change(.keyring) { $0[number % length] ^= 1 << UInt8(number / length) })
      act.hostile.forgetRequests()
      await #expect(throws: ZDCSecurityError(.keyringAuthFailed, user: act.stage.user)) {
        try await act.victim.login(words: act.stage.words)
      }
      traffic.insert(act.hostile.requests.map { "\($0.route) \($0.body.count)" })
      act.hostile.stopTampering()
    }
    // The lengths of random IDs in base64 and of numbers are the same in all attempts.
    #expect(traffic.count == 1)
    #expect(act.victim.localUserIDs.isEmpty)
    try await act.end()
  }

  /// SECURITY 5.7, 10: a thousand times, a grant that was altered anywhere opens nothing, and the device behaves alike.
  @Test func alteredGrants_openNothing() async throws {
    let act = try await HostileAct.start(
      HostileScenario("A7", story: "", error: "", .fails, from: .fresh) { _ in })
    let (zone, victim) = (act.zone.zone, act.victim)
    // The first pull reads the log, which needs no key.
    act.hostile.tell(Self.altered(act.zone.grant, 0))
    try await victim.pull()
    var traffic: Set<[String]> = []
    for number in 0..<1_000 {
      act.hostile.stopTampering()
      act.hostile.tell(Self.altered(act.zone.grant, number))
      act.hostile.forgetRequests()
      try await SplitRaceTests.pull(zone.root.text, victim)
      traffic.insert(act.hostile.requests.map { "\($0.route) \($0.body.count)" })
    }
    #expect(act.hostile.liesTold > 1_000 && traffic.count == 1)
    // A key that one of them had given would have stayed, and the tree with it.
    let home = try await victim.database.read { transaction in
      try transaction.zones.zones(localUser: 1).first { $0.zone == zone }
    }
    #expect(home?.head != nil && home?.key == nil)
    #expect(try await victim.tree() == "")
    let state = try await DeviceState(of: victim)
    #expect(Set(state.events.map(\.code)) == ["grantMissing", "grantHashMismatch"])
    #expect(state.frozen == [:])
    act.hostile.stopTampering()
    victim.clock.advance(by: .seconds(3_600))
    try await TestWorld.settle([victim])
    #expect(try await victim.tree(versions: false) == act.stage.freshTree)
    try await act.end()
  }

  /// Returns a lie that changes one bit of a zone's grant: that with a number, of a thousand all over its bytes.
  private static func altered(_ grant: Grant, _ number: Int) -> Lie {
    let (zone, offset) = (grant.zone, number * grant.bytes.count / 1_000)
    return .change(.grant, where: { $0.grant?.zone == zone }) { $0[offset] ^= 1 << UInt8(number % 8) }
  }

  /// SECURITY 5.7, 13: for a nonce that begins like a commit, the signature is not valid for a commit.
  @Test func challengeThatIsACommit_isSignedAsAChallenge() async throws {
    let act = try await HostileAct.start(Self.fresh())
    let commit = try act.zone.head
    let nonce = Data(commit.signedBytes).base64EncodedString()
    act.hostile.tell(
      .fabricate("POST", Routes.challenge, json: #"{"nonce":"\#(nonce)","expiresMs":99999999999999}"#))
    await #expect(throws: (any Error).self) { try await act.victim.login(words: act.stage.words) }
    let key = act.zone.keys.accessKey.loginKey.publicKey
    for request in act.hostile.requests where request.route.pattern == Routes.login {
      let login = try JSONDecoder().decode(LoginRequest.self, from: Data(request.body))
      for label in ["commit", "acl", "link"] as [StaticString] {
        #expect(!Signatures.isValid(login.signature.bytes, by: key, label: label, message: commit.signedBytes))
      }
    }
    try await act.end()
  }

  /// - the stream is cut, and the server that comes back denies the account's newest keys
  /// => the app is notified, nothing is pushed, and everything is once the server is itself again
  @Test func accountThatIsDeniedAtAReconnection_isNotPushedTo() async throws {
    let act = try await HostileAct.start(
      HostileScenario("A4", story: "", error: "", .fails, from: .current) { _ in })
    let rogue = try await act.rogue()
    let old = try await rogue.chain()
    let (link, keyring, _) = try await rogue.nextSigningKey()
    try await rogue.append(link, keyring: keyring)
    let updates = try act.victim.syncManager.statusUpdates
    try await act.victim.whileRunning {
      for path in ["/mine", "/kept"] { await act.victim.recorder.wait(for: "pushed \(path)") }
      let chain = old.map { ServedItem($0) }
      act.hostile.tell(.rewrite(.link) { $0 = chain })
      act.hostile.tell(Self.naming(old[0]))
      act.hostile.forgetRequests()
      try await act.fork.restart()
      await Self.denied(updates)
      try await act.victim.create("/while-denied", "x")
      // The push has been attempted.
      await Self.denied(updates)
      #expect(try await act.victim.queueCount() == 2)
      #expect(!act.hostile.requests.contains { $0.route.pattern == Routes.commits && $0.liesBefore > 0 })
      act.hostile.stopTampering()
      await act.victim.recorder.wait(for: "pushed /while-denied")
    }
    // The engines may have ended before the last answer was stored.
    try await TestWorld.settle([act.victim])
    let state = try await DeviceState(of: act.victim)
    #expect(Set(state.events.map(\.code)) == ["identityChainRollback"])
    #expect(state.operations == [] && state.frozen == [:])
    try await act.end()
  }

  /// Returns a lie in which the stream's first event names this link as the end of the chain.
  private static func naming(_ link: IdentityLink) -> Lie {
    .events { events in
      events.map { text in
        guard text.contains("event: zones"), let start = text.range(of: "data: ")?.upperBound,
          var list = try? JSONDecoder().decode(ZoneList.self, from: Data(text[start...].utf8))
        else { return text }
        list.chain = ChainHead(seq: link.seq, head: link.hash)
        guard let json = try? JSONEncoder().encode(list) else { return text }
        return text[..<start] + String(decoding: json, as: UTF8.self) + "\n\n"
      }
    }
  }

  private static func denied(_ updates: AsyncStream<ZDCSyncStatus>) async {
    for await update in updates {
      if case .security(_, let error) = update, error.code == .identityChainRollback { return }
    }
  }

  /// SECURITY 5.7, 16: a flipped bit anywhere in small content.
  @Test func turnedBits_inASmallContent_areAllFound() async throws {
    let act = try await HostileAct.start(
      HostileScenario("B1", story: "", error: "", .fails, from: .behind, by: .download) { _ in })
    let tree = try await act.victim.tree(versions: false)
    for offset in 0..<128 {
      act.hostile.tell(.turnBit(.smallContent, at: offset))
      await #expect(throws: (any Error).self) {
        guard let manager = try act.victim.zdc.downloadManager else { return }
        let node = try await act.victim.node("/left")
        for try await download in manager.downloadContents(of: [node]) { _ = try download.content.get() }
      }
      act.hostile.stopTampering()
    }
    #expect(try await act.victim.tree(versions: false) == tree)
    try await act.end()
  }
}
