import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// How grafts end: the guest leaves, the owner takes the access away; and what does not end them.
struct GraftEndingTests {
  typealias Invited = GraftTests.Invited

  /// Alice's list in the trees of two devices of Bob.
  struct Grafted {
    let invited: Invited
    let phone: TestDevice
    var (alice, bob, world): (TestDevice, TestDevice, TestWorld)

    init(_ world: TestWorld) async throws {
      invited = try await Invited(world)
      (alice, bob, self.world) = (invited.alice, invited.bob, world)
      phone = try await world.device("phone", account: "bob")
      try await bob.create("/own")
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await world.settle(bob, phone, alice)
      for device in [alice, bob, phone] { _ = device.recorder.take() }
    }

    /// The rows of other users' zones, with nodes and queue.
    func remains(_ device: TestDevice) async throws -> [Int] {
      try await device.database.read { transaction in
        try ["zdc_zone", "zdc_left_zone", "zdc_pointer", "zdc_operation"].map { table in
          try Int.fetchOne(
            transaction.database,
            sql: "SELECT COUNT(*) FROM \(table)\(table == "zdc_zone" ? " WHERE owner IS NOT NULL" : "")") ?? 0
        }
      }
    }

    /// Expects that nothing of the graft is left, and that the owner has the list still.
    func expectEnd(isListed: Bool = false) async throws {
      try await world.settle(bob, phone, alice)
      for device in [bob, phone] {
        #expect(try await device.tree() == bob.tree())
        #expect(try await device.tree(versions: false) == "/own")
        #expect(try await remains(device) == [0, 0, 0, 0], "\(device.name)")
      }
      #expect(try await alice.members(bob, of: "/Groceries").isEmpty != isListed)
      #expect(try await alice.branch("/Groceries")?.contains("/D  ") == true)
    }
  }

