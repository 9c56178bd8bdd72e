import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

extension HostileScenario {
  /// Chain and keyring of an account that is on the device and syncs: nothing is pushed until they are restored.
  static let denied: [HostileScenario] = goneBack + goneOn + goneAltogether

  private static func running(
    _ rows: String..., story: String, error: String, _ arrange: @escaping @Sendable (HostileAct) async throws -> Void
  ) -> HostileScenario {
    var scenario = HostileScenario(
      "", story: "\(story), on a running device", error: error, .fails, from: .current, by: .push
    ) { act in
      try await arrange(act)
      // A check is not repeated before the next start or reconnection.
      try await act.victim.relaunch()
    }
    scenario.rows = rows
    scenario.isRefused = true
    return scenario
  }

  /// Rotates the keys on another device, and lets this device see it.
  private static func rotate(_ act: HostileAct) async throws -> (before: [IdentityLink], rogue: RogueWriter) {
    let rogue = try await act.rogue()
    let before = try await rogue.chain()
    let (link, keyring, _) = try await rogue.nextSigningKey()
    try await rogue.append(link, keyring: keyring)
    try await act.victim.pull()
    return (before, rogue)
  }

  private static let goneBack: [HostileScenario] = [
    running("A4", "6", story: "the chain without its newest link", error: "identityChainRollback") { act in
      let (before, _) = try await rotate(act)
      act.tell(.rewrite(.link) { $0 = before.map { ServedItem($0) } })
    },
    running("A4", "6", story: "another newest link, signed as it should be", error: "identityChainInvalid") { act in
      let (before, rogue) = try await rotate(act)
      let other = try await rogue.nextSigningKey().link
      act.tell(.rewrite(.link) { $0 = (before + [other]).map { ServedItem($0) } })
    },
    running("A4", story: "another branch that is longer", error: "identityChainInvalid") { act in
      let (before, rogue) = try await rotate(act)
      let other = try await rogue.nextSigningKey().link
      let next = try claims(after: other, rogue, act)
      act.tell(.rewrite(.link) { $0 = (before + [other, next]).map { ServedItem($0) } })
    },
    running("A1", "2", story: "another user's valid chain", error: "userIDMismatch") { act in
      let other = try await act.stage.stranger.chain()
      act.tell(.rewrite(.link) { $0 = other.map { ServedItem($0) } })
    },
  ]

  /// Returns a link that only claims another tree.
  private static func claims(after last: IdentityLink, _ rogue: RogueWriter, _ act: HostileAct) throws -> IdentityLink {
    var fields = IdentityLink.Fields(
      kind: .claims, timeMs: 1, rootPub: last.rootPub, signPub: last.signPub, encPub: last.encPub)
    (fields.seq, fields.prev, fields.userID) = (last.seq + 1, last.hash, act.stage.user)
    (fields.signGen, fields.encGen) = (last.signGen, last.encGen)
    (fields.keyringVersion, fields.keyringHash) = (last.keyringVersion, last.keyringHash)
    fields.claims = [
      .tree(appTreeID: "another.tree", genesisCommits: [CommitHash](repeating: .zero, count: 4))
    ]
    return try IdentityLink(signing: fields, root: rogue.keys.accessKey.rootKey, sign: .random())
  }

  /// A scenario in which the chain has a new link, so that it is read with its keyring. Both are honest, except for the
  /// lie.
  private static func rotated(
    _ rows: String..., story: String, error: String, _ lie: @escaping @Sendable (HostileAct) async throws -> Lie
  ) -> HostileScenario {
    var scenario = running(story: "the keys were rotated; \(story)", error: error) { act in
      let rogue = try await act.rogue()
      let told = try await lie(act)
      let (link, keyring, _) = try await rogue.nextSigningKey()
      try await rogue.append(link, keyring: keyring)
      act.tell(told)
    }
    scenario.rows = rows
    return scenario
  }

  private static let isNew: Lie.Choice = { ($0.link?.seq ?? 1) > 0 }

  private static let goneOn: [HostileScenario] = [
    rotated("A1", "1", story: "a bit of the new link's signature", error: "identityChainInvalid") { _ in
      .turnBit(.link, at: -1, where: isNew)
    },
    rotated("A1", "1", story: "an exchanged public key in the new link", error: "identityChainInvalid") { _ in
      .turnBit(.link, at: 200, where: isNew)
    },
    rotated("A9", "12", story: "a signature key that fits every message", error: "weakPublicKey") { _ in
      .change(.link, where: isNew) {
        $0.replaceSubrange(6 + 1 + 4 + 32 + 32 + 8 + 32 + 4..<155 - 4, with: [1] + [UInt8](repeating: 0, count: 31))
      }
    },
    rotated("A5", "8", story: "the keyring before", error: "keyringRollback") { act in
      let old = try await act.rogue().keyring()
      return .substitute(.keyring, with: old)
    },
    rotated("A5", "7", story: "a bit of the keyring", error: "keyringAuthFailed") { _ in .turnBit(.keyring, at: 100) },
    rotated("A5", "8", story: "another user's keyring", error: "keyringAuthFailed") { act in
      .substitute(.keyring, with: try await act.stage.stranger.keyring())
    },
    rotated("A8", "11", story: "no keyring", error: "accountStateMissing") { _ in
      .refuse("GET", Routes.keyring, status: 404, code: "notFound")
    },
  ]

  private static let goneAltogether: [HostileScenario] = [
    running("A8", "11", story: "no chain", error: "accountStateMissing") {
      $0.tell(.refuse("GET", Routes.chain, status: 404, code: "notFound"))
    },
    running("A8", "11", story: "an empty chain", error: "accountStateMissing") { $0.tell(.rewrite(.link) { $0 = [] }) },
    running("37", "B12", story: "a chain without an end", error: "limitExceeded") {
      $0.tell(.endless("GET", Routes.chain, of: [UInt8](repeating: 1, count: 65_536)))
    },
  ]
}
