import Foundation
import Testing
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Messages of one user's outbox with two devices: one sends, the other takes over.
struct OutboxTests {
  /// Alice has a laptop, which sends, and a phone. Bob and Carol are the recipients.
  struct Stage {
    let world: TestWorld
    let (laptop, phone, bob, carol): (TestDevice, TestDevice, TestDevice, TestDevice)

    init(_ world: TestWorld) async throws {
      self.world = world
      let pair = try await MessageTests.Pair(world)
      (laptop, bob) = (pair.alice, pair.bob)
      carol = try await world.device("carol", account: "carol")
      try await laptop.meet(carol)
      try await carol.acceptMessages(of: laptop)
      phone = try await world.device("alice's phone")
      try await phone.sync()
      for device in [laptop, phone] { device.countCallbacks() }
    }

    /// Lets the time pass after which another device takes a message over.
    func wait() { world.clock.advance(by: .seconds(30 * 60)) }

    func callbacks() async throws -> Int { try await laptop.callbacks() + phone.callbacks() }

    /// Checks that both recipients have the message once, and that nothing is queued.
    func checkReceived() async throws {
      for device in [bob, carol] {
        try await device.sync()
        #expect(try await device.messages(from: laptop) == ["alice: hello"])
        #expect(device.recorder.take().filter { $0.hasPrefix("new") }.count == 1)
      }
      for device in [laptop, phone] { #expect(try await device.queueCount() == 0) }
    }
  }

  /// - the laptop dies after each of its transactions, for good
  /// => the phone sends what the laptop has not, if the message is in the cloud
  /// - the laptop starts again
  /// => each recipient has the message once, and each callback has come once on one of the two
  @Test(arguments: 1...16, [TestDevice.Network.dead, .alive])
  func aSenderThatDies_isReplaced(commits: Int, network: TestDevice.Network) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      try await stage.laptop.send("hello", to: stage.bob, stage.carol)
      stage.laptop.die(afterCommits: commits, network: network)
      _ = try? await stage.laptop.sync()
      try await stage.phone.sync()
      stage.wait()
      try await stage.phone.sync()
      let isUploaded = try await stage.phone.messages(.outbox) == ["me: hello"]
      for device in [stage.bob, stage.carol] where isUploaded {
        try await device.sync()
        #expect(try await device.messages(from: stage.laptop) == ["alice: hello"])
      }
      try await stage.laptop.relaunch()
      try await stage.laptop.sync()
      try await stage.phone.sync()
      #expect(try await stage.callbacks() == 2)
      for device in [stage.bob, stage.carol] { _ = try await device.sync() }
      for device in [stage.laptop, stage.phone] { #expect(try await device.queueCount() == 0) }
      for device in [stage.bob, stage.carol] {
        #expect(try await device.messages(from: stage.laptop) == ["alice: hello"])
        #expect(device.recorder.take().filter { $0.hasPrefix("new") }.count == 1)
      }
    }
  }