  @Test("G-2: the guest deletes the graft and leaves, on all devices; the others keep the branch")
  func theGuestLeaves() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob, phone) = (grafted.alice, grafted.bob, grafted.phone)
      try await bob.edit("/Groceries/D", "never sent")
      try await phone.edit("/Groceries/E", "never sent either")
      try await bob.delete("/Groceries")
      #expect(try await bob.tree(versions: false) == "/own")
      #expect(bob.recorder.take().isEmpty)
      try await bob.sync()
      #expect(try await grafted.remains(bob) == [0, 0, 0, 0])
      try await phone.pull()
      #expect(phone.recorder.take() == ["deleted /Groceries"])
      let entries = try await phone.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.map(\.kind) == [.accessLost])
      try await grafted.expectEnd()
      #expect(try await alice.content(of: "/Groceries/D")?.data == Data("milk".utf8))
      let key = try await alice.database.read { transaction in
        try transaction.zones.zones(localUser: 1).first { !$0.isTrunk }?.head?.acl.fields.zoneKeyGen
      }
      #expect((key ?? 0) >= 2, "the owner replaces the key that the guest had")
    }
  }

  /// - the guest leaves on one device, and the owner replaces the key before the guest's other device reads that
  /// => that device reports no conflict, because its user has decided to leave
  @Test func theGuestLeaves_andTheOwnerReplacesTheKey() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      try await grafted.bob.delete("/Groceries")
      try await grafted.bob.sync()
      for _ in 0..<2 { try await grafted.alice.sync() }
      try await grafted.phone.pull()
      #expect(grafted.phone.recorder.take() == ["deleted /Groceries"])
      try await grafted.expectEnd()
    }
  }

  @Test("a zone that is grafted again gets a row number that no zone had: workers in memory may know the earlier one")
  func rowNumbersAreNotGivenAgain() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob) = (grafted.alice, grafted.bob)
      let number: @Sendable () async throws -> Int64? = {
        try await bob.database.read { try $0.zones.zones(localUser: 1).filter { $0.owner != nil }.map(\.id).max() }
      }
      let first = try #require(try await number())
      try await alice.unshare("/Groceries", with: bob)
      try await world.settle(alice, bob)
      #expect(try await number() == nil)
      try await alice.share("/Groceries", with: bob)
      try await alice.sync()
      try await bob.graft("/again", try await alice.invite("/Groceries"), from: alice)
      #expect(try #require(try await number()) > first)
      try await world.settle(bob, grafted.phone)
      #expect(try await bob.branch("/again") == alice.branch("/Groceries"))
    }
  }

  @Test("K-14: the owner removes the guest; each device reports it, deletes the pointer and keeps nothing")
  func theOwnerRemovesTheGuest() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob, phone) = (grafted.alice, grafted.bob, grafted.phone)
      let uuid = try await bob.node("/Groceries").uuid
      bob.recorder.on(.conflict) { node, transaction in #expect(node.uuid == uuid) }
      try await bob.edit("/Groceries/D", "never sent")
      try await alice.unshare("/Groceries", with: bob)
      try await alice.sync()
      try await bob.sync()
      #expect(
        bob.recorder.take().filter { !$0.hasPrefix("data") }
          == ["conflict graft_DstNodeNotReadable /Groceries", "deleted /Groceries"])
      let entries = try await bob.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.map(\.kind) == [.accessLost])
      try await phone.sync()
      let told = phone.recorder.take()
      #expect(told.last == "deleted /Groceries" && told.count <= 2, "\(told)")
      try await grafted.expectEnd()
    }
  }

  @Test("a 404, an answer without proof, ends nothing")
  func a404IsNoProof() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob) = (grafted.alice, grafted.bob)
      try await alice.edit("/Groceries/D", "news")
      try await alice.sync()
      let tree = try await bob.tree()
      bob.network.fail(.answer(status: 404, code: "notFound"), "GET", Routes.zoneCommits)
      await #expect(throws: (any Error).self) { try await bob.pull() }
      #expect(try await bob.tree() == tree && bob.recorder.take().isEmpty)
      bob.network.restoreNetwork()
      try await grafted.invited.expectEqual(on: bob, grafted.phone)
    }
  }

  @Test("a guest who was removed before their first pull reads in the log that they were")
  func removedBeforeThePull() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      try await alice.unshare("/Groceries", with: bob)
      try await alice.sync()
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await world.settle(bob, alice)
      let told = bob.recorder.take().filter { $0.contains("Groceries") }
      #expect(told == ["conflict graft_DstNodeNotReadable /Groceries", "deleted /Groceries"])
      #expect(try await bob.tree() == "")
      #expect(try await bob.queueCount() == 0)
    }
  }

  @Test("the guest leaves before they sent the pointer, or read the branch: nothing remains")
  func leavingAtOnce() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let bob = invited.bob
      try await bob.graft("/Groceries", invited.invite, from: invited.alice)
      try await bob.delete("/Groceries")
      #expect(try await bob.queueCount() == 0)
      try await world.settle(bob, invited.alice)
      #expect(try await bob.tree() == "" && bob.recorder.take().isEmpty)
      // The invitation is still good.
      try await bob.graft("/Groceries", invited.invite, from: invited.alice)
      try await invited.expectEqual(on: bob)
    }
  }

  @Test("who leaves and comes back before the removal was sent stays a member")
  func leavingAndComingBack() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let bob = grafted.bob
      try await bob.delete("/Groceries")
      try await bob.graft("/Food", grafted.invited.invite, from: grafted.alice)
      try await grafted.invited.expectEqual("/Food", on: bob)
      #expect(try await grafted.alice.members(bob, of: "/Groceries") == ["bob": "rw"])
    }
  }

  @Test("the owner invites again: a new graft, with new access")
  func invitedAgain() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob, phone) = (grafted.alice, grafted.bob, grafted.phone)
      try await alice.unshare("/Groceries", with: bob)
      try await alice.sync()
      try await grafted.expectEnd()
      try await alice.share("/Groceries", with: bob, "r")
      try await alice.sync()
      try await bob.graft("/Again", try await alice.invite("/Groceries"), from: alice)
      try await grafted.invited.expectEqual("/Again", on: bob, phone)
      #expect(await GraftTests.code { try await bob.create("/Again/no") } == .notAllowed)
      #expect(try await bob.queueCount() == 0)
      // A member with only the right to read can leave as well.
      try await bob.delete("/Again")
      try await grafted.expectEnd()
    }
  }

  @Test("removed and added again while the device was offline: the graft stays, and the server announces it again")
  func addedAgain() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob, phone) = (grafted.alice, grafted.bob, grafted.phone)
      try await alice.unshare("/Groceries", with: bob)
      try await alice.sync()
      try await alice.share("/Groceries", with: bob)
      try await alice.sync()
      try await grafted.invited.expectEqual(on: bob, phone)
      #expect(!bob.recorder.take().contains { $0.hasPrefix("deleted") || $0.hasPrefix("conflict") })
      try await alice.edit("/Groceries/D", "news")
      try await alice.sync()
      let head = try await alice.database.read { transaction in
        try #require(try transaction.zones.zones(localUser: 1).first { !$0.isTrunk }?.head)
      }
      let named = try await bob.syncManager.engine(for: try bob.localUserID).session.api.zones(since: nil).zones
      #expect(named.contains { $0.zone == head.zone && $0.seq == head.seq })
    }
  }

  @Test("a device deletes the folder that another one has moved the graft into: it is taken out, like any node")
  func theGraftIsRescued() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (bob, phone) = (grafted.bob, grafted.phone)
      try await bob.create("/folder")
      try await world.settle(bob, phone)
      try await bob.move("/Groceries", to: "/folder/Groceries")
      try await phone.delete("/folder")
      try await bob.sync()
      try await phone.sync()
      try await grafted.invited.expectEqual(on: bob, phone)
      #expect(try await phone.tree() == bob.tree())
      #expect(try await grafted.alice.members(bob, of: "/Groceries") == ["bob": "rw"])
    }
  }

  @Test("a device deletes the folder in which another one has grafted the branch: the guest leaves")
  func theFolderIsDeleted() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      let phone = try await world.device("phone", account: "bob")
      try await bob.create("/folder")
      try await world.settle(bob, phone)
      try await bob.graft("/folder/list", invited.invite, from: alice)
      try await phone.delete("/folder")
      try await world.settle(bob, phone)
      #expect(try await bob.tree() == "")
      #expect(bob.recorder.take().last == "deleted /folder")
      #expect(try await alice.members(bob, of: "/Groceries") == ["bob": "rw"])
      world.clock.advance(by: .seconds(601))
      try await world.settle(bob, phone, alice)
      #expect(try await alice.members(bob, of: "/Groceries") == [:])
      #expect(try await bob.queueCount() == 0)
    }
  }

  @Test("both devices delete the graft offline: one removal")
  func bothDevicesLeave() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      try await grafted.bob.delete("/Groceries")
      try await grafted.phone.delete("/Groceries")
      try await grafted.expectEnd()
    }
  }

  @Test("the device that deleted the pointer is lost: another one ends the membership after a pause")
  func anotherDeviceLeaves() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob, phone) = (grafted.alice, grafted.bob, grafted.phone)
      try await bob.delete("/Groceries")
      // Only the pointer is sent.
      bob.network.fail(.loseRequest, "POST", Routes.commits, occurrence: 2, times: 9)
      do { try await bob.sync() } catch { #expect(error is TransportError) }
      bob.network.restoreNetwork()
      try await phone.sync()
      #expect(phone.recorder.take() == ["deleted /Groceries"])
      #expect(try await alice.members(bob, of: "/Groceries") == ["bob": "rw"])
      world.clock.advance(by: .seconds(601))
      try await phone.sync()
      try await alice.sync()
      #expect(try await alice.members(bob, of: "/Groceries") == [:])
      try await grafted.expectEnd()
    }
  }

  @Test("another member deletes the pointer that the guest has put into a shared branch of theirs: it is put back")
  func anotherMemberDeletesThePointer() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (bob, phone, carol) = (grafted.bob, grafted.phone, grafted.invited.people.carol)
      try await bob.meet(carol)
      try await bob.share("/own", with: carol)
      try await bob.sync()
      let list = try await grafted.alice.invite("/Groceries")
      try await bob.delete("/Groceries")
      try await bob.graft("/own/list", list, from: grafted.alice)
      try await world.settle(bob, phone)
      #expect(try await phone.tree() == bob.tree())
      try await carol.accept(try await bob.cloudID("/own"), of: bob)
      let pointer = "detached:/" + (try await bob.cloudID("/own")) + "/list"
      #expect(try await carol.node(pointer).isPointer)
      try await carol.delete(pointer)
      try await carol.sync()
      try await bob.pull()
      try await phone.pull()
      try await world.settle(bob, phone, carol)
      try await grafted.invited.expectEqual("/list", on: bob, phone)
      #expect(try await phone.tree() == bob.tree())
      #expect(try await grafted.alice.members(bob, of: "/Groceries") == ["bob": "rw"])
    }
  }

  @Test("the app's error in the report keeps the graft until the next pull")
  func anAppThatThrows_isAskedAgain() async throws {
    struct Refused: Error {}
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob) = (grafted.alice, grafted.bob)
      bob.recorder.on(.conflict) { _, _ in throw Refused() }
      try await alice.unshare("/Groceries", with: bob)
      try await alice.sync()
      await #expect(throws: Refused.self) { try await bob.pull() }
      #expect(try await bob.tree(versions: false).contains("/Groceries"))
      bob.recorder.on(.deleted) { _, _ in throw Refused() }
      await #expect(throws: Refused.self) { try await bob.pull() }
      #expect(try await bob.tree(versions: false).contains("/Groceries/D"))
      try await grafted.expectEnd()
    }
  }

  @Test("the app deletes the graft in the report that access has ended")
  func theAppDeletesItInTheCallback() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob) = (grafted.alice, grafted.bob)
      let zdc = try bob.zdc
      bob.recorder.on(.conflict) { node, transaction in
        guard let transaction = transaction as? ZDCReadWriteTransaction,
          let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
        else { return }
        try cloud.delete(node)
      }
      try await alice.unshare("/Groceries", with: bob)
      try await alice.sync()
      try await bob.sync()
      #expect(bob.recorder.take() == ["conflict graft_DstNodeNotReadable /Groceries"])
      try await grafted.expectEnd()
    }
  }

  @Test("an object that is linked to the graft is deleted: the guest leaves")
  func theLinkedObjectIsDeleted() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let bob = grafted.bob
      let uuid = try await bob.node("/Groceries").uuid
      try await bob.write { transaction, cloud in
        transaction.setObject(TestContent("a list"), forKey: "list", inCollection: TestContent.collection)
        try cloud.linkNodeID(uuid, toKey: "list", inCollection: TestContent.collection)
      }
      try await bob.write { transaction, _ in
        transaction.removeObject(forKey: "list", inCollection: TestContent.collection)
      }
      #expect(try await bob.tree(versions: false) == "/own")
      try await grafted.expectEnd()
    }
  }
}
