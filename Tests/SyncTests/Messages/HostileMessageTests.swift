import Testing
import ZDCAccounts
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Envelopes that an honest sender would not have made, delivered by an accepted user.
struct HostileMessageTests {
  typealias Pair = MessageTests.Pair

  enum Forgery: String, CaseIterable, Sendable {
    /// The body names another sender than the one who delivered it.
    case otherSender
    /// The body was meant for another recipient, and was sealed again.
    case otherRecipient
    /// The body was meant for the recipient's inbox of another app.
    case otherInbox
    /// The body names another generation of the recipient's key than the envelope.
    case otherGeneration
    /// Another user's key has signed the body.
    case otherSignature
    /// The body has the id of another message.
    case otherID
    /// The seal is broken.
    case flippedBit

    var code: ZDCSecurityError.Code {
      switch self {
      case .otherRecipient, .otherInbox, .otherGeneration: .messageWrongRecipient
      case .otherSender, .otherSignature, .otherID, .flippedBit: .messageAuthFailed
      }
    }
  }

  /// Makes envelopes of Alice for Bob.
  struct Forger {
    let session: SyncSession
    let bob: UserID
    let key: RecipientKey

    init(_ pair: Pair) async throws { try await self.init(alice: pair.alice, bob: pair.bob) }

    init(alice: TestDevice, bob recipient: TestDevice) async throws {
      session = try await alice.syncManager.engine(for: try alice.localUserID).session
      bob = try recipient.userID
      key = try #require(try await session.identities.recipients([bob], own: session.keys).keys[bob])
    }

    func fields(_ text: String, seq: UInt64 = 1) -> MessageBody.Fields {
      MessageBody.Fields(
        id: .random(), sender: session.user, senderGen: session.keys.signGen, device: 1, recipient: bob,
        inbox: .derive(owner: bob, trunk: .inbox, appTreeID: TestDevice.treeID), recipientEncGen: key.encGen, seq: seq,
        timeMs: 1, kind: .message, payload: Array(text.utf8))
    }

    func envelope(
      _ fields: MessageBody.Fields, outside: MessageBody.Fields? = nil, signer: SigningKey? = nil
    ) throws -> MessageEnvelope {
      let signer = signer ?? session.keys.signingKey
      let body = try MessageBody(fields) { try signer.sign(label: "message", message: $0) }
      let shown = outside ?? fields
      let context = MessageEnvelope.context(
        id: shown.id, recipient: shown.recipient, inbox: shown.inbox, encGen: shown.recipientEncGen)
      let sealed = try Wrap.wrap(to: key.encPub, label: "message", context: context, plaintext: body.bytes)
      return MessageEnvelope(
        id: shown.id, recipient: shown.recipient, inbox: shown.inbox, recipientEncGen: shown.recipientEncGen,
        sealed: sealed)
    }

    /// Returns an envelope that an honest sender would have made.
    func envelope(hasContent: Bool) throws -> MessageEnvelope {
      var fields = fields("honest")
      if hasContent {
        let content = try ContentSealer.sealSmall(data: Array("content".utf8))
        let attachment = try MessageAttachment(.init(content.content(dataVersion: 1)), secrets: content.secrets)
        (fields.kind, fields.payload) = (.attached, attachment.payload)
      }
      let body = try MessageBody(fields) { try session.keys.signingKey.sign(label: "message", message: $0) }
      return try MessageEnvelope(sealing: body, encPub: key.encPub)
    }

    func envelope(_ forgery: Forgery) throws -> MessageEnvelope {
      let honest = fields("forged")
      var forged = honest
      switch forgery {
      case .otherSender: forged.sender = UserID(1, 2, 3, 4)
      case .otherRecipient: forged.recipient = session.user
      case .otherInbox: forged.inbox = .derive(owner: bob, trunk: .inbox, appTreeID: "com.example.other")
      case .otherGeneration: forged.recipientEncGen = 7
      case .otherSignature: return try envelope(honest, signer: .random())
      case .otherID: forged.id = .random()
      case .flippedBit:
        let good = try envelope(honest)
        var sealed = good.sealed
        sealed[sealed.count / 2] ^= 1
        return MessageEnvelope(
          id: good.id, recipient: good.recipient, inbox: good.inbox, recipientEncGen: good.recipientEncGen,
          sealed: sealed)
      }
      return try envelope(forged, outside: honest)
    }
  }

