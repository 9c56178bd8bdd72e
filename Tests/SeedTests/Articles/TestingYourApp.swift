import Foundation
import Synchronization
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The examples of the article "Testing your app". They are tests, so they run.
@Suite(.timeLimit(.minutes(20))) struct TestingArticleTests {
  @Test func aNoteArrives() async throws {
    try await TestWorld.run { world in
      let laptop = try await world.device("laptop")
      let phone = try await world.device("phone")
      try await laptop.create("/groceries", "milk")
      try await laptop.sync()
      try await phone.sync()
      try await phone.download()
      #expect(try await phone.tree() == "/groceries  v1  \"milk\"")
    }
  }

  @Test func theAppsDelegateStoresWhatArrives() async throws {
    let clock = ManualClock()
    let server = try await TestServer.start(clock: clock)
    let laptop = try await TestDevice("laptop", server: server, clock: clock)
    let app = ArchiveDelegate()
    let phone = try await TestDevice("phone", server: server, clock: clock, delegate: app)
    try await phone.login(words: try await laptop.createAccount())
    try await laptop.create("/groceries", "milk")
    try await laptop.sync()
    try await phone.sync()
    #expect(app.paths == ["home:/groceries"])
    try await phone.close()
    try await laptop.close()
    try await server.stop()
  }

  @Test func anAppThatMakesItsOwnFramework() async throws {
    let (app, temporary) = (ArchiveDelegate(), try TemporaryFolder())
    let folder = temporary.url
    let server = try await TestServer.start()
    var config = ZDCConfig(primaryTreeID: "com.example.notes", serverURL: server.url, databaseDirectory: folder)
    config.syncAutomatically = false
    let zdc = try ZeroDarkCloud(delegate: app, config: config)
    #expect(!zdc.isDatabaseUnlocked)
    try await server.stop()
  }

  /// Runs `body` with two devices that both have `groceries`.
  private func withDevices(
    _ body: @escaping @Sendable (_ world: TestWorld, _ laptop: TestDevice, _ phone: TestDevice) async throws -> Void
  ) async throws {
    try await TestWorld.run { world in
      let (laptop, phone) = (try await world.device("laptop"), try await world.device("phone"))
      try await laptop.create("/groceries", "milk")
      try await world.settle(laptop, phone)
      _ = (laptop.recorder.take(), phone.recorder.take())
      try await body(world, laptop, phone)
    }
  }

  @Test func conflicts() async throws {
    try await withDevices { world, laptop, phone in
      try await laptop.edit("/groceries", "milk\nbread")
      try await phone.edit("/groceries", "milk\ntea")
      try await laptop.sync()
      try await phone.sync()
      #expect(phone.recorder.take().contains("conflict data /groceries"))
      phone.recorder.dataConflictPolicy = .mergeLines
      try await world.settle(laptop, phone)
      #expect(try await laptop.tree() == phone.tree())
    }
  }

  @Test func badNetworks() async throws {
    try await TestWorld.run { world in
      let (laptop, phone) = (try await world.device("laptop"), try await world.device("phone"))
      phone.network.isOffline = true
      await #expect(throws: ZDCTransportError.self) { try await phone.sync() }
      phone.network.isOffline = false

      laptop.network.fail(.loseResponse, "POST", "/v1/commits")
      try await laptop.create("/groceries", "milk")
      await #expect(throws: ZDCTransportError.self) { try await laptop.sync() }
      try await laptop.sync()
      #expect(laptop.recorder.take().filter { $0 == "pushed /groceries" }.count == 1)
      try await world.settle(laptop, phone)
    }
  }

  @Test func relaunchesAndKills() async throws {
    try await withDevices { world, laptop, phone in
      try await phone.relaunch()
      laptop.die(afterCommits: 1)
      try await laptop.edit("/groceries", "bread")
      await #expect(throws: (any Error).self) { try await laptop.sync() }
      try await laptop.relaunch()
      let clock = world.clock
      clock.advance(by: .seconds(60))
      try await world.settle(laptop, phone)
    }
  }

  @Test func nothingInTheClear() async throws {
    try await TestWorld.run { world in
      let server = world.server
      let laptop = try await world.device("laptop")
      try await laptop.create("/the-name-of-my-secret-project", "its text")
      try await laptop.sync()
      let scanner = CanaryScanner(["the-name-of-my-secret-project"])
      #expect(try scanner.scan(folder: server.folder).isEmpty)
    }
  }
}

/// An app's delegate that only records what arrived.
final class ArchiveDelegate: ZeroDarkCloudDelegate {
  private let arrived = Mutex<[String]>([])
  var paths: [String] { arrived.withLock { $0 } }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData { ZDCData() }
  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    arrived.withLock { $0.append(path.fullPath()) }
  }
  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {}
  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}
  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {}
  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}
}
