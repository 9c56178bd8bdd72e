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

  @Test("a refused change ends all others; the app hears of it once")
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

  @Test("a server that says so without the owner's link ends nothing")
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
