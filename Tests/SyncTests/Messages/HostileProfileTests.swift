import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Profiles that no honest client would have sent, delivered by an accepted user, and honest ones that come again.
struct HostileProfileTests {
  typealias Pair = MessageTests.Pair
  typealias Forger = HostileMessageTests.Forger

  enum Forgery: String, CaseIterable, Sendable {
    /// Alice delivers a profile that names Carol as its sender.
    case ofAnotherUser
    /// Another user's key has signed it.
    case otherSignature
    case nameTooLong, avatarTooLong, notUTF8, controlCharacter, trailingByte, laterVersion

    var code: ZDCSecurityError.Code {
      switch self {
      case .ofAnotherUser, .otherSignature: .messageAuthFailed
      case .nameTooLong, .avatarTooLong: .limitExceeded
      case .notUTF8, .controlCharacter, .trailingByte: .nonCanonicalEncoding
      case .laterVersion: .unsupportedVersion
      }
    }

    var payload: [UInt8] {
      get throws {
        switch self {
        case .ofAnotherUser, .otherSignature: try UserProfile(name: "forged").bytes
        case .nameTooLong: [1, 1, 1] + [UInt8](repeating: 97, count: 257) + [0, 0]
        case .avatarTooLong: [1, 0, 1, 97, 128, 1] + [UInt8](repeating: 0, count: 32_769)
        case .notUTF8: [1, 0, 1, 0xFF, 0, 0]
        case .controlCharacter: [1, 0, 1, 10, 0, 0]
        case .trailingByte: try UserProfile(name: "forged").bytes + [0]
        case .laterVersion: [2] + (try UserProfile(name: "forged").bytes.dropFirst())
        }
      }
    }
  }

  @Test(arguments: Forgery.allCases)
  func aForgedProfileChangesNoName_andTheNextHonestOneDoes(forgery: Forgery) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let carol = try await world.device("carol", account: "carol")
      try await pair.bob.meet(carol)
      try await pair.bob.acceptMessages(of: carol)
      let forger = try await Forger(pair)
      world.expectsSecurityErrors([forgery.code.rawValue], on: pair.bob)
      var fields = try forger.profile(version: 3)
      fields.payload = try forgery.payload
      if forgery == .ofAnotherUser { fields.sender = try carol.userID }
      let envelope = try forger.rawEnvelope(fields, signer: forgery == .otherSignature ? .random() : nil)
      #expect(try await pair.alice.api.deliver([envelope.bytes]) == [.delivered])
      try await pair.bob.sync()
      #expect(try await pair.bob.name(of: pair.alice) == nil)
      #expect(try await pair.bob.name(of: carol) == nil)
      #expect(pair.bob.recorder.take().isEmpty)
      let events = try await pair.bob.syncManager.securityEvents(localUserID: try pair.bob.localUserID)
      #expect(events.map(\.error.code) == [forgery.code])
      let honest = try forger.envelope(try forger.profile("Alice", version: 1))
      #expect(try await pair.alice.api.deliver([honest.bytes]) == [.delivered])
      try await pair.bob.sync()
      #expect(try await pair.bob.name(of: pair.alice) == "Alice")
    }
  }

  /// - the server delivers the envelope of an old profile again, or the new one first
  /// => the newest name stays, the old envelope is deleted, and no node is put
  @Test(arguments: [true, false]) func anOldProfileThatComesAgain_changesNothing(isFirst: Bool) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let (old, new) = (
        try forger.envelope(try forger.profile("old", version: 1)),
        try forger.envelope(try forger.profile("new", version: 2))
      )
      if isFirst {
        #expect(try await pair.alice.api.deliver([old.bytes]) == [.delivered])
        try await pair.bob.sync()
      }
      #expect(try await pair.alice.api.deliver([new.bytes]) == [.delivered])
      try await pair.bob.sync()
      _ = pair.bob.recorder.take()
      let commits = pair.bob.network.count("POST", Routes.commits)
      #expect(try await pair.alice.api.deliver([old.bytes]) == [.delivered])
      try await pair.bob.sync()
      #expect(try await pair.bob.name(of: pair.alice) == "new")
      #expect(try await pair.bob.waitingCount() == 0)
      #expect(pair.bob.network.count("POST", Routes.commits) == commits && pair.bob.recorder.take().isEmpty)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.sync()
      try await tablet.meet(pair.alice)
      #expect(try await tablet.name(of: pair.alice) == "new")
    }
  }

  /// - a profile has the highest version that there is
  /// => it is shown, and its user's later ones are not, and no other user is affected
  @Test func theHighestVersionOverflowsNothing() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      for (name, version) in [("last", UInt64.max), ("later", 1)] {
        let envelope = try forger.envelope(try forger.profile(name, version: version))
        #expect(try await pair.alice.api.deliver([envelope.bytes]) == [.delivered])
        try await pair.bob.sync()
        #expect(try await pair.bob.name(of: pair.alice) == "last")
      }
    }
  }
}

extension HostileMessageTests.Forger {
  func profile(_ name: String = "forged", version: UInt64) throws -> MessageBody.Fields {
    var fields = fields("", seq: version)
    (fields.kind, fields.payload) = (.profile, try UserProfile(name: name).bytes)
    return fields
  }

  /// Signs and seals a body whose payload does not fit its kind: one of a message, of which the kind is changed.
  func rawEnvelope(_ fields: MessageBody.Fields, signer: SigningKey? = nil) throws -> MessageEnvelope {
    let signer = signer ?? session.keys.signingKey
    var honest = fields
    honest.kind = .message
    let body = try MessageBody(honest) { try signer.sign(label: "message", message: $0) }
    var bytes = body.bytes
    // magic, versions and all fields up to the kind, without heads
    let kind = 6 + 16 + 32 + 4 + 8 + 32 + 32 + 4 + 8 + 8 + 8 + 32 + 2
    bytes[kind] = fields.kind.rawValue
    let end = kind + 1 + 4 + fields.payload.count
    bytes.replaceSubrange(end..<end + 64, with: try signer.sign(label: "message", message: Array(bytes[..<end])))
    let context = MessageEnvelope.context(
      id: fields.id, recipient: fields.recipient, inbox: fields.inbox, encGen: fields.recipientEncGen)
    return MessageEnvelope(
      id: fields.id, recipient: fields.recipient, inbox: fields.inbox, recipientEncGen: fields.recipientEncGen,
      sealed: try Wrap.wrap(to: key.encPub, label: "message", context: context, plaintext: bytes))
  }
}
