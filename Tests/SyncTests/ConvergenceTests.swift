import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Two devices make concurrent changes. => Both and the server end with the tree that PROTOCOL 3.7 names, or the
/// difference is reported as waiting for the app.
///
/// The rows share one world, and each plays in a separate folder.
@Suite(.serialized) struct ConvergenceTests {
  @Test(arguments: ConvergenceTable.all)
  func twoDevices_oneOutcome(_ row: ConvergenceRow) async throws {
    let world = try await SharedWorld.current()
    do {
      try await play(row, in: world)
    } catch {
      await SharedWorld.discard()
      throw error
    }
  }

  @Test func theTableIsWhole() {
    let count = Dictionary(grouping: ConvergenceTable.all, by: \.relation).mapValues(\.count)
    // 15 unordered pairs where both sides are alike, and 25 ordered ones for parent and child; three orders each.
    #expect(count[.sameNode] == 45)
    #expect(count[.parentAndChild] == 75)
    #expect(count[.sameName] == 45)
    #expect(Set(ConvergenceTable.all.map(\.testDescription)).count == ConvergenceTable.all.count)
  }

  private func play(_ row: ConvergenceRow, in world: SharedWorld) async throws {
    let (a, b, witness) = world.actors()
    try await start(row, a, b)
    try await change(row, a, b)
    try await settle(a.device, b.device)
    try await witness.device.pull()
    try await witness.device.download()
    let trees = [try await a.tree(), try await b.tree(), try await witness.tree()]
    let expected = row.outcome
    #expect(trees == [expected.a ?? expected.server, expected.b ?? expected.server, expected.server])
    for device in [a.device, b.device, witness.device] {
      let errors = try await device.securityErrors()
      #expect(errors == [])
    }
    // The trees show the operations that wait; nothing else is queued.
    let queues = [
      expected.a == nil ? try await a.device.queue() : "", expected.b == nil ? try await b.device.queue() : "",
    ]
    #expect(queues == ["", ""])
    try await clear(a, b)
  }

  private func start(_ row: ConvergenceRow, _ a: ConvergenceRow.Actor, _ b: ConvergenceRow.Actor) async throws {
    try await a.device.create(a.folder)
    try await row.scene.start(a)
    try await a.device.sync()
    try await b.device.sync()
    try await b.device.download()
    try await row.scene.a(a)
    guard row.scene.isAUnderWay else { return }
    a.device.network.fail(.loseResponse, "POST", "/v1/commits")
    await #expect(throws: (any Error).self) { try await a.device.push() }
    try await b.device.pull()
    try await b.device.download()
  }

  private func change(_ row: ConvergenceRow, _ a: ConvergenceRow.Actor, _ b: ConvergenceRow.Actor) async throws {
    switch row.order {
    case .aFirst:
      try await a.device.sync()
      try await row.scene.b(b)
      try await b.device.sync()
    case .bFirst:
      try await row.scene.b(b)
      try await b.device.sync()
      try await a.device.sync()
    case .bothOffline:
      try await row.scene.b(b)
      try await a.device.push()
      try await b.device.push()
    }
  }

  private func settle(_ devices: TestDevice...) async throws {
    try await TestWorld.settle(devices)
  }

  /// Deletes the row's folder with everything that still waits, so that the next row begins with empty trees.
  private func clear(_ a: ConvergenceRow.Actor, _ b: ConvergenceRow.Actor) async throws {
    for actor in [b, a] {
      try await actor.device.write { _, cloud in
        for operation in cloud.pendingOperations() { cloud.skipDataUploads(forNodeID: operation.nodeID) }
      }
      if try await actor.device.queueCount() > 0 { try await actor.device.delete(actor.folder) }
    }
    try await settle(a.device, b.device)
    if try await a.exists() { try await a.device.delete(a.folder) }
    try await a.device.sync()
    try await b.device.sync()
    let left = [try await a.device.queue(), try await b.device.queue()]
    guard left == ["", ""] else { throw TestFailure("the waiting operations could not be given up: \(left)") }
  }
}

/// The world that all rows share.
private actor Worlds {
  static let only = Worlds()
  private var making: Task<SharedWorld, any Error>?

  func current() async throws -> SharedWorld {
    let task = making ?? Task { try await SharedWorld() }
    making = task
    return try await task.value
  }

  func discard() { making = nil }
}

private final class SharedWorld: Sendable {
  private let server: TestServer
  private let devices: [TestDevice]

  static func current() async throws -> SharedWorld { try await Worlds.only.current() }
  static func discard() async { await Worlds.only.discard() }

  init() async throws {
    let clock = ManualClock()
    server = try await TestServer.start(clock: clock)
    var devices: [TestDevice] = []
    for name in ["A", "B", "W"] { devices.append(try await TestDevice(name, server: server, clock: clock)) }
    self.devices = devices
    let words = try await devices[0].createAccount()
    for device in devices.dropFirst() { try await device.login(words: words) }
    for device in devices { try await device.sync() }
  }

  /// Returns the three devices, confined to an unused folder.
  func actors() -> (a: ConvergenceRow.Actor, b: ConvergenceRow.Actor, witness: ConvergenceRow.Actor) {
    let folder = "/\(UInt64.random(in: 0 ... .max))"
    let actors = devices.map { ConvergenceRow.Actor(device: $0, folder: folder) }
    return (actors[0], actors[1], actors[2])
  }
}
