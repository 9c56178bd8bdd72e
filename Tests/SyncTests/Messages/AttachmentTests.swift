import Foundation
import Testing
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Messages whose data is too large for an envelope: it is content of the sender's outbox, and then of the inbox.
struct AttachmentTests {
  typealias Pair = MessageTests.Pair

  private static func text(_ letter: Character, _ length: Int = 1_000_000) -> String {
    String(repeating: letter, count: length)
  }

  private static func bytesSent(_ device: TestDevice) -> Int {
    device.network.requests.reduce(0) { $0 + $1.bytesSent }
  }

  /// A part of an upload is about 8 MiB.
  @Test func aMessageOfSeveralParts_arrives() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let text = Self.text("p", 20_000_000)
      try await pair.alice.send(text, to: pair.bob)
      try await pair.alice.sync()
      #expect(pair.alice.network.count("PUT", Routes.blobPart) == 3)
      try await pair.bob.sync()
      let found = try await pair.bob.messages(from: pair.alice)
      #expect(found.count == 1 && found.first == "alice: " + text)
    }
  }

  @Test func aLargeMessageArrives_onAllDevicesOfBoth_andIsUploadedOnce() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let carol = try await world.device("carol", account: "carol")
      let (phone, tablet) = (
        try await world.device("alice's phone"), try await world.device("bob's tablet", account: "bob")
      )
      try await pair.alice.meet(carol)
      try await carol.acceptMessages(of: pair.alice)
      let text = Self.text("a")
      try await pair.alice.send(text, to: pair.bob, carol)
      let before = Self.bytesSent(pair.alice)
      try await pair.alice.sync()
      #expect(pair.alice.recorder.take().filter { $0.hasPrefix("sent") }.count == 2)
      #expect(Self.bytesSent(pair.alice) - before < 1_300_000)
      for device in [pair.bob, carol] {
        let sent = Self.bytesSent(device)
        try await device.sync()
        #expect(try await device.messages(from: pair.alice) == ["alice: \(text)"])
        #expect(Self.bytesSent(device) - sent < 100_000)
      }
      try await tablet.sync()
      #expect(try await tablet.messages(from: pair.alice) == ["alice: \(text)"])
      try await phone.sync()
      #expect(try await phone.messages(.outbox) == ["me: \(text)"])
    }
  }

  @Test func theLimitOfAnEnvelope_decidesWhereTheDataIs() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let texts = [Self.text("a", Limits.messageBytes), Self.text("b", Limits.messageBytes + 1)]
      for (text, isAttached) in zip(texts, [false, true]) {
        try await pair.alice.send(text, to: pair.bob)
        let envelope = try MessageEnvelope(try await pair.alice.sendKeepingEnvelope())
        #expect((envelope.attachment != nil) == isAttached)
        try await pair.bob.sync()
      }
      #expect(try await pair.bob.messages(from: pair.alice) == texts.map { "alice: \($0)" })
    }
  }

  /// - The app downloads in the callback that announces the message, and asks for the file to be kept
  /// => one completion for the tag, and the disk manager has the file
  @Test func theCallbackThatAnnouncesAMessage_mayDownloadItsData() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let text = Self.text("c")
      try await pair.alice.send(text, to: pair.bob)
      try await pair.alice.sync()
      let (stream, answers) = AsyncStream<(node: ZDCNode, file: ZDCCryptoFile?)>.makeStream()
      let (bob, queue) = (pair.bob, DispatchQueue(label: "completions"))
      bob.recorder.on(.new) { node, _ in
        let options = ZDCDownloadOptions()
        (options.cacheToDiskManager, options.completionTag) = (true, "message")
        for _ in 0..<2 {
          try bob.downloads().downloadNodeData(node, options: options, completionQueue: queue) { _, file, _ in
            answers.yield((node, file))
          }
        }
      }
      try await bob.pull()
      var answer = stream.makeAsyncIterator()
      let first = try #require(await answer.next())
      let file = try #require(first.file)
      #expect(try ZDCFileConversion.decryptCryptoFile(intoMemory: file) == Data(text.utf8))
      #expect(try bob.disk().nodeData(first.node)?.eTag == first.node.eTag_data)
      // A second completion would come before that of a later download.
      try bob.downloads().downloadNodeData(first.node, completionQueue: queue) { _, file, _ in
        answers.yield((first.node, file))
        answers.finish()
      }
      let later = await answer.next()
      let isLast = await answer.next() == nil
      #expect(isLast)
      try bob.disk().deleteFileIfUnmanaged(try #require(later?.file).fileURL)
    }
  }

  @Test func aStrangersData_isFetchedOnlyAfterTheUserAcceptsThem() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world, areFriends: false)
      let text = Self.text("d")
      try await pair.alice.send(text, to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      #expect(pair.bob.network.count("GET", Routes.content) == 0)
      #expect(pair.bob.network.count("POST", Routes.inboxEnvelopes) == 0)
      try await pair.bob.acceptMessages(of: pair.alice)
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: \(text)"])
    }
  }

  @Test func aSignalThatIsTooLarge_isParked_andSaysWhy() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let signal = try await pair.alice.send(Self.text("e"), to: pair.bob, isSignal: true)
      var reports = try pair.alice.syncManager.statusUpdates.makeAsyncIterator()
      _ = try? await pair.alice.sync()
      #expect(try await pair.alice.queueCount() == 1)
      let reasons = try await pair.alice.write { transaction, _ in
        let row = try #require(try transaction.nodes.node(uuid: signal.uuid))
        return try transaction.operations.operations(node: row.id).map(\.reason)
      }
      #expect(reasons == [.noDataFromApp])
      #expect(pair.alice.network.count("POST", Routes.messages) == 0)
      while let report = await reports.next() {
        guard case .error(_, let error) = report else { continue }
        #expect((error as? ZDCError)?.code == .sectionTooLarge)
        break
      }
      try await pair.alice.write { _, cloud in
        guard let node = cloud.node(id: signal.uuid) else { return }
        try cloud.delete(node)
      }
    }
  }

  /// - The sender deletes a message before the recipient has it; two others wait beside it
  /// => the message has no data, and the others arrive
  @Test func dataThatTheSenderNoLongerKeeps_delaysNoOtherMessage() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let text = Self.text("f")
      let lost = try await pair.alice.send(Self.text("g"), to: pair.bob)
      try await pair.alice.send("small", to: pair.bob)
      try await pair.alice.send(text, to: pair.bob)
      try await pair.alice.sync()
      try await pair.alice.write { _, cloud in
        guard let node = cloud.node(id: lost.uuid) else { return }
        try cloud.delete(node)
      }
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: ?", "alice: \(text)", "alice: small"])
    }
  }

  /// - The recipient's account has no room for a message's data
  /// => other messages arrive; this one arrives when there is room
  @Test func aMessageForWhichThereIsNoRoom_waits() async throws {
    try await TestWorld.run(quotaBytes: 2_500_000) { world in
      let pair = try await Pair(world)
      let film = try await pair.bob.create("/film")
      pair.bob.recorder.serve(ZDCData(data: EndToEndTests.bytes(1_800_000, seed: 1)), forNodeID: film.uuid)
      try await pair.bob.write { _, cloud in cloud.queueDataUpload(forNodeID: film.uuid, withChangeset: nil) }
      try await pair.bob.sync()
      let text = Self.text("h", 1_500_000)
      try await pair.alice.send(text, to: pair.bob)
      try await pair.alice.send("small", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: small"])
      try await pair.bob.delete("/film")
      try await pair.bob.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: \(text)", "alice: small"])
    }
  }

  /// The sending device dies after each of its transactions in turn.
  @Test(arguments: 1...8) func aSenderThatDies_deliversOnceAfterItsNextStart(commits: Int) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let text = Self.text("i")
      try await pair.alice.send(text, to: pair.bob)
      pair.alice.die(afterCommits: commits)
      _ = try? await pair.alice.sync()
      try await pair.alice.relaunch()
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: \(text)"])
    }
  }

  @Test(arguments: [true, false]) func aLostAnswer_takesTheDataOverOnce(isAnswer: Bool) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let text = Self.text("j")
      try await pair.alice.send(text, to: pair.bob)
      try await pair.alice.sync()
      pair.bob.network.fail(isAnswer ? .loseResponse : .loseRequest, "POST", Routes.commits)
      _ = try? await pair.bob.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: \(text)"])
      #expect(pair.bob.recorder.take().filter { $0.hasPrefix("new") }.count == 1)
    }
  }

  /// - The envelope of an accepted user names content of their outbox, and the body describes none, or other content
  /// => a security error; nothing of it arrives, and the next message does
  @Test(arguments: [true, false]) func contentThatTheBodyDoesNotName_isRefused(isOther: Bool) async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let carol = try await world.device("carol", account: "carol")
      try await pair.alice.meet(carol)
      try await carol.acceptMessages(of: pair.alice)
      try await pair.alice.send(Self.text("k"), to: pair.bob)
      let sent = try MessageEnvelope(try await pair.alice.sendKeepingEnvelope())
      try await pair.bob.sync()
      let attachment = try #require(sent.attachment)
      let forged = try await Self.forged(from: pair.alice, to: carol, sent.id, attachment, isOther: isOther)
      world.expectsSecurityErrors([ZDCSecurityError.Code.messageAuthFailed.rawValue], on: carol)
      #expect(try await pair.alice.api.deliver([forged.bytes]) == [.delivered])
      try await carol.sync()
      #expect(try await carol.messages(from: pair.alice) == [])
      try await pair.alice.send("honest", to: carol)
      try await pair.alice.sync()
      try await carol.sync()
      #expect(try await carol.messages(from: pair.alice) == ["alice: honest"])
    }
  }

  private static func forged(
    from alice: TestDevice, to carol: TestDevice, _ id: MessageID, _ named: MessageEnvelope.Attachment, isOther: Bool
  ) async throws -> MessageEnvelope {
    let forger = try await HostileMessageTests.Forger(alice: alice, bob: carol)
    var fields = forger.fields("forged")
    fields.id = id
    if isOther {
      var other = named
      other.blobID = .random()
      let secrets = ContentSecrets(key: .random(), sizes: ContentSizes(data: 1_000_000), thumbnailTag: .zero)
      (fields.kind, fields.payload) = (.attached, try MessageAttachment(other, secrets: secrets).payload)
    }
    let honest = try forger.envelope(fields)
    return MessageEnvelope(
      id: honest.id, recipient: honest.recipient, inbox: honest.inbox, recipientEncGen: honest.recipientEncGen,
      sealed: honest.sealed, attachment: named)
  }
}
