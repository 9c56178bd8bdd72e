import Foundation
import Synchronization
import Testing
import ZDCClientStore
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Messages that a server drops, and others whose numbers only look like it.
struct MessageGapTests {
  typealias Pair = MessageTests.Pair
  typealias Forger = HostileMessageTests.Forger

  /// Delivers messages with these numbers in this order.
  @discardableResult
  private static func deliver(
    _ numbers: [UInt64], _ forger: Forger, _ pair: Pair, device: UInt64 = 1
  ) async throws -> [MessageID] {
    let envelopes = try numbers.map { number in
      var fields = forger.fields("\(number)", seq: number)
      fields.device = device
      return try forger.envelope(fields)
    }
    let results = try await pair.alice.api.deliver(envelopes.map(\.bytes))
    try #require(results.allSatisfy { $0 == .delivered })
    return envelopes.map(\.id)
  }

  private static func gaps(_ device: TestDevice) async throws -> [(user: String?, times: Int)] {
    try await device.syncManager.securityEvents(localUserID: try device.localUserID)
      .filter { $0.error.code == .messageGap }.map { ($0.error.user?.text, $0.times) }
  }

  @Test func aDroppedMessageIsReportedOnce_andTwoThatAreSwappedAreNot() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      world.expectsSecurityErrors(["messageGap"], on: pair.bob)
      try await Self.deliver([1, 2, 5, 4], forger, pair)
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice).count == 4)
      let found = try await Self.gaps(pair.bob)
      #expect(found.map(\.user) == [try pair.alice.localUserID] && found.map(\.times) == [1])
      let error = try await pair.bob.syncManager.securityEvents(localUserID: try pair.bob.localUserID).first?.error
      #expect(error?.device == 1 && error?.missing == 3...3)
      try await Self.deliver([6], forger, pair)
      try await pair.bob.sync()
      // It comes after all, and another one is dropped.
      try await Self.deliver([3], forger, pair)
      try await pair.bob.sync()
      #expect(try await Self.gaps(pair.bob).map(\.times) == [1])
      try await Self.deliver([8], forger, pair)
      try await pair.bob.sync()
      #expect(try await Self.gaps(pair.bob).map(\.times) == [2])
    }
  }

  /// - A message and its burn wait together, with a later message
  /// - another device of the recipient reads the placeholders before they are deleted
  /// => the number of the burned message is no gap
  @Test func aBurnedMessageIsNoGap_onADeviceThatReadsItsPlaceholder() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.sync()
      let message = try await pair.alice.send("regret", to: pair.bob)
      try await pair.alice.sync()
      try await pair.alice.burn(message)
      try await pair.alice.send("fine", to: pair.bob)
      try await pair.alice.sync()
      pair.bob.network.fail(.before { try await tablet.sync() }, "POST", Routes.commits, occurrence: 2)
      try await pair.bob.sync()
      #expect(pair.bob.network.hasStruck)
      for device in [tablet, pair.bob] {
        try await device.sync()
        #expect(try await device.messages(from: pair.alice) == ["alice: fine"])
        #expect(try await Self.gaps(device).isEmpty, "\(device.name)")
      }
    }
  }

  @Test(
    arguments: [
      (nil, [3, 4], 1...2), (2, [5], 3...4), (2, [4, 7, 8], 3...6), (nil, [1, 2], nil), (9, [3, 4], nil),
      (nil, [.max], 1...(.max - 1)),
    ] as [(UInt64?, [UInt64], ClosedRange<UInt64>?)])
  func aGapNamesTheRangeOfTheMissingMessages(
    highest: UInt64?, new: [UInt64], missing: ClosedRange<UInt64>?
  ) {
    let numbers = MessageNumbers(sender: .zero, device: 1, highest: highest, new: new)
    #expect(numbers.missingRange == missing)
  }

  @Test func twoDevicesOfASender_areTwoGaps() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      world.expectsSecurityErrors(["messageGap", "messageGap"], on: pair.bob)
      for device in 1...2 as ClosedRange<UInt64> {
        try await Self.deliver([1], forger, pair, device: device)
      }
      try await pair.bob.sync()
      for device in 1...2 as ClosedRange<UInt64> {
        try await Self.deliver([4], forger, pair, device: device)
      }
      try await pair.bob.sync()
      let events = try await pair.bob.syncManager.securityEvents(localUserID: try pair.bob.localUserID)
      #expect(Set(events.map(\.error.device)) == [1, 2])
      #expect(events.allSatisfy { $0.error.missing == 2...3 && $0.times == 1 })
    }
  }

  @Test func aServerThatDropsTheFirstMessageIsFound() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      world.expectsSecurityErrors(["messageGap"], on: pair.bob)
      for text in ["one", "two", "three"] { try await pair.alice.send(text, to: pair.bob) }
      try await pair.alice.sync()
      let inbox = TreeID.derive(owner: try pair.bob.userID, trunk: .inbox, appTreeID: TestDevice.treeID)
      let waiting = try await pair.bob.api.waitingMessages(in: inbox, after: 0).messages
      try await pair.bob.api.deleteMessage(waiting[0].name, in: inbox)
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: three", "alice: two"])
    }
  }

  /// - the user deletes a message, and a device logs in
  /// => it does not take the deleted message for a dropped one, and finds one that is dropped later
  @Test func aFreshDeviceNotesTheNumbersAndReportsNothing() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let messages = try await Self.deliver([1, 2, 3], forger, pair)
      try await pair.bob.sync()
      try await Self.delete(messages[1], pair)
      try await pair.bob.sync()
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.sync()
      #expect(try await tablet.messages(from: pair.alice) == ["alice: 1", "alice: 3"])
      try await tablet.relaunch()
      try await tablet.sync()
      #expect(try await Self.gaps(tablet).isEmpty)
      world.expectsSecurityErrors(["messageGap"], on: pair.bob)
      world.expectsSecurityErrors(["messageGap"], on: tablet)
      try await Self.deliver([5], forger, pair)
      try await pair.bob.sync()
      try await tablet.sync()
      #expect(try await Self.gaps(tablet).map(\.times) == [1])
    }
  }

  /// - one device takes a message over and deletes it, while another one is offline
  /// => the other one reports nothing
  @Test func aMessageThatAnotherDeviceHasDeletedIsNoGap() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await Self.deliver([1], forger, pair)
      try await pair.bob.sync()
      try await tablet.sync()
      let second = try await Self.deliver([2], forger, pair)
      try await pair.bob.sync()
      try await Self.delete(second[0], pair)
      try await pair.bob.sync()
      try await Self.deliver([3], forger, pair)
      try await pair.bob.sync()
      try await tablet.sync()
      #expect(try await tablet.messages(from: pair.alice) == ["alice: 1", "alice: 3"])
      #expect(try await Self.gaps(tablet).isEmpty)
      world.expectsSecurityErrors(["messageGap"], on: pair.bob)
      world.expectsSecurityErrors(["messageGap"], on: tablet)
      try await Self.deliver([5], forger, pair)
      try await pair.bob.sync()
      try await tablet.sync()
      #expect(try await Self.gaps(tablet).map(\.times) == [1])
    }
  }

  @Test func theHighestNumberOverflowsNothing() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      world.expectsSecurityErrors(["messageGap"], on: pair.bob)
      for number in [1, UInt64.max, 2, .max] {
        try await Self.deliver([number], forger, pair)
        try await pair.bob.sync()
      }
      #expect(try await pair.bob.messages(from: pair.alice).count == 4)
      #expect(try await Self.gaps(pair.bob).map(\.times) == [1])
    }
  }

  @Test func aSenderWithMoreDevicesThanAreCountedIsReportedOnce() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      world.expectsSecurityErrors(["messageGap"], on: pair.bob)
      for device in 1...UInt64(Limits.messageDevices) { try await Self.deliver([1], forger, pair, device: device) }
      try await pair.bob.sync()
      #expect(try await Self.gaps(pair.bob).isEmpty)
      for device in 100...102 { try await Self.deliver([1], forger, pair, device: UInt64(device)) }
      try await pair.bob.sync()
      #expect(try await Self.gaps(pair.bob).map(\.times) == [1])
      #expect(try await pair.bob.messages(from: pair.alice).count == Limits.messageDevices + 3)
    }
  }

  /// - the recipient refuses two messages, and accepts the sender later
  /// => both get their numbers again, and nothing is missing
  @Test func aRefusalGivesTheNumbersBack() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      try await pair.alice.send("first", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.sync()
      try await pair.bob.syncManager.declineMessages(
        fromUserID: pair.alice.localUserID, isBlocking: true, forLocalUserID: pair.bob.localUserID)
      for text in ["second", "third"] { try await pair.alice.send(text, to: pair.bob) }
      #expect(try await pair.alice.sync().stillQueued.values.reduce(0, +) == 2)
      try await pair.bob.acceptMessages(of: pair.alice)
      world.clock.advance(by: .seconds(3_600))
      try await pair.alice.sync()
      try await pair.bob.sync()
      #expect(try await pair.bob.messages(from: pair.alice) == ["alice: first", "alice: second", "alice: third"])
      #expect(try await Self.gaps(pair.bob).isEmpty)
    }
  }

  /// - the recipient declines a message that waits, and accepts the sender later
  /// => its number is missing when the next message comes, on each device
  @Test func aDeclinedMessageIsAGap() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await world.device("bob's tablet", account: "bob")
      try await tablet.sync()
      try await pair.alice.send("declined", to: pair.bob)
      try await pair.alice.sync()
      try await pair.bob.syncManager.declineMessages(
        fromUserID: pair.alice.localUserID, isBlocking: true, forLocalUserID: pair.bob.localUserID)
      try await pair.bob.acceptMessages(of: pair.alice)
      try await pair.alice.send("later", to: pair.bob)
      try await pair.alice.sync()
      for device in [pair.bob, tablet] {
        world.expectsSecurityErrors(["messageGap"], on: device)
        try await device.sync()
        #expect(try await device.messages(from: pair.alice) == ["alice: later"])
        let found = try await Self.gaps(device)
        #expect(found.map(\.user) == [try pair.alice.localUserID] && found.map(\.times) == [1])
      }
    }
  }

  /// The versions of profiles are no numbers of messages.
  @Test func profilesLeaveNoGap() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let envelope = try forger.envelope(try forger.profile("Alice", version: 7))
      #expect(try await pair.alice.api.deliver([envelope.bytes]) == [.delivered])
      try await Self.deliver([1, 2], forger, pair)
      try await pair.bob.sync()
      #expect(try await Self.gaps(pair.bob).isEmpty)
    }
  }

  // MARK: Floods

  @Test func theSameMessageAHundredTimes_alsoAfterItsDeletion_isOneCallback() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let forger = try await Forger(pair)
      let envelope = try forger.envelope(forger.fields("once"))
      for round in 0..<3 {
        let results = try await pair.alice.api.deliver(Array(repeating: envelope.bytes, count: 33))
        #expect(results.allSatisfy { $0.isStored })
        try await pair.bob.sync()
        if round == 1 { try await pair.bob.deleteInbox() }
        try await pair.bob.sync()
      }
      _ = try await pair.alice.api.deliver([envelope.bytes])
      try await pair.bob.sync()
      #expect(pair.bob.recorder.take().filter { $0.hasPrefix("new") }.count == 1)
      #expect(try await pair.bob.messages(from: pair.alice) == [])
      #expect(try await pair.bob.waitingCount() == 0)
    }
  }

  /// - the server lists messages without an end, or empty pages without an end
  /// => the client asks for as many pages as an honest mailbox can have, and holds no more requests
  @Test(arguments: [0, 250]) func anEndlessMailboxIsReadUpToItsLimit(count: Int) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let bob = try await TestDevice("bob", server: world.server, clock: world.clock, through: hostile)
      _ = try await bob.createAccount()
      let asked = Mutex(0)
      hostile.tell(
        .fabricate("GET", Routes.inbox) { route, request in
          let page = asked.withLock {
            $0 += 1
            return UInt64($0)
          }
          return Self.page(page, count: count, route, request)
        })
      let requests = try await bob.syncManager.messageRequests(forLocalUserID: try bob.localUserID)
      #expect(requests.count == (count == 0 ? 0 : Limits.inboxEnvelopes))
      #expect(asked.withLock { $0 } == (count == 0 ? 1 : 4))
      try await bob.close()
    }
  }

  private static func page(
    _ page: UInt64, count: Int, _ route: WireRoutes.Route, _ request: [UInt8]
  ) -> ServedAnswer? {
    let messages = (0..<count).map { index in
      WaitingMessage(
        cursor: page * 1_000 + UInt64(index), sender: UserID(page, UInt64(index), 1, 1), messageID: .random(),
        length: 2_000, receivedMs: 1, isRequest: true)
    }
    guard let body = try? JSONEncoder().encode(MessageList(messages: messages, next: page * 1_000 + 999)) else {
      return nil
    }
    return ServedAnswer(
      to: route, request: request, status: 200, headers: ["content-type": "application/json"], body: Array(body))
  }

  /// Deletes a message from the inbox.
  private static func delete(_ message: MessageID, _ pair: Pair) async throws {
    let node = NodeID(message: message, from: try pair.alice.userID).text
    try await pair.bob.write { _, cloud in
      let path = ZDCTreesystemPath(pathComponents: [node], trunk: .inbox)
      try cloud.delete(try #require(cloud.node(path: path)))
    }
  }
}