  @Test(arguments: Forgery.allCases) func aForgedMessageStaysOut_andTheNextOneArrives(forgery: Forgery) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      world.expectsSecurityErrors([forgery.code.rawValue], on: pair.bob)
      #expect(try await pair.alice.api.deliver([forger.envelope(forgery).bytes]) == [.delivered])
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      #expect(pair.bob.recorder.take().isEmpty)
      let events = try await pair.bob.syncManager.securityEvents(localUserID: try pair.bob.localUserID)
      #expect(events.map(\.error.code) == [forgery.code])
      try await pair.alice.send("honest", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: honest"])
    }
  }

  /// - One bit of a message is flipped, in each byte of its envelope in turn; once with content beside it
  /// => no altered envelope gives a message. Those that name another generation of the key wait for it
  @Test(arguments: [false, true]) func everyByteOfAnEnvelope_isNoticed(hasContent: Bool) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      world.expectsSecurityErrors(["messageWrongRecipient", "messageAuthFailed"], on: pair.bob)
      let (opener, sender) = (try await Self.opener(pair.bob), try pair.alice.userID)
      let honest = try await Forger(pair).envelope(hasContent: hasContent)
      let opened = try await opener.open([(MessageName(sender: sender, id: honest.id), honest)])
      #expect(opened.messages.map(\.fields.id) == [honest.id])
      var altered: [(name: MessageName, envelope: MessageEnvelope)] = []
      for offset in honest.bytes.indices {
        var bytes = honest.bytes
        bytes[offset] ^= 1 << UInt8(offset % 8)
        // The form of some is wrong. The others have a name that says which byte it was.
        let id = MessageID(high: 0, low: UInt64(offset))
        do throws(ZDCSecurityError) {
          altered.append((MessageName(sender: sender, id: id), try MessageEnvelope(bytes)))
        } catch { #expect([.nonCanonicalEncoding, .unsupportedVersion, .limitExceeded].contains(error.code)) }
      }
      let result = try await opener.open(altered)
      #expect(result.messages.isEmpty)
      #expect(result.refused.union(result.skipped) == Set(altered.map(\.name)))
      // recipientEncGen
      #expect(Set(result.skipped.map(\.id)) == Set((86..<90).map { MessageID(high: 0, low: $0) }))
    }
  }

  private static func opener(_ device: TestDevice) async throws -> MessageOpener {
    let engine = try await device.syncManager.engine(for: try device.localUserID)
    let (session, zones) = (engine.session, try await engine.zones())
    let zone = try #require(zones.first { $0.trunk == .inbox }?.id)
    let inbox = try await session.database.asyncRead { try InboxWriter(session: session, zone: zone, $0) }
    return MessageOpener(session: session, inbox: try #require(inbox))
  }

  @Test func messagesInAnotherOrderAllArrive() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let (first, second) = (
        try forger.envelope(forger.fields("one", seq: 1)), try forger.envelope(forger.fields("two", seq: 2))
      )
      #expect(try await pair.alice.api.deliver([second.bytes, first.bytes]) == [.delivered, .delivered])
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: one", "alice: two"])
    }
  }

  /// - The server puts the envelopes of one answer twice
  /// => each message is there once
  @Test func aRepeatedEnvelopeIsOneMessage() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let envelope = try forger.envelope(forger.fields("once"))
      #expect(try await pair.alice.api.deliver([envelope.bytes, envelope.bytes]) == [.delivered, .delivered])
      try await pair.bob.sync()
      #expect(try await pair.alice.api.deliver([envelope.bytes]) == [.exists])
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: once"])
    }
  }

  /// - Alice and Carol have sent Bob messages with one ID, and Alice's is removed after his device has read the list
  /// => Carol's is not taken for a forged one of Alice
  @Test func aMessageWithTheIDOfAnotherSenders_isNotTakenForIt() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (bob, carol) = (pair.bob, try await world.device("carol", account: "carol"))
      try await carol.meet(bob)
      try await bob.meet(carol)
      try await bob.acceptMessages(of: carol)
      let id = MessageID(high: 1, low: 2)
      for (sender, text) in [(pair.alice, "one"), (carol, "two")] {
        let forger = try await Forger(alice: sender, bob: bob)
        var fields = forger.fields(text)
        fields.id = id
        #expect(try await sender.api.deliver([forger.envelope(fields).bytes]) == [.delivered])
      }
      let inbox = TreeID.derive(owner: try bob.userID, trunk: .inbox, appTreeID: TestDevice.treeID)
      let (api, alice) = (try await bob.api, try pair.alice.userID)
      bob.network.fail(
        .before { try await api.deleteMessage(MessageName(sender: alice, id: id), in: inbox) }, "POST",
        Routes.inboxEnvelopes)
      for _ in 0..<2 { try await bob.sync() }
      #expect(bob.network.hasStruck)
      #expect(try await bob.messages(from: pair.alice, carol) == ["carol: two"])
      #expect(try await bob.waiting().isEmpty)
    }
  }

  enum Withholding: CaseIterable, Sendable {
    /// Answers lack the new link of the sender's chain.
    case omitted
    /// The server refuses to show chains.
    case refused

    func lie(about sender: UserID) -> Lie {
      switch self {
      case .omitted: .withhold(.link) { $0.link?.userID == sender }
      case .refused: .refuse("POST", Routes.chains, status: 403, code: "forbidden")
      }
    }
  }

  /// - Alice and Carol send messages; the server shows Bob no chain with the new key that has signed Alice's
  /// => Carol's arrives, and Alice's is reported; when the server shows the chain, it arrives once
  @Test(arguments: Withholding.allCases) func aSenderWithoutAChain_delaysNobody(
    withholding: Withholding
  ) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let (alice, carol) = (try await world.device("alice"), try await world.device("carol", account: "carol"))
      let bob = try await TestDevice("bob", server: world.server, clock: world.clock, through: hostile)
      try await bob.createAccount()
      for sender in [alice, carol] {
        try await sender.meet(bob)
        try await bob.acceptMessages(of: sender)
      }
      try await alice.zdc.localUserManager?.rotateKeys(for: try alice.localUserID)
      for sender in [alice, carol] {
        try await sender.send("hello", to: bob)
        try await sender.sync()
      }
      let unknown = try alice.userID
      hostile.tell(withholding.lie(about: unknown), to: "bob")
      try await bob.sync()
      #expect(hostile.liesTold > 0)
      #expect(try await bob.messages(from: alice, carol) == ["carol: hello"])
      let events = try await bob.syncManager.securityEvents(localUserID: try bob.localUserID)
      #expect(events.map(\.error.code) == [.writerUnknown])
      #expect(events.map(\.error.user) == [unknown])
      hostile.stopTampering()
      for _ in 0..<2 { try await bob.sync() }
      #expect(try await bob.messages(from: alice, carol) == ["alice: hello", "carol: hello"])
      #expect(bob.recorder.take().count { $0.hasPrefix("new ") } == 2)
      try await bob.close()
    }
  }
}
