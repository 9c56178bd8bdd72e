import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

extension HostileScenario {
  /// Chains and keyrings, at login and while the device runs.
  static let identity: [HostileScenario] = chains + keyrings + missingState + denied

  private static func login(
    _ rows: String..., story: String, error: String, _ arrange: @escaping @Sendable (HostileAct) async throws -> Void
  ) -> HostileScenario {
    var scenario = HostileScenario(
      "", story: story, error: error, .fails, from: .fresh, fromLogin: true, arrange)
    scenario.rows = rows
    return scenario
  }

  private static let chains: [HostileScenario] = [
    login("A1", "1", story: "an exchanged public key", error: "identityChainInvalid") {
      $0.tell(.turnBit(.link, at: 200))
    },
    login("A1", story: "an exchanged signature", error: "identityChainInvalid") { $0.tell(.turnBit(.link, at: -1)) },
    login("A1", "2", story: "another user's valid chain", error: "userIDMismatch") { act in
      let other = try await act.stage.stranger.chain()[0]
      act.tell(.substitute(.link, with: other.bytes))
    },
    login("A9", "12", story: "a signature key that fits every message", error: "weakPublicKey") { act in
      let weak = [1] + [UInt8](repeating: 0, count: 31)
      // The signature key follows kind, seq, prev, user, time, root key and generation.
      act.tell(.change(.link) { $0.replaceSubrange(6 + 1 + 4 + 32 + 32 + 8 + 32 + 4..<155 - 4, with: weak) })
    },
    login("A9", "12", story: "a root key in a second spelling", error: "weakPublicKey") { act in
      act.tell(
        .change(.link) { bytes in
          let start = 6 + 1 + 4 + 32 + 32 + 8
          bytes.replaceSubrange(start..<start + 32, with: [0xee] + [UInt8](repeating: 0xff, count: 30) + [0x7f])
        })
    },
    login("32", "C10", story: "a chain of version 2", error: "unsupportedVersion") {
      $0.tell(.change(.link) { $0[4] = 2 })
    },
    login("A4", story: "a link from nowhere", error: "identityChainInvalid") { act in
      act.tell(.rewrite(.link) { $0.append($0[0]) })
    },
    login(
      "A4", "6", story: "the session is another user's, with their chain and keyring", error: "identityChainRollback"
    ) {
      act in
      let stranger = act.stage.stranger
      let (chain, keyring) = (try await stranger.chain(), try await stranger.keyring())
      let (mine, other) = (act.stage.user.text, stranger.keys.userID.text)
      act.tell(
        .body("POST", Routes.login) { body in
          let text = String(decoding: body, as: UTF8.self)
          body = Array(text.split(separator: mine, omittingEmptySubsequences: false).joined(separator: other).utf8)
        },
        .fabricate("GET", Routes.chain) { route, request in
          var bundle = ZDCProtocol.Bundle.Writer()
          for link in chain { bundle.append(link: link.bytes) }
          return ServedAnswer(
            to: route, request: request, status: 200, headers: ["content-type": ZDCProtocol.Bundle.mediaType],
            body: bundle.bytes)
        }, .substitute(.keyring, with: keyring))
    },
    login("A4", "6", story: "the chain without its newest root", error: "identityChainRollback") { act in
      // The words belong to a new access key; an old chain names the old one.
      let rogue = try await act.rogue()
      let old = try await rogue.chain()
      try await rotateRoot(rogue, act)
      act.tell(.rewrite(.link) { $0 = old.map { ServedItem($0) } })
    },
  ]

