import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Whether a message was read, on all devices of its recipient.
struct ReadStateTests {
  typealias Pair = MessageTests.Pair

  @Test func aReadMessageIsRead_onTheOtherDevice_andUnreadAgain() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await pair.alice.send("hello", to: pair.bob)
      for device in [pair.alice, pair.bob, tablet] { try await device.sync() }
      for device in [pair.bob, tablet] { #expect(try await device.readStates() == [false]) }
      _ = tablet.recorder.take()
      try await pair.bob.mark(true)
      #expect(try await pair.bob.readStates() == [true])
      #expect(try await pair.bob.queueCount() == 1)
      for device in [pair.bob, tablet] { try await device.sync() }
      #expect(try await tablet.readStates() == [true])
      #expect(tablet.recorder.take().count { $0.hasPrefix("modified ") } == 1)
      #expect(try await tablet.messages(from: pair.alice) == ["alice: hello"])
      try await tablet.mark(false)
      for device in [tablet, pair.bob] { try await device.sync() }
      #expect(try await pair.bob.readStates() == [false])
      // The sender learns nothing.
      let requests = pair.alice.network.count("GET", Routes.commits)
      try await pair.alice.sync()
      #expect(pair.alice.network.count("GET", Routes.commits) == requests)
    }
  }

  @Test func markingTwice_andBack_queuesOneOperation() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.send("hello", to: pair.bob)
      for device in [pair.alice, pair.bob] { try await device.sync() }
      for state in [true, true, false, true] { try await pair.bob.mark(state) }
      #expect(try await pair.bob.queueCount() == 1)
      try await pair.bob.sync()
      try await pair.bob.mark(true)
      #expect(try await pair.bob.queueCount() == 0)
      #expect(try await pair.bob.readStates() == [true])
    }
  }

  /// - one device marks a message as read, offline, and another one changes its state twice
  /// => the mark that is pushed last stays, on both
  @Test func theLastMarkStays() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await pair.alice.send("hello", to: pair.bob)
      for device in [pair.alice, pair.bob, tablet] { try await device.sync() }
      try await tablet.mark(true)
      for state in [true, false] {
        try await pair.bob.mark(state)
        try await pair.bob.sync()
      }
      for device in [tablet, pair.bob] { try await device.sync() }
      for device in [tablet, pair.bob] { #expect(try await device.readStates() == [true]) }
    }
  }

  @Test func onlyAReceivedMessageHasAState() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let note = try await pair.alice.create("/note", "x")
      let message = try await pair.alice.send("hello", to: pair.bob)
      #expect(note.isRead == nil && message.isRead == nil)
      for node in [note, message] {
        await #expect(throws: ZDCCloudError.self) {
          try await pair.alice.write { _, cloud in _ = try cloud.markAsRead(node) }
        }
      }
      try await pair.alice.sync()
    }
  }
}

extension TestDevice {
  fileprivate func readStates() async throws -> [Bool?] {
    try await write { _, cloud in
      guard let inbox = cloud.trunkNode(.inbox) else { return [] }
      return try cloud.children(ofNodeID: inbox.uuid).map(\.isRead)
    }
  }
}
