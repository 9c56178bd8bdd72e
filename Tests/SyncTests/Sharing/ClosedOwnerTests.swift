import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// K-16: the owner of a grafted branch closes their account. Guests keep what they have, and change nothing any more.
struct ClosedOwnerTests {
  private typealias Grafted = GraftEndingTests.Grafted
  private static let report = "conflict graft_DstUserAccountDeleted /Groceries"

  private static func run(
    _ body:
      @escaping @Sendable (_ alice: TestDevice, _ bob: TestDevice, _ phone: TestDevice, TestWorld) async throws -> Void
  ) async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      try await body(grafted.alice, grafted.bob, grafted.phone, world)
    }
  }

  private static func close(_ device: TestDevice) async throws {
    let users = try #require(try device.zdc.localUserManager)
    try await users.closeAccount(device.localUserID)
  }

  /// The conflicts that the app was notified of, in order.
  private static func conflicts(_ device: TestDevice) -> [String] {
    device.recorder.take().filter { $0.hasPrefix("conflict") }
  }

  private static func waits(_ device: TestDevice) async throws -> [ZDCWaitReason] {
    try await device.write { _, cloud in cloud.explainQueue().map(\.reason) }
  }

  @Test("a refused change ends all others; the app is notified once")
  func aRefusedChange() async throws {
    try await Self.run { alice, bob, phone, world in
      world.mayWait(bob)
      try await Self.close(alice)
      try await bob.edit("/Groceries/D", "too late")
      try await bob.sync()
      #expect(Self.conflicts(bob) == [Self.report])
      #expect(try await Self.waits(bob) == [.notAllowed])
      let commits = bob.network.count("POST", Routes.commits)
      try await bob.sync()
      try await bob.relaunch()
      try await bob.sync()
      #expect(Self.conflicts(bob).isEmpty)
      #expect(bob.network.count("POST", Routes.commits) == commits, "what the server cannot accept is not sent again")
      let error = await #expect(throws: ZDCCloudError.self) { try await bob.create("/Groceries/new") }
      #expect(error?.code == .notAllowed)
      try await bob.create("/own/other")
      try await bob.sync()
      try await phone.sync()
      #expect(try await phone.tree(versions: false).contains("/own/other"))
      #expect(try await phone.content(of: "/Groceries/D")?.data == Data("milk".utf8))
    }
  }

  @Test("content that is too large for a commit is refused when its upload begins")
  func aRefusedUpload() async throws {
    try await Self.run { alice, bob, _, world in
      world.mayWait(bob)
      try await Self.close(alice)
      try await bob.edit("/Groceries/D", String(repeating: "late ", count: 100_000))
      try await bob.sync()
      #expect(Self.conflicts(bob) == [Self.report])
      #expect(try await Self.waits(bob).allSatisfy { $0 == .notAllowed })
    }
  }

  @Test("devices that change nothing hear of it within a day")
  func devicesThatOnlyRead() async throws {
    try await Self.run { alice, bob, phone, world in
      try await Self.close(alice)
      try await phone.sync()
      #expect(phone.recorder.take().isEmpty)
      world.clock.advance(by: .seconds(86_401))
      try await phone.sync()
      try await bob.sync()
      #expect(Self.conflicts(phone) == [Self.report])
      #expect(Self.conflicts(bob) == [Self.report])
      let chains = phone.network.count("POST", Routes.chains)
      try await phone.sync()
      #expect(phone.network.count("POST", Routes.chains) == chains)
    }
  }

  @Test("the guest deletes the graft: nothing of it is left on any device, although no list can say so")
  func theGuestLeaves() async throws {
    try await Self.run { alice, bob, phone, world in
      try await Self.close(alice)
      try await bob.edit("/Groceries/D", "too late")
      try await bob.sync()
      try await bob.delete("/Groceries")
      try await bob.sync()
      try await phone.sync()
      #expect(phone.recorder.take() == ["deleted /Groceries"])
      // The phone would end the membership if the other device never did. It asks for the owner's chain instead.
      world.clock.advance(by: .seconds(86_401))
      for device in [bob, phone] {
        try await device.sync()
        #expect(try await device.tree(versions: false).hasPrefix("/own"))
        #expect(try await device.queueCount() == 0)
        let rows = try await device.database.read { transaction in
          try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM zdc_zone WHERE owner IS NOT NULL")
        }
        #expect(rows == 0, "\(device.name)")
      }
    }
  }

  @Test("the guest deletes the graft: the server ends the membership, also if its answer is lost")
  func theServerEndsTheMembership() async throws {
    try await Self.run { alice, bob, phone, world in
      try await Self.close(alice)
      try await bob.edit("/Groceries/D", "too late")
      try await bob.sync()
      let before = try await bob.api.zones(since: nil).zones.count
      bob.network.fail(.loseResponse, "DELETE", Routes.membership)
      try await bob.delete("/Groceries")
      for _ in 0..<3 { try await bob.sync() }
      #expect(try await bob.api.zones(since: nil).zones.count == before - 1)
      #expect(bob.network.count("DELETE", Routes.membership) == 2)
      // The phone asks for the owner's chain before it would end the membership itself.
      try await phone.sync()
      world.clock.advance(by: .seconds(86_401))
      try await world.settle(bob, phone)
    }
  }

  /// - the server removes the account, 30 days after its owner has closed it
  /// => guests keep what they have and read it, whether they have synced in the meantime or not; their devices report no
  ///   error, and neither a sync nor a running engine asks for the branch again
  @Test(arguments: [true, false]) func theServerRemovesTheAccount(isKnown: Bool) async throws {
    try await Self.run { alice, bob, phone, world in
      world.skipsComparison()
      try await phone.download()
      try await Self.close(alice)
      if isKnown {
        world.clock.advance(by: .seconds(2 * 86_400))
        for device in [bob, phone] { try await device.sync() }
      }
      world.clock.advance(by: .seconds(31 * 86_400))
      try await world.server.collect()
      for device in [bob, phone] {
        device.network.resetCounts()
        for _ in 0..<3 { try await device.sync() }
        #expect(Self.conflicts(device) == [Self.report])
        #expect(device.network.count("GET", Routes.zoneCommits) == 0)
        #expect(try await device.tree(versions: false).contains("/Groceries"))
        let state = try await device.syncManager.syncState(forLocalUserID: try device.localUserID)
        #expect(state.stalledZones.isEmpty && state.frozenZones.isEmpty && state.lastError == nil)
      }
      #expect(try await phone.content(of: "/Groceries/D")?.data == Data("milk".utf8))
      phone.engineClock = world.clock.engineClock
      try await phone.relaunch()
      phone.network.resetCounts()
      try await phone.whileRunning {
        for _ in 0..<60 { world.clock.advance(by: .seconds(60)) }
        try await bob.create("/own/other")
        try await bob.sync()
        await phone.recorder.wait(for: "new /own/other")
      }
      #expect(phone.network.count("GET", Routes.zoneCommits) <= 1)
      try await bob.delete("/Groceries")
      try await bob.sync()
      try await world.settle(bob, phone)
      for device in [bob, phone] { #expect(try await device.tree(versions: false).contains("/Groceries") == false) }
    }
  }

  /// - the server answers that there is no such branch, before a device has read the owner's chain
  /// => the device asks for the chain, and reports no error of the branch
  @Test func aBranchThatIsGone_makesTheGuestAskForTheOwnersChain() async throws {
    try await Self.run { alice, bob, _, world in
      world.skipsComparison()
      try await Self.close(alice)
      world.clock.advance(by: .seconds(31 * 86_400))
      try await world.server.collect()
      bob.network.resetCounts()
      bob.network.fail(.answer(status: 503, code: "shuttingDown"), "POST", Routes.chains)
      try await bob.sync()
      #expect(Self.conflicts(bob) == [Self.report])
      #expect(bob.network.count("GET", Routes.zoneCommits) == 1)
      for _ in 0..<2 { try await bob.sync() }
      #expect(bob.network.count("GET", Routes.zoneCommits) == 1)
    }
  }

  @Test("the app's error: it is called again")
  func anAppThatThrows() async throws {
    struct Refused: Error {}
    try await Self.run { alice, bob, _, world in
      world.mayWait(bob)
      try await Self.close(alice)
      bob.recorder.on(.conflict) { _, _ in throw Refused() }
      try await bob.edit("/Groceries/D", "too late")
      try await bob.sync()
      #expect(try await Self.waits(bob) == [.notAllowed])
      _ = bob.recorder.take()
      try await bob.sync()
      #expect(Self.conflicts(bob) == [Self.report])
    }
  }

  @Test("a server that claims it without the owner's link ends nothing")
  func aLyingServer() async throws {
    try await Self.run { alice, bob, _, _ in
      let owner = try UserID(text: alice.localUserID)
      let lie = ServerError(.accountClosed, "by script").with(user: try #require(owner))
      bob.network.fail(.before { throw lie }, "POST", Routes.commits, times: 1)
      try await bob.edit("/Groceries/D", "butter")
      await #expect(throws: ServerError.self) { try await bob.sync() }
      #expect(Self.conflicts(bob).isEmpty)
      try await bob.sync()
      #expect(try await bob.queueCount() == 0)
      try await alice.sync()
      try await alice.download()
      #expect(try await alice.content(of: "/Groceries/D")?.data == Data("butter".utf8))
    }
  }
}
