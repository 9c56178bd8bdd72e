import Foundation
import Testing
import ZDCClientStore
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Messages between two and three people, with several devices.
struct MessageTests {
  /// Two people who know each other's identity. Alice accepts Bob's messages, and he hers.
  struct Pair {
    let (alice, bob): (TestDevice, TestDevice)

    init(_ world: TestWorld, areFriends: Bool = true) async throws {
      (alice, bob) = (try await world.device("alice"), try await world.device("bob", account: "bob"))
      try await alice.meet(bob)
      try await bob.meet(alice)
      guard areFriends else { return }
      try await bob.acceptMessages(of: alice)
      try await alice.acceptMessages(of: bob)
    }
  }

  private static func code(_ body: () async throws -> Void) async -> ZDCCloudError.Code? {
    do {
      try await body()
      return nil
    } catch { return (error as? ZDCCloudError)?.code }
  }

  @Test func aMessageArrivesInTheInbox_withItsVerifiedSender() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let message = try await pair.alice.send("hello", to: pair.bob)
      #expect(message.senderID == nil && message.name == message.cloudID)
      try await pair.alice.sync()
      #expect(pair.alice.recorder.take().filter { $0.hasPrefix("sent") } == ["sent hello"])
      let sender = try pair.alice.localUserID
      pair.bob.recorder.on(.new) { node, transaction in
        #expect(node.senderID == sender && transaction.user(id: sender) != nil)
      }
      try await pair.bob.sync()
      #expect(pair.bob.recorder.take().contains { $0.hasPrefix("new ") })
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: hello"])
      #expect(try await pair.alice.messages(.outbox) == ["me: hello"])
      try await pair.bob.sync()
      try await pair.alice.sync()
      #expect(pair.bob.recorder.take().isEmpty && pair.alice.recorder.take().isEmpty)
    }
  }

  @Test func whenAMessageIsSent_itsOperationIsGoneFromTheQueue() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      for isSignal in [false, true] {
        let message = try await pair.alice.send("hello", to: pair.bob, isSignal: isSignal)
        #expect(try await pair.alice.queueCount() == (isSignal ? 1 : 3))
        pair.alice.recorder.on(.sent) { node, transaction in
          let row = try #require(try transaction.nodes.node(uuid: node.uuid))
          #expect(node.uuid == message.uuid)
          #expect(try transaction.operations.operations(node: row.id).isEmpty)
          #expect(try transaction.operations.count(zone: row.zone) == 0)
        }
        try await pair.alice.sync()
        #expect(pair.alice.recorder.take().filter { $0 == "sent hello" }.count == 1)
      }
    }
  }

  @Test func bothPathsNameTheirTrunks() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let message = try await pair.alice.send("hello", to: pair.bob)
      let shown = try await pair.alice.write { _, cloud in cloud.path(for: message)?.fullPath() }
      #expect(shown == "outbox:/\(message.cloudID)")
      try await pair.alice.sync()
      try await pair.bob.sync()
      let path = try await pair.bob.write { _, cloud in
        try cloud.trunkNode(.inbox).flatMap { try cloud.children(ofNodeID: $0.uuid).first }
          .flatMap { cloud.path(for: $0)?.fullPath() }
      }
      #expect(path?.hasPrefix("inbox:/") == true)
    }
  }

  @Test func eachRecipientGetsTheMessageOnce_andEachCallbackComesOnce() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let carol = try await world.device("carol", account: "carol")
      try await pair.alice.meet(carol)
      try await carol.acceptMessages(of: pair.alice)
      try await pair.alice.send("to both", to: pair.bob, carol)
      try await pair.alice.sync()
      #expect(pair.alice.recorder.take().filter { $0 == "sent to both" }.count == 2)
      for device in [pair.bob, carol] {
        try await device.sync()
        #expect(try await device.messages(from: pair.alice) == ["alice: to both"])
      }
    }
  }

  @Test func theOtherDevicesOfBothGetTheMessageByTheLog() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let phone = try await world.device("alice's phone")
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await pair.alice.send("hello", to: pair.bob)
      try await pair.alice.sync()
      try await phone.sync()
      #expect(try await phone.messages(.outbox) == ["me: hello"])
      #expect(phone.recorder.take().filter { $0.hasPrefix("sent") }.isEmpty)
      try await tablet.sync()
      #expect(try await tablet.messages(from: pair.alice) == [])
      try await pair.bob.sync()
      try await tablet.sync()
      #expect(try await tablet.messages(from: pair.alice) == ["alice: hello"])
      #expect(tablet.recorder.take().filter { $0.hasPrefix("new") }.count == 1)
    }
  }

  @Test func aSignalIsDeliveredOnce_andLeavesNothingBehind() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let signal = try await pair.alice.send("typing", to: pair.bob, isSignal: true)
      try await pair.alice.sync()
      #expect(pair.alice.recorder.take().contains("sent typing"))
      #expect(try await pair.alice.write { _, cloud in cloud.node(id: signal.uuid) } == nil)
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: typing"])
    }
  }

  @Test func aMessageOfAnySizeUpToTheLimitArrives() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let texts = ["", "short", String(repeating: "x", count: 70_000), String(repeating: "y", count: 900_000)]
      for text in texts { try await pair.alice.send(text, to: pair.bob) }
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == texts.map { "alice: \($0)" }.sorted())
    }
  }

  @Test func misuseIsRefusedAtTheCall() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let own = ZDCUser(uuid: try pair.alice.localUserID, isLocal: true)
      let bob = ZDCUser(uuid: try pair.bob.localUserID, isLocal: false)
      let stranger = ZDCUser(uuid: UserID(1, 2, 3, 4).text, isLocal: false)
      for (users, expected) in [
        ([], ZDCCloudError.Code.missingReceiver), ([bob, bob], .invalidParameter), ([own], .invalidParameter),
        ([bob] + (0..<256).map { ZDCUser(uuid: UserID(1, 2, 3, $0).text, isLocal: false) }, .invalidParameter),
        ([bob, stranger], .unknownUser), ([ZDCUser(uuid: "nobody", isLocal: false)], .unknownUser),
      ] {
        let found = await Self.code {
          try await pair.alice.write { _, cloud in _ = try cloud.sendMessage(toRecipients: users) }
        }
        #expect(found == expected)
      }
      try await pair.alice.sync()
      #expect(try await pair.alice.messages(.outbox) == [])
    }
  }

  @Test func aMessageToAClosedAccount_isRefusedAtTheCall() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let bob = ZDCUser(uuid: try pair.bob.localUserID, isLocal: false)
      try await #require(try pair.bob.zdc.localUserManager).closeAccount(pair.bob.localUserID)
      _ = try await #require(try pair.alice.zdc.userManager).fetchUser(id: bob.uuid, for: pair.alice.localUserID)
      let found = await Self.code {
        try await pair.alice.write { _, cloud in _ = try cloud.sendMessage(toRecipients: [bob]) }
      }
      #expect(found == .invalidParameter)
      #expect(try await pair.alice.queueCount() == 0)
    }
  }

  @Test func aMessageWaitsForItsDependencies() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let node = try await pair.alice.create("/film")
      pair.alice.recorder.serve(ZDCData(promise: ZDCDataPromise()), forNodeID: node.uuid)
      let upload = try await pair.alice.write { _, cloud in
        cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
      }
      try await pair.alice.send("look", to: pair.bob, after: [upload].compactMap(\.self))
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      pair.alice.recorder.serve(ZDCData(data: Data("film".utf8)), forNodeID: node.uuid)
      try await pair.alice.relaunch()
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: look"])
    }
  }

  @Test func anInvitationLeavesAfterTheAccessList() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.create("/list", "milk")
      let operations = try await pair.alice.share(with: pair.bob)
      try await pair.alice.send("join", to: pair.bob, after: operations)
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: join"])
      try await pair.bob.accept(pair.alice)
      try await pair.bob.download()
      #expect(try await pair.bob.tree(of: pair.alice) == "/list  \"milk\"")
    }
  }

  @Test func strangersWait_untilTheyAreAccepted() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world, areFriends: false)
      let (bob, user) = (pair.bob, try pair.bob.localUserID)
      try await pair.alice.send("hello", to: bob)
      try await pair.alice.sync()
      try await bob.sync()
      #expect(try await bob.messages(from: pair.alice) == [])
      let requests = try await bob.syncManager.messageRequests(forLocalUserID: user)
      #expect(requests.map(\.senderID) == [try pair.alice.localUserID] && requests[0].byteCount > 0)
      try await bob.acceptMessages(of: pair.alice)
      #expect(try await bob.messages(from: pair.alice) == ["alice: hello"])
      #expect(try await bob.syncManager.messageRequests(forLocalUserID: user).isEmpty)
      // A recipient is known: their answer needs no acceptance.
      try await bob.send("hi", to: pair.alice)
      try await bob.sync()
      try await pair.alice.sync()
      #expect(try await pair.alice.messages(from: bob) == ["bob: hi"])
    }
  }

  @Test func aDeclinedRequestIsGone_andABlockedSenderIsRefused() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world, areFriends: false)
      let (sender, user) = (try pair.alice.localUserID, try pair.bob.localUserID)
      try await pair.alice.send("one", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.syncManager.declineMessages(
        fromUserID: sender, isBlocking: true, forLocalUserID: user)
      #expect(try await pair.bob.syncManager.messageRequests(forLocalUserID: user).isEmpty)
      try await pair.alice.send("two", to: pair.bob)
      let summary = try await pair.alice.sync()
      #expect(summary.stillQueued.values.reduce(0, +) == 1)
      world.mayWait(pair.alice)
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == [])
    }
  }

  @Test func aDeletedMessageStaysDeletedOnAllDevices_alsoIfItIsDeliveredAgain() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.send("hello", to: pair.bob)
      let envelope = try await pair.alice.sendKeepingEnvelope()
      try await pair.bob.sync()
      try await pair.bob.deleteInbox()
      try await pair.bob.sync()
      #expect(try await pair.alice.api.deliver([envelope]) == [.delivered])
      let tablet = try await world.device("bob's tablet", account: "bob")
      for device in [pair.bob, tablet] {
        try await device.meet(pair.alice)
        try await device.sync()
        try await device.acceptMessages(of: pair.alice)
        #expect(try await device.messages(from: pair.alice) == [])
      }
      let inbox = TreeID.derive(owner: try pair.bob.userID, trunk: .inbox, appTreeID: TestDevice.treeID)
      #expect(try await pair.bob.api.waitingMessages(in: inbox, after: 0).messages.isEmpty)
    }
  }

  @Test func twoDevicesThatTakeAMessageOver_haveItOnce() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.meet(pair.alice)
      try await tablet.acceptMessages(of: pair.alice)
      for text in ["one", "two", "three"] { try await pair.alice.send(text, to: pair.bob) }
      try await pair.alice.sync()
      async let first = pair.bob.sync()
      async let second = tablet.sync()
      _ = try await (first, second)
      try await world.settle(pair.bob, tablet)
      for device in [pair.bob, tablet] {
        #expect(try await device.messages(from: pair.alice) == ["alice: one", "alice: three", "alice: two"])
        #expect(device.recorder.take().filter { $0.hasPrefix("new") }.count == 3)
      }
    }
  }

  @Test func aRunningDeviceGetsTheMessageByEvent() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.bob.whileRunning {
        let message = try await pair.alice.send("now", to: pair.bob)
        try await pair.alice.sync()
        let id = try #require(MessageID(text: message.cloudID))
        await pair.bob.recorder.wait(for: "new /\(NodeID(message: id, from: try pair.alice.userID).text)")
      }
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: now"])
    }
  }

  @Test func aMessageForWhichTheAppHasNothing_isParked() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      struct Nothing: Error {}
      pair.alice.recorder.on(.data) { _, _ in throw Nothing() }
      let message = try await pair.alice.send("later", to: pair.bob)
      _ = try? await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      try await pair.alice.write { _, cloud in
        cloud.queueDataUpload(forNodeID: message.uuid, withChangeset: nil)
      }
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: later"])
    }
  }

  /// - the app throws when it is notified of a message, and another message is sent
  /// => the other one is delivered at once, and the callback of the first comes again
  @Test func aCallbackThatThrows_delaysNoOtherMessage() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      struct Refusal: Error {}
      pair.alice.recorder.on(.sent) { _, _ in throw Refusal() }
      try await pair.alice.send("first", to: pair.bob)
      await #expect(throws: Never.self) { try await pair.alice.sync() }
      pair.alice.recorder.on(.sent) { _, _ in }
      _ = pair.alice.recorder.take()
      try await pair.alice.send("second", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: first", "alice: second"])
      world.clock.advance(by: .seconds(3_600))
      try await pair.alice.sync()
      #expect(pair.alice.recorder.take().filter { $0.hasPrefix("sent") }.sorted() == ["sent first", "sent second"])
      #expect(try await pair.alice.queueCount() == 0)
    }
  }

  @Test func aRefusedMessageIsSentAgainInTheBackground() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.bob.syncManager.declineMessages(
        fromUserID: pair.alice.localUserID, isBlocking: true, forLocalUserID: pair.bob.localUserID)
      pair.alice.engineClock = world.clock.engineClock
      try await pair.alice.relaunch()
      try await pair.alice.whileRunning {
        try await pair.alice.send("later", to: pair.bob)
        while pair.alice.network.count("POST", Routes.messages) == 0 { await Task.yield() }
        try await pair.bob.acceptMessages(of: pair.alice)
        for _ in 0..<500 where !pair.alice.recorder.lines.contains("sent later") {
          world.clock.advance(by: .seconds(10))
          try await Task.sleep(for: .milliseconds(20))
        }
      }
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: later"])
    }
  }

  /// - a stranger's message is listed as a request, and its recipient then writes to the stranger
  /// => the next pull takes the message over, without another message
  @Test func aRequestOfAUserWhoIsWrittenTo_comesIntoTheInbox() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world, areFriends: false)
      try await pair.alice.send("hello", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      try await pair.bob.send("hello yourself", to: pair.alice)
      try await pair.bob.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: hello"])
    }
  }

  @Test func aRecipientsNewKey_isUsedForTheNextMessage() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.send("before", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.zdc.localUserManager?.rotateKeys(for: try pair.bob.localUserID)
      try await pair.alice.send("after", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: after", "alice: before"])
    }
  }
}

extension TestDevice {
  func acceptMessages(of other: TestDevice) async throws {
    try await syncManager.acceptMessages(
      fromUserID: try other.localUserID, forLocalUserID: try localUserID)
  }

  /// Sends everything, and returns the bytes of the newest envelope.
  func sendKeepingEnvelope() async throws -> [UInt8] {
    network.keepTraffic()
    try await sync()
    for bytes in network.traffic.reversed() {
      var reader = ZDCProtocol.Bundle.Reader(bytes)
      if case .envelope(let envelope)? = try? reader.next() { return envelope.bytes }
    }
    throw TestFailure("no envelope was sent")
  }

  func deleteInbox() async throws {
    try await write { _, cloud in
      guard let inbox = cloud.trunkNode(.inbox) else { return }
      for node in try cloud.children(ofNodeID: inbox.uuid) { try cloud.delete(node) }
    }
  }
}
