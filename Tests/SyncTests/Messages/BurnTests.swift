import Testing
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Messages that their sender deletes at the recipients, and burns that no honest client would send.
struct BurnTests {
  typealias Pair = MessageTests.Pair
  typealias Forger = HostileMessageTests.Forger

  @Test func aBurnedMessageGoes_onAllDevicesOfBoth() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let (phone, tablet) = (
        try await world.device("alice's phone"), try await world.device("bob's tablet", account: "bob")
      )
      let message = try await pair.alice.send("regret", to: pair.bob)
      try await pair.alice.send("fine", to: pair.bob)
      for device in [pair.alice, pair.bob, tablet, phone] { try await device.sync() }
      #expect(try await tablet.messages(from: pair.alice) == ["alice: fine", "alice: regret"])
      try await pair.alice.burn(message)
      for device in [pair.alice, pair.bob, tablet, phone] { try await device.sync() }
      for device in [pair.bob, tablet] {
        #expect(try await device.messages(from: pair.alice) == ["alice: fine"])
        #expect(device.recorder.take().count { $0.hasPrefix("deleted ") } == 1)
      }
      for device in [pair.alice, phone] { #expect(try await device.messages(.outbox) == ["me: fine"]) }
      #expect(try await pair.bob.waiting().isEmpty)
      #expect(try await pair.alice.queueCount() == 0)
    }
  }

  /// - the other device of the sender burns
  @Test func anotherDeviceOfTheSenderBurns() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let phone = try await world.device("alice's phone")
      let message = try await pair.alice.send("regret", to: pair.bob)
      for device in [pair.alice, pair.bob, phone] { try await device.sync() }
      let copy = try #require(
        try await phone.write { _, cloud in
          try cloud.trunkNode(.outbox).flatMap { try cloud.children(ofNodeID: $0.uuid).first }
        })
      #expect(copy.cloudID == message.cloudID)
      try await phone.burn(copy)
      for device in [phone, pair.bob, pair.alice] { try await device.sync() }
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      #expect(try await pair.alice.messages(.outbox) == [])
    }
  }

  /// - the message is in the outbox, and nothing of it was sent when the app burns it
  /// - another device of the sender takes it over before it reads the deletion
  /// => the burn reaches the recipient all the same
  @Test func aBurnReachesTheRecipient_ofAMessageThatAnotherDeviceSends() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let phone = try await world.device("alice's phone")
      let message = try await pair.alice.send("regret", to: pair.bob)
      try await pair.alice.push()
      try await phone.sync()
      try await pair.alice.burn(message)
      world.clock.advance(by: .seconds(30 * 60))
      for device in [phone, pair.bob] { try await device.sync() }
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: regret"])
      for device in [pair.alice, phone, pair.bob] { try await device.sync() }
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      #expect(try await phone.messages(.outbox) == [])
    }
  }

  /// - the message and its burn wait together, then the server delivers the message again
  /// => no device ever shows it
  @Test func aMessageThatIsBurnedBeforeItIsRead_isNeverShown_alsoNotLater() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let message = try await pair.alice.send("regret", to: pair.bob)
      let envelope = try await pair.alice.sendKeepingEnvelope()
      try await pair.alice.burn(message)
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.waiting().isEmpty)
      #expect(try await pair.alice.api.deliver([envelope]) == [.delivered])
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.meet(pair.alice)
      try await tablet.acceptMessages(of: pair.alice)
      for device in [tablet, pair.bob] {
        try await device.sync()
        #expect(try await device.messages(from: pair.alice) == [])
        #expect(device.recorder.take().filter { $0.hasPrefix("new") || $0.hasPrefix("deleted") } == [])
      }
      #expect(try await pair.bob.waiting().isEmpty)
    }
  }

  /// - the server withholds a message, and shows its burn first
  @Test func aBurnThatComesBeforeItsMessage_keepsItOut() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let message = forger.fields("late")
      #expect(try await pair.alice.api.deliver([forger.burn(message.id).bytes]) == [.delivered])
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.whileRunning {
        try await pair.bob.sync()
        try await tablet.create("/after", "x")
        await tablet.recorder.wait(for: "pushed /after")
      }
      #expect(try await pair.alice.api.deliver([forger.envelope(message).bytes]) == [.delivered])
      for device in [pair.bob, tablet] {
        try await device.sync()
        #expect(try await device.messages(from: pair.alice) == [])
        #expect(device.recorder.take().filter { $0.hasPrefix("new /") && $0 != "new /after" } == [])
      }
    }
  }

  /// - a user burns a message of another one
  /// => it stays
  @Test func nobodyBurnsAnothersMessage() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let mallory = try await world.device("mallory", account: "mallory")
      try await mallory.meet(pair.bob)
      try await pair.bob.meet(mallory)
      try await pair.bob.acceptMessages(of: mallory)
      let message = try await pair.alice.send("stays", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      let id = try #require(MessageID(text: message.cloudID))
      let forger = try await Forger(alice: mallory, bob: pair.bob)
      #expect(try await mallory.api.deliver([forger.burn(id).bytes]) == [.delivered])
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice, mallory) == ["alice: stays"])
      #expect(try await pair.bob.waiting().isEmpty)
    }
  }

  /// - a burn is delivered again after the message that it names was sent again under another ID
  /// => the second time it changes nothing
  @Test func aReplayedBurnChangesNothing() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let message = forger.fields("regret")
      let burn = try forger.burn(message.id)
      #expect(try await pair.alice.api.deliver([forger.envelope(message).bytes, burn.bytes]).count == 2)
      try await pair.bob.sync()
      try await pair.bob.sync()
      let commits = pair.bob.network.count("POST", Routes.commits)
      #expect(try await pair.alice.api.deliver([burn.bytes]) == [.delivered])
      try await pair.bob.sync()
      #expect(pair.bob.network.count("POST", Routes.commits) == commits)
      #expect(try await pair.bob.waiting().isEmpty)
    }
  }

  enum Forgery: CaseIterable, Sendable { case otherID, numbered, longPayload }

  @Test(arguments: Forgery.allCases) func aForgedBurnIsRefused(forgery: Forgery) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let message = forger.fields("stays")
      world.expectsSecurityErrors(["nonCanonicalEncoding"], on: pair.bob)
      var fields = try forger.burnFields(message.id)
      switch forgery {
      case .otherID: fields.id = .random()
      case .numbered: fields.seq = 2
      case .longPayload: fields.payload.append(0)
      }
      let envelopes = [try forger.envelope(message), try forger.rawEnvelope(fields)]
      #expect(try await pair.alice.api.deliver(envelopes.map(\.bytes)) == [.delivered, .delivered])
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: stays"])
    }
  }

  /// The receiving device dies after each of its transactions in turn.
  @Test(arguments: 1...8, [false, true])
  func aReceiverThatDies_obeysAfterItsNextStart(commits: Int, hasMessage: Bool) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let message = try await pair.alice.send("regret", to: pair.bob)
      try await pair.alice.sync()
      if hasMessage { try await pair.bob.sync() }
      try await pair.alice.burn(message)
      try await pair.alice.sync()
      pair.bob.die(afterCommits: commits)
      _ = try? await pair.bob.sync()
      try await pair.bob.relaunch()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      #expect(try await pair.bob.waiting().isEmpty)
    }
  }

  @Test(arguments: [true, false]) func aLostAnswerToABurn_isHarmless(isAnswer: Bool) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let message = try await pair.alice.send("regret", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      try await pair.alice.burn(message)
      pair.alice.network.fail(isAnswer ? .loseResponse : .loseRequest, "POST", Routes.messages)
      _ = try? await pair.alice.sync()
      try await pair.alice.sync()
      pair.bob.network.fail(isAnswer ? .loseResponse : .loseRequest, "POST", Routes.commits)
      _ = try? await pair.bob.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      #expect(try await pair.alice.queueCount() == 0)
    }
  }

  /// - a message is burned before it was sent
  /// => the recipient gets nothing at all
  @Test func aMessageThatWasNotSent_needsNoBurn() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let message = try await pair.alice.send("regret", to: pair.bob)
      try await pair.alice.burn(message)
      try await pair.alice.sync()
      #expect(pair.alice.network.count("POST", Routes.messages) == 0)
      #expect(try await pair.alice.queueCount() == 0)
    }
  }

  /// - the recipient marks the message as read, offline, and it is burned in the meantime
  @Test func aReadMark_keepsNoBurnedMessage() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let message = try await pair.alice.send("regret", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      try await pair.alice.burn(message)
      try await pair.alice.sync()
      try await pair.bob.mark(true)
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      #expect(try await pair.bob.queueCount() == 0)
    }
  }

  /// - the recipient has moved one message below another, and the sender burns both
  @Test(arguments: [true, false]) func messagesBelowEachOther_areBurnedTogether(isFirstBelow: Bool) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      var messages: [ZDCNode] = []
      for text in ["one", "two"] { messages.append(try await pair.alice.send(text, to: pair.bob)) }
      try await pair.alice.sync()
      try await pair.bob.sync()
      let sender = try pair.alice.userID
      let names = try messages.map { NodeID(message: try #require(MessageID(text: $0.cloudID)), from: sender).text }
      let (above, below) = isFirstBelow ? (names[1], names[0]) : (names[0], names[1])
      try await pair.bob.write { _, cloud in
        guard let inbox = cloud.trunkNode(.inbox) else { return }
        let nodes = try cloud.children(ofNodeID: inbox.uuid)
        guard let node = nodes.first(where: { $0.cloudID == below }) else { return }
        _ = try cloud.moveNode(node, to: ZDCTreesystemPath(pathComponents: [above, "moved"], trunk: .inbox))
      }
      try await pair.bob.sync()
      for message in messages { try await pair.alice.burn(message) }
      try await pair.alice.sync()
      try await pair.bob.sync()
      let left = try await pair.bob.write { _, cloud in
        try cloud.trunkNode(.inbox).map { try cloud.children(ofNodeID: $0.uuid).count }
      }
      #expect(left == 0)
      #expect(try await pair.bob.waiting().isEmpty)
    }
  }

  /// - the recipient has 10,200 nodes below one message, more than one commit deletes, and another message below that one
  /// - the sender burns both, and a third message
  /// => all go, the large one in several commits, and the mailbox is empty
  @Test(.timeLimit(.minutes(20))) func aBurnOfMoreNodesThanOneCommitDeletes_isMadeInPieces() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      var messages: [ZDCNode] = []
      for text in ["large", "inner", "small", "stays"] {
        messages.append(try await pair.alice.send(text, to: pair.bob))
      }
      for device in [pair.alice, pair.bob] { try await device.sync() }
      let sender = try pair.alice.userID
      let names = try messages.map { NodeID(message: try #require(MessageID(text: $0.cloudID)), from: sender).text }
      try await pair.bob.write { _, cloud in
        let inner = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: [names[1]], trunk: .inbox)))
        _ = try cloud.moveNode(inner, to: ZDCTreesystemPath(pathComponents: [names[0], "inner"], trunk: .inbox))
      }
      try await pair.bob.sync()
      try await Self.addNodes(10_200, below: names[0], pair.bob, world)
      for message in messages.dropLast() { try await pair.alice.burn(message) }
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: stays"])
      #expect(try await pair.bob.waiting().isEmpty)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.meet(pair.alice)
      try await tablet.sync()
      #expect(try await tablet.messages(from: pair.alice) == ["alice: stays"])
    }
  }

  /// Puts nodes below a message, as an altered client of the same user.
  private static func addNodes(
    _ count: Int, below name: String, _ device: TestDevice, _ world: TestWorld
  ) async throws {
    let rogue = try await RogueWriter(
      words: try #require(world.words(of: "bob")), user: try device.userID, server: world.server)
    let inbox = try await rogue.zone(
      ZoneID(trunkOf: .derive(owner: device.userID, trunk: .inbox, appTreeID: TestDevice.treeID)))
    var last: ZoneCommit?
    for start in stride(from: 0, to: count, by: 850) {
      let records = try (start..<min(start + 850, count)).map {
        try RecordSealer.seal(try inbox.draft(new: "\($0)", below: name))
      }
      let commit = try inbox.commit(records.map { .put(ZoneOperation.Put($0)) }, after: last)
      try await rogue.push(commit, records)
      last = commit
    }
  }

  @Test func onlyASentMessageIsBurned() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let note = try await pair.alice.create("/note", "x")
      try await pair.alice.sync()
      await #expect(throws: ZDCCloudError.self) { try await pair.alice.burn(note) }
      #expect(try await pair.alice.tree().contains("/note"))
    }
  }
}

extension HostileMessageTests.Forger {
  func burnFields(_ message: MessageID) throws -> MessageBody.Fields {
    var burn = fields("")
    (burn.id, burn.kind, burn.payload) = (
      MessageID(burning: message, from: session.user, to: bob), .burn, message.bytes
    )
    return burn
  }

  func burn(_ message: MessageID) throws -> MessageEnvelope { try envelope(burnFields(message)) }
}

extension TestDevice {
  func burn(_ message: ZDCNode) async throws { try await write { _, cloud in try cloud.burn(message) } }

  /// Marks all messages of the inbox.
  func mark(_ isRead: Bool) async throws {
    try await write { _, cloud in
      guard let inbox = cloud.trunkNode(.inbox) else { return }
      for node in try cloud.children(ofNodeID: inbox.uuid) { try cloud.markAsRead(node, isRead) }
    }
  }

  /// The messages that wait in the mailbox.
  func waiting() async throws -> [WaitingMessage] {
    let inbox = TreeID.derive(owner: try userID, trunk: .inbox, appTreeID: TestDevice.treeID)
    return try await api.waitingMessages(in: inbox, after: 0).messages
  }
}
