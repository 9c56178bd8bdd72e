import Foundation
import Testing
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Heads of zones in messages between honest people: which ones a message names, and what its recipient does.
struct MemberHeadTests {
  typealias People = ListChangeTests.People

  /// Alice shares her home with Bob, who has accepted it.
  private static func shared(_ world: TestWorld) async throws -> People {
    let people = try await People(world)
    try await people.alice.create("/note", "1")
    try await people.alice.share(with: people.bob)
    try await people.alice.sync()
    try await people.bob.accept(people.alice)
    try await people.bob.acceptMessages(of: people.alice)
    return people
  }

  @Test func aMessageNamesAHead_thatItsRecipientThenPulls() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      try await alice.edit("/note", "2")
      try await alice.sync()
      try await alice.send("look", to: bob)
      try await alice.sync()
      // Takes messages only: no list of zones names the new head.
      try await bob.acceptMessages(of: alice)
      try await bob.download()
      #expect(try await bob.tree(of: alice, versions: false) == "/note  \"2\"")
      #expect(try await bob.memberHeads() == [])
      try await bob.sync()
    }
  }

  @Test func aRunningDevicePullsTheNamedZone() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      try await bob.whileRunning {
        try await alice.edit("/note", "2")
        try await alice.send("look", to: bob)
        try await alice.sync()
        await bob.recorder.wait(for: "modified data \(try bob.path("/note", of: alice).dropFirst("detached:".count))")
        while try await !bob.memberHeads().isEmpty { try await Task.sleep(for: .milliseconds(10)) }
      }
      try await bob.sync()
    }
  }

  @Test func aHeadIsNamedOnce_andAgainAfterItChanged() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let home = try await alice.homeZone()
      var wire = try await Wire(of: alice)
      try await alice.send("first", to: bob)
      try await alice.sync()
      let first = try await wire.bodies(for: bob)
      #expect(first.map { $0.fields.heads.map(\.zone) } == [[home.zone]])
      #expect(first.first?.fields.heads.first?.hash == home.head?.hash)
      try await alice.send("second", to: bob)
      try await alice.sync()
      #expect(try await wire.bodies(for: bob).map(\.fields.heads) == [[]])
      try await alice.edit("/note", "2")
      try await alice.sync()
      try await alice.send("third", to: bob)
      try await alice.sync()
      let third = try await wire.bodies(for: bob)
      #expect(third.map { $0.fields.heads.map(\.seq) } == [[(home.head?.seq ?? 0) + 1]])
      try await bob.sync()
    }
  }

  /// - the server refuses a message, and the sender seals it again
  /// => the message that arrives names the head
  @Test func aRefusedMessageHasNamedNothing() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      var wire = try await Wire(of: alice)
      try await bob.syncManager.declineMessages(
        fromUserID: alice.localUserID, isBlocking: true, forLocalUserID: bob.localUserID)
      try await alice.send("hello", to: bob)
      _ = try await alice.sync()
      #expect(try await wire.bodies(for: bob).map(\.fields.heads.count) == [1])
      try await bob.acceptMessages(of: alice)
      world.clock.advance(by: .seconds(3_600))
      try await alice.sync()
      #expect(try await wire.bodies(for: bob).map(\.fields.heads.count) == [1])
      try await bob.sync()
      #expect(try await bob.messages(from: alice) == ["alice: hello"])
    }
  }

  @Test func twoDevicesOfTheRecipient_reportNothing() async throws {
    try await TestWorld.run { world in
      let people = try await Self.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.accept(alice)
      try await tablet.meet(alice)
      try await tablet.acceptMessages(of: alice)
      for text in ["2", "3", "4"] {
        try await alice.edit("/note", text)
        try await alice.sync()
        try await alice.send(text, to: bob)
        try await alice.sync()
        async let first = bob.sync()
        async let second = tablet.sync()
        _ = try await (first, second)
      }
      try await world.settle(alice, bob, tablet)
      for device in [bob, tablet] {
        #expect(try await device.messages(from: alice) == ["alice: 2", "alice: 3", "alice: 4"])
        #expect(try await device.memberHeads() == [])
      }
    }
  }

  @Test("E-1: no body names a zone that its recipient is not in", arguments: 1...8)
  func headsNameOnlySharedZones(seed: UInt64) async throws {
    try await TestWorld.run { world in
      var circle = try await SharingCircle(world, seed: seed)
      for round in 1...4 { try await circle.play(round) }
      #expect(circle.namedOfOthers > 0)
      try await TestWorld.settle(circle.people)
    }
  }
}

/// The messages that a device has sent since the last look, opened with their recipients' keys.
struct Wire {
  private let sender: TestDevice
  private var seen: [String: Int] = [:]

  init(of sender: TestDevice) async throws {
    self.sender = sender
    sender.network.keepTraffic()
  }

  mutating func bodies(for recipient: TestDevice) async throws -> [MessageBody] {
    let session = try await recipient.syncManager.engine(for: try recipient.localUserID).session
    let inbox = TreeID.derive(owner: session.user, trunk: .inbox, appTreeID: TestDevice.treeID)
    let traffic = sender.network.traffic
    var found: [MessageBody] = []
    for bytes in traffic.dropFirst(seen[recipient.name] ?? 0) {
      var reader = ZDCProtocol.Bundle.Reader(bytes)
      while case .envelope(let envelope)? = try? reader.next() {
        guard envelope.recipient == session.user else { continue }
        let key = try #require(try session.keys.decryptionKey(gen: envelope.recipientEncGen))
        found.append(try envelope.open(user: session.user, inbox: inbox, key: key))
      }
    }
    seen[recipient.name] = traffic.count
    return found
  }
}

extension TestDevice {
  /// The heads that members have named and that this device's logs do not contain, over all zones.
  func memberHeads() async throws -> [MemberHead] {
    try await database.read { transaction in
      try transaction.zones.zones(localUser: 1).flatMap { try MemberHeadStore(transaction, zone: $0.id).heads() }
    }
  }

  /// The device's row for its user's home.
  func homeZone() async throws -> ZoneRow {
    let tree = TreeID.derive(owner: try userID, trunk: .home, appTreeID: Self.treeID)
    return try await zone(of: tree)
  }

  /// The device's row of another user's home.
  func zone(of owner: TestDevice) async throws -> ZoneRow {
    try await zone(of: .derive(owner: try owner.userID, trunk: .home, appTreeID: Self.treeID))
  }

  private func zone(of tree: TreeID) async throws -> ZoneRow {
    let row = try await database.read { try $0.zones.zone(localUser: 1, ZoneID(trunkOf: tree)) }
    guard let row else { throw TestFailure("\(name) does not follow the zone") }
    return row
  }
}