  /// Gives the account a new access key, whose words the victim types.
  private static func rotateRoot(_ rogue: RogueWriter, _ act: HostileAct) async throws {
    let last = try await rogue.chain()[0]
    let fresh = AccessKey.random()
    let keyring = try rogue.keyring(version: 2).seal(fresh.keyringKey)
    var fields = IdentityLink.Fields(
      kind: .rotateRoot, timeMs: 1, rootPub: fresh.rootKey.publicKey, signPub: last.signPub, encPub: last.encPub)
    (fields.seq, fields.prev, fields.userID) = (1, last.hash, act.stage.user)
    (fields.keyringVersion, fields.keyringHash) = (2, Keyring.hash(keyring))
    let link = try IdentityLink(
      signing: fields, root: rogue.keys.accessKey.rootKey, newRoot: fresh.rootKey, sign: rogue.keys.signingKey)
    try await rogue.append(link, keyring: keyring, accessKey: fresh)
    act.typed.set(fresh.words)
  }

  private static let keyrings: [HostileScenario] =
    [0, 30, 56, 100, -17, -1].map { offset in
      login("A5", "7", story: "a bit of the keyring at \(offset)", error: "keyringAuthFailed") {
        $0.tell(.turnBit(.keyring, at: offset))
      }
    } + [
      login("A5", "8", story: "another user's keyring", error: "keyringAuthFailed") { act in
        let other = try await act.stage.stranger.keyring()
        act.tell(.substitute(.keyring, with: other))
      },
      login("A5", "8", story: "a keyring with other seeds under the same version", error: "keyringMismatch") { act in
        let rogue = try await act.rogue()
        let spliced = Keyring(
          version: 1, user: act.stage.user,
          entries: [
            Keyring.Entry(signing: .random(), gen: 1, status: .current, createdMs: 1),
            Keyring.Entry(decryption: try .random(), gen: 1, status: .current, createdMs: 1),
          ])
        act.tell(.substitute(.keyring, with: try spliced.seal(rogue.keys.accessKey.keyringKey)))
      },
      login("A5", story: "the keyring before the last rotation", error: "keyringRollback") { act in
        let rogue = try await act.rogue()
        let old = try await rogue.keyring()
        let (link, keyring, _) = try await rogue.nextSigningKey()
        try await rogue.append(link, keyring: keyring)
        act.tell(.substitute(.keyring, with: old))
      },
      login("37", "B12", story: "a keyring without an end", error: "limitExceeded") {
        $0.tell(.endless("GET", Routes.keyring, of: [UInt8](repeating: 1, count: 65_536)))
      },
    ]

  private static let missingState: [HostileScenario] = [
    login("A8", "11", story: "no keyring", error: "accountStateMissing") {
      $0.tell(.refuse("GET", Routes.keyring, status: 404, code: "notFound"))
    },
    login("A8", "11", story: "no chain", error: "accountStateMissing") {
      $0.tell(.refuse("GET", Routes.chain, status: 404, code: "notFound"))
    },
    login("A8", "11", story: "an empty chain", error: "accountStateMissing") {
      $0.tell(.rewrite(.link) { $0 = [] })
    },
    HostileScenario(
      "A8", "11", story: "a running device's tree is not found", error: "accountStateMissing", .fails, from: .current
    ) { $0.tell(.noZones, .refuse("GET", Routes.zoneCommits, status: 404, code: "notFound")) },
    HostileScenario(
      "A8", "11", story: "a running device's account is empty", error: "zoneRollback", .suspends, from: .current
    ) { act in
      act.tell(.head(act.zone.zone, seq: 0, hash: act.zone.commits[0].hash), .rewrite(.commit) { $0 = [] })
    },
    login("A8", "11", story: "an account without this app's tree", error: "accountStateMissing") { act in
      let rogue = try await act.rogue()
      let old = try await rogue.chain()[0]
      var fields = IdentityLink.Fields(
        kind: .genesis, timeMs: old.timeMs, rootPub: old.rootPub, signPub: old.signPub, encPub: old.encPub)
      fields.keyringHash = old.keyringHash
      // The user ID does not cover the claims; the user's root key does.
      let link = try IdentityLink(
        signing: fields, root: rogue.keys.accessKey.rootKey, sign: rogue.keys.signingKey)
      act.tell(.substitute(.link, with: link.bytes))
    },
  ]
}
