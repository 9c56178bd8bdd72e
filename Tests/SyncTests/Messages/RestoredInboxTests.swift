import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A server that comes back with a backup from before the inbox changed.
struct RestoredInboxTests {
  private typealias Pair = MessageTests.Pair

  /// Syncs, and accepts the server's state of every tree that is frozen then.
  private static func accept(_ device: TestDevice) async throws {
    do { try await device.sync() } catch is ZDCSecurityError {}
    let user = try device.localUserID
    for zone in try await device.syncManager.frozenZones(localUserID: user) {
      try await device.syncManager.acceptServerState(ofZone: zone.zone, localUserID: user)
    }
  }

  /// Restores the backup from before `change`, has both people accept it, and returns a new device of bob.
  ///
  /// - Parameter queueing: Queues changes that are not sent before.
  private static func restored(
    _ world: TestWorld, _ pair: Pair, after change: () async throws -> Void,
    queueing: () async throws -> Void = {}
  ) async throws -> TestDevice {
    try await world.settle(pair.alice, pair.bob)
    let backup = try await world.server.backup()
    try await change()
    try await world.settle(pair.alice, pair.bob)
    try await queueing()
    try await world.server.restore(backup)
    for device in [pair.alice, pair.bob] {
      try await accept(device)
      world.expectsSecurityErrors(try await device.securityErrors(), on: device)
    }
    try await world.settle(pair.alice, pair.bob)
    let tablet = try await world.device("bob's tablet", account: "bob")
    try await tablet.sync()
    return tablet
  }

  @Test func messagesThatWereTakenOver_areInTheLogAgain() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await Self.restored(world, pair) {
        try await pair.alice.send("hello", to: pair.bob)
        try await pair.alice.sync()
      }
      for device in [pair.bob, tablet] { #expect(try await device.messages(from: pair.alice) == ["alice: hello"]) }
    }
  }

  @Test func theOwnProfile_isInTheLogAgain() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await Self.restored(world, pair) { try await pair.bob.setProfile("Bob") }
      #expect(try await pair.bob.name(of: pair.bob) == "Bob")
      #expect(try await tablet.name(of: tablet) == "Bob")
      #expect(try await pair.bob.queueCount() == 0)
    }
  }

  /// - the profile was changed once more before the user accepted the server's state
  /// => that change stands
  @Test func aQueuedChangeOfTheProfile_standsAboveTheLostOne() async throws {
    try await TestWorld.run { world in
      let pair = try await Pair(world)
      let tablet = try await Self.restored(world, pair) {
        try await pair.bob.setProfile("Bob")
      } queueing: {
        try await pair.bob.setProfile("Bob B.")
      }
      #expect(try await tablet.name(of: tablet) == "Bob B.")
    }
  }
}
