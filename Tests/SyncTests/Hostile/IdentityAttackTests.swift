import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

extension HostileServerTests {
  private static func fresh() -> HostileScenario {
    HostileScenario("A7", story: "", error: "", .fails, from: .fresh, fromLogin: true) { _ in }
  }

  /// SECURITY 5.7, 10: what a login says does not depend on how the keyring is wrong.
  @Test func alteredKeyrings_areAnsweredAlike() async throws {
    let act = try await HostileAct.start(Self.fresh())
    var traffic: Set<[String]> = []
    for offset in stride(from: 0, to: 250, by: 8) {
      act.hostile.tell(.turnBit(.keyring, at: offset))
      act.hostile.forgetRequests()
      await #expect(throws: ZDCSecurityError(.keyringAuthFailed, user: act.stage.user)) {
        try await act.victim.login(words: act.stage.words)
      }
      traffic.insert(act.hostile.requests.map { "\($0.route) \($0.body.count)" })
      act.hostile.beHonest()
    }
    // Lengths of random ids in base 64 and numbers are the same in all of them.
    #expect(traffic.count == 1)
    #expect(act.victim.localUserIDs.isEmpty)
    try await act.end()
  }

  /// SECURITY 5.7, 13: a nonce that is the beginning of a commit gets a signature that is none of a commit.
  @Test func challengeThatIsACommit_isSignedAsAChallenge() async throws {
    let act = try await HostileAct.start(Self.fresh())
    let commit = try act.zone.head
    let nonce = Data(commit.signedBytes).base64EncodedString()
    act.hostile.tell(
      .invent("POST", Routes.challenge, json: #"{"nonce":"\#(nonce)","expiresMs":99999999999999}"#))
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

  /// SECURITY 5.7, 16: a bit anywhere in a small content.
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
      act.hostile.beHonest()
    }
    #expect(try await act.victim.tree(versions: false) == tree)
    try await act.end()
  }
}
