import GRDB
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// A user with 100 zones: the trunks of 50 apps, because they are quicker to make than shared branches. A few shared
/// branches show that these are pulled in the same way.
@Suite(.timeLimit(.minutes(20))) struct ManyZonesTests {
  private static let trees = (1..<50).map { "test.zerodark.app\($0)" }

  /// Makes both devices follow all zones as if they belonged to one app, and each zone have a change that B does not
  /// have.
  private static func prepare(_ a: TestDevice, _ b: TestDevice) async throws {
    try await createTrees(a)
    for device in [a, b] { try await followTrees(device) }
    try await changeEveryZone(a)
    try await b.database.asyncReadWrite { transaction in
      try transaction.database.execute(
        sql: "UPDATE zdc_zone SET appTreeID = CASE WHEN trunk IN (?, ?) THEN ? ELSE 'other' END",
        arguments: [Trunk.home.rawValue, Trunk.prefs.rawValue, TestDevice.treeID])
    }
  }

  private static func createTrees(_ device: TestDevice) async throws {
    let session = try await device.syncManager.engine(for: device.localUserID).session
    let api = try await device.api
    var chain = try await api.chain(of: session.user)
    for tree in trees {
      let creation = TreeCreation(api: api, appTreeID: tree, now: { 1 })
      let trunks = try TreeCreation.trunks(for: session.keys, appTreeID: tree, timeMs: 1)
      chain = try await creation.run(trunks, chain: chain, keys: session.keys)
    }
  }

  private static func followTrees(_ device: TestDevice) async throws {
    let engine = try await device.syncManager.engine(for: device.localUserID)
    let session = engine.session
    await engine.identity.forget()
    try await engine.identity.require()
    try await device.database.asyncReadWrite { transaction in
      for tree in trees {
        try TrunkRows(
          transaction: transaction, localUser: session.localUser, appTreeID: tree, owner: session.user
        ).insertUnknown()
      }
    }
    for zone in try await allZones(of: device) { _ = try await engine.worker(zone).pull() }
  }

  private static func allZones(of device: TestDevice) async throws -> [Int64] {
    let session = try await device.syncManager.engine(for: device.localUserID).session
    return try await session.database.asyncRead { try $0.zones.zones(localUser: session.localUser).map(\.id) }
  }

  private static func changeEveryZone(_ device: TestDevice) async throws {
    let engine = try await device.syncManager.engine(for: device.localUserID)
    let session = engine.session
    try await device.database.asyncReadWrite { transaction in
      for tree in trees + [TestDevice.treeID] {
        let cloud = ZDCCloudTransaction(
          transaction, localUserID: session.localUserID, localUser: session.localUser, treeID: tree)
        for trunk in [ZDCTreesystemTrunk.home, .prefs] {
          let path = ZDCTreesystemPath(pathComponents: ["\(tree) \(trunk)"], trunk: trunk)
          _ = try cloud.createNode(withPath: path)
        }
      }
    }
    for zone in try await allZones(of: device) { _ = try await engine.worker(zone).push() }
  }

  private func newNodes(_ device: TestDevice) -> Int { device.recorder.lines.count { $0.hasPrefix("new ") } }

  /// - each answer takes a second
  /// => 64 zones are requested at a time, so 100 take two seconds
  @Test("100 zones with a change each are pulled in the time of two round trips", arguments: [false, true])
  func roundTrips(inBackground: Bool) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await Self.prepare(a, b)
      // The requests are late on another clock.
      b.engineClock = ManualClock().engineClock
      try await b.relaunch()
      _ = b.recorder.take()
      b.network.resetCounts()
      b.network.fail(.delay(.seconds(1)), "POST", Routes.zonePages, times: 1_000)
      let work =
        try inBackground ? b.runInBackground() : Task { _ = await #expect(throws: Never.self) { try await b.pull() } }
      for _ in 0..<2 {
        await world.clock.waitForSleepers(1)
        world.clock.advance(by: .seconds(1))
      }
      while newNodes(b) < 100 { await Task.yield() }
      #expect(b.network.count("POST", Routes.zonePages) == 2 && b.network.count("GET", Routes.zoneCommits) == 0)
      #expect(b.network.requests.count <= 5)
      if inBackground { work.cancel() }
      await work.value
    }
  }

  /// - a garbled byte: in the first zone's ID, and in its first commit
  /// => the zones concerned are requested alone: all, and one
  @Test("a zone whose page is garbled is pulled with a separate request", arguments: [(3, 100), (200, 1)])
  func garbled(byte: Int, requests: Int) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await Self.prepare(a, b)
      _ = b.recorder.take()
      b.network.resetCounts()
      b.network.fail(.corruptResponse(byteAt: byte), "POST", Routes.zonePages)
      _ = try await b.pull()
      #expect(newNodes(b) == 100 && b.network.count("GET", Routes.zoneCommits) == requests)
    }
  }

  /// Shares six branches, and changes them after the member has read them.
  private static func changeSixBranches(of owner: TestDevice, with member: TestDevice) async throws {
    let folders = (0..<6).map { "/f\($0)" }
    try await share(folders, of: owner, with: member)
    for folder in folders { try await owner.create(folder + "/new") }
    try await owner.sync()
    _ = member.recorder.take()
    member.network.resetCounts()
  }

  /// - Alice changes six branches that she shares with Bob; the page of one is garbled, and the answer to its separate
  ///   request is late
  /// => Bob has the changes of the others in the meantime
  @Test("a slow shared branch among many delays no other", arguments: [false, true])
  func slowSharedBranch(inBackground: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let bob = people.bob
      try await Self.changeSixBranches(of: people.alice, with: bob)
      bob.network.fail(.corruptResponse(byteAt: 200), "POST", Routes.zonePages)
      bob.network.fail(.delay(.seconds(1)), "GET", Routes.zoneCommits)
      let work =
        try inBackground
        ? bob.runInBackground() : Task { _ = await #expect(throws: Never.self) { try await bob.pull() } }
      while newNodes(bob) < 5 { await Task.yield() }
      await world.clock.waitForSleepers(1)
      #expect(newNodes(bob) == 5 && bob.network.count("POST", Routes.zonePages) == 1)
      #expect(bob.network.count("GET", Routes.zoneCommits) == 1)
      world.clock.advance(by: .seconds(1))
      while newNodes(bob) < 6 { await Task.yield() }
      if inBackground { work.cancel() }
      await work.value
    }
  }

  /// - Alice changes six branches that she shares with Bob; the answer with their pages is withheld
  /// => Bob requests each alone, and has all changes
  @Test("a late answer about many zones delays none of them", arguments: [false, true])
  func lateAnswer(inBackground: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let bob = people.bob
      let time = ManualClock()
      bob.engineClock = time.engineClock
      try await bob.relaunch()
      try await Self.changeSixBranches(of: people.alice, with: bob)
      bob.network.fail(.delay(.seconds(3_600)), "POST", Routes.zonePages)
      let work =
        try inBackground
        ? bob.runInBackground() : Task { _ = await #expect(throws: Never.self) { try await bob.pull() } }
      while !bob.network.hasStruck { await Task.yield() }
      // The time passes slowly: the device may begin to wait after the request has been sent.
      for _ in 0..<20 where newNodes(bob) < 6 {
        time.advance(by: .seconds(1))
        try await Task.sleep(for: .milliseconds(50))
      }
      while newNodes(bob) < 6 { await Task.yield() }
      #expect(bob.network.count("POST", Routes.zonePages) == 1 && bob.network.count("GET", Routes.zoneCommits) >= 6)
      if inBackground { work.cancel() }
      await work.value
    }
  }

  private static func share(_ folders: [String], of alice: TestDevice, with bob: TestDevice) async throws {
    for folder in folders { try await alice.create(folder) }
    try await alice.sync()
    for folder in folders { try await alice.share(folder, with: bob) }
    try await alice.sync()
    for folder in folders { try await bob.accept(try await alice.cloudID(folder), of: alice) }
    try await bob.sync()
  }
}