  /// - the phone dies while it takes over, after each of its transactions
  /// => the laptop, which starts again later, and the phone together deliver once
  @Test(arguments: 1...10) func aReplacementThatDies_isReplacedToo(commits: Int) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      try await stage.laptop.send("hello", to: stage.bob, stage.carol)
      stage.laptop.network.fail(.before { stage.laptop.network.isOffline = true }, "POST", Routes.messages)
      _ = try? await stage.laptop.sync()
      try await stage.phone.sync()
      stage.wait()
      stage.phone.die(afterCommits: commits)
      _ = try? await stage.phone.sync()
      try await stage.laptop.relaunch()
      for _ in 0..<3 {
        try await stage.laptop.sync()
        stage.wait()
      }
      try await stage.phone.relaunch()
      try await stage.phone.sync()
      try await stage.laptop.sync()
      #expect(try await stage.callbacks() == 2)
      try await stage.checkReceived()
    }
  }

  /// - the laptop dies after each of its transactions, and the phone takes over; Bob has deleted the message by then
  /// - the laptop starts again, and both devices send another message
  /// => no recipient reports a message that was lost: none was
  @Test(arguments: 1...16)
  func aMessageThatIsTakenOver_leavesNoGap(commits: Int) async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      for device in [stage.bob, stage.carol] { try await stage.phone.meet(device) }
      try await stage.laptop.send("hello", to: stage.bob, stage.carol)
      stage.laptop.die(afterCommits: commits, network: commits % 2 == 0 ? .alive : .dead)
      _ = try? await stage.laptop.sync()
      try await stage.bob.sync()
      try await stage.bob.deleteInbox()
      try await stage.bob.sync()
      try await stage.phone.sync()
      stage.wait()
      try await stage.phone.sync()
      try await stage.laptop.relaunch()
      for device in [stage.laptop, stage.phone, stage.laptop] { try await device.sync() }
      for round in 1...2 {
        for device in [stage.phone, stage.laptop] {
          try await device.send("\(device.name) \(round)", to: stage.bob, stage.carol)
          try await device.sync()
        }
        for device in [stage.bob, stage.carol] {
          try await device.sync()
          let events = try await device.syncManager.securityEvents(localUserID: try device.localUserID)
          #expect(events.map(\.error.code) == [], "\(device.name) in round \(round)")
        }
      }
      try await stage.phone.sync()
      #expect(try await stage.carol.messages(from: stage.laptop).count == 5)
    }
  }

  @Test func theOtherDeviceKnowsWhoWasServed_andSendsNothing() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      let message = try await stage.laptop.send("hello", to: stage.bob, stage.carol)
      try await stage.laptop.sync()
      try await stage.phone.sync()
      let node = try #require(NodeID(text: message.cloudID))
      let row = try await stage.phone.database.read { transaction -> NodeRow? in
        for zone in try transaction.zones.zones(localUser: 1) {
          if let row = try transaction.nodes.node(zone: zone.id, nodeID: node) { return row }
        }
        return nil
      }
      #expect(row?.unused?.served == [try stage.bob.userID, try stage.carol.userID])
      _ = stage.phone.recorder.take()
      stage.wait()
      try await stage.phone.sync()
      #expect(stage.phone.network.count("POST", Routes.messages) == 0)
      #expect(try await stage.callbacks() == 2)
      #expect(stage.phone.recorder.take().isEmpty)
      try await stage.checkReceived()
    }
  }

  /// - the mailbox of one of two recipients is closed to the sender
  /// => the other one is served, and the devices hand the message over ever more rarely
  @Test func aRecipientWhoBlocks_costsFewCommits() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      try await stage.carol.syncManager.declineMessages(
        fromUserID: stage.laptop.localUserID, isBlocking: true, forLocalUserID: stage.carol.localUserID)
      try await stage.laptop.send("hello", to: stage.bob, stage.carol)
      try await stage.laptop.sync()
      var commits = 0
      for _ in 0..<48 {
        stage.wait()
        for device in [stage.phone, stage.laptop] { commits += try await device.sync().pulled.commits }
      }
      for device in [stage.phone, stage.laptop, stage.carol] { world.mayWait(device) }
      #expect(commits <= 12)
      #expect(try await stage.callbacks() == 1)
      try await stage.bob.sync()
      #expect(try await stage.bob.messages(from: stage.laptop) == ["alice: hello"])
    }
  }
}

extension TestDevice {
  private static let counter = "committed callbacks"

  /// Counts the calls of `didSendMessage` whose transaction was committed.
  func countCallbacks() {
    recorder.on(.sent, times: 1_000) { _, transaction in
      guard let transaction = transaction as? ZDCReadWriteTransaction else { return }
      let known = try transaction.object(TestContent.self, forKey: Self.counter, inCollection: TestContent.collection)
      let content = TestContent(data: Data(repeating: 1, count: (known?.data.count ?? 0) + 1))
      transaction.setObject(content, forKey: Self.counter, inCollection: TestContent.collection)
    }
  }

  func callbacks() async throws -> Int {
    try await write { transaction, _ in
      let known = try transaction.object(TestContent.self, forKey: Self.counter, inCollection: TestContent.collection)
      return known?.data.count ?? 0
    }
  }
}
