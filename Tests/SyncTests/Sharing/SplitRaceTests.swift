import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// The owner of a branch shares a part of it separately, while a guest grafts that part or moves it.
struct SplitRaceTests {
  typealias Invited = GraftTests.Invited

  /// - Bob has Alice's list, and changes what is in a part of it, offline
  /// - Alice shares the part separately, and Bob grafts it before his device has read the split
  /// => all of his devices show it at the graft, with its identity and his changes, whichever log his device asks for first
  @Test(arguments: ["/Groceries", "/Groceries/D"])
  func aPartIsGrafted_beforeItsSplitIsRead(first: String) async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      let phone = try await world.device("phone", account: "bob")
      try await alice.create("/Groceries/D/inner", "inner")
      try await alice.sync()
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await world.settle(bob, phone)
      let (top, inner) = (try await bob.node("/Groceries/D").uuid, try await bob.node("/Groceries/D/inner").uuid)
      try await bob.edit("/Groceries/D/inner", "edited")
      try await bob.create("/Groceries/D/new", "new")
      try await alice.share("/Groceries/D", with: invited.people.carol, "r")
      try await alice.sync()
      let placeholder = try await bob.graft("/Milk", try await alice.invite("/Groceries/D"), from: alice)
      _ = bob.recorder.take()
      try await Self.pull(try await alice.cloudID(first), bob)
      try await world.settle(bob, phone, alice)
      let calls = bob.recorder.take()
      #expect(calls.contains("moved /Groceries/D -> /Milk") && calls.contains("deleted /Milk"), "\(calls)")
      #expect(try await bob.node("/Milk").uuid == top)
      #expect(try await bob.node("/Milk/inner").uuid == inner)
      #expect(try await bob.write { _, cloud in cloud.node(id: placeholder.uuid) } == nil)
      #expect(try await bob.branch("/Milk") == "/inner  \"edited\"\n/new  \"new\"")
      #expect(try await alice.branch("/Groceries/D") == bob.branch("/Milk"))
      #expect(try await phone.tree() == bob.tree())
      #expect(try await bob.node("/Groceries/D").isPointer)
    }
  }

  /// - Bob has Alice's list, and changes what is in a part of it, offline
  /// - Alice shares the part separately, and the server withholds the list's log when Bob's device asks for the part
  /// => the part has its own nodes, and those of the list end: the journal has an entry for each that was changed
  @Test func aPartIsRead_beforeItsSplitIsRead() async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      try await alice.create("/Groceries/D/inner", "inner")
      try await alice.sync()
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await world.settle(bob)
      let (inner, own) = (try await bob.node("/Groceries/D/inner").uuid, try await bob.node("/Groceries/E").uuid)
      try await bob.edit("/Groceries/D/inner", "edited")
      let new = try await bob.create("/Groceries/D/new", "new").uuid
      try await alice.share("/Groceries/D", with: invited.people.carol, "r")
      try await alice.sync()
      try await bob.graft("/Milk", try await alice.invite("/Groceries/D"), from: alice)
      bob.network.fail(.answer(status: 404, code: "notFound"), "GET", Routes.zoneCommits)
      try await Self.pull(try await alice.cloudID("/Groceries/D"), bob)
      try await world.settle(bob, alice)
      let entries = try await bob.write { _, cloud in cloud.mergeJournal() }.filter { $0.kind == .accessLost }
      #expect(Set(entries.map(\.nodeID)) == [inner, new])
      #expect(Set(entries.compactMap { $0.mine.path?.nodeName }) == ["inner", "new"])
      #expect(try await bob.queueCount() == 0)
      #expect(try await bob.branch("/Milk") == "/inner  \"inner\"")
      #expect(try await alice.branch("/Groceries/D") == bob.branch("/Milk"))
      #expect(try await bob.node("/Groceries/E").uuid == own)
      // The app still has what it wrote.
      let kept = try await bob.write { transaction, _ in
        try transaction.object(TestContent.self, forKey: new, inCollection: TestContent.collection)?.data
      }
      #expect(kept == Data("new".utf8))
    }
  }

  /// Pulls one zone, and those that it needs first.
  static func pull(_ root: String, _ device: TestDevice) async throws {
    let session = try await device.syncManager.engine(for: try device.localUserID).session
    let zone = try await device.database.read { transaction in
      try transaction.zones.zones(localUser: session.localUser).first { $0.zone.root.text == root }
    }
    _ = try await ZonePuller(session: session, zone: try #require(zone).id).pull()
  }

  /// - Bob, offline, moves a part of Alice's list to his own tree
  /// - Alice shares the part separately, and deletes it
  /// => the move is dropped, with an entry in the journal, and then the part is gone
  @Test(arguments: [false, true]) func aPartIsMoved_beforeItsSplitIsRead(isDeleted: Bool) async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await bob.create("/mine")
      try await world.settle(bob)
      let uuid = try await bob.node("/Groceries/D").uuid
      try await bob.move("/Groceries/D", to: "/mine/D")
      try await alice.share("/Groceries/D", with: bob, "r")
      try await alice.sync()
      if !isDeleted { try await bob.sync() }
      if !isDeleted { #expect(try await bob.node("/Groceries/D").uuid == uuid) }
      try await alice.delete("/Groceries/D")
      try await alice.sync()
      try await invited.expectEqual(on: bob)
      #expect(try await bob.tree(versions: false).contains("D") == false)
      #expect(try await bob.queueCount() == 0)
      let entries = try await bob.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.contains { $0.kind == .moveDropped })
    }
  }

  /// - Bob leaves Alice's list, and she shares a part of it separately before the removal is in the log
  /// => Bob leaves the part, too, on all devices
  @Test(arguments: [false, true]) func theGuestLeaves_beforeTheSplitIsRead(isSplitWhileSending: Bool) async throws {
    try await TestWorld.run { world in
      let invited = try await Invited(world)
      let (alice, bob) = (invited.alice, invited.bob)
      let phone = try await world.device("phone", account: "bob")
      try await bob.graft("/Groceries", invited.invite, from: alice)
      try await world.settle(bob, phone)
      let split: @Sendable () async throws -> Void = {
        try await alice.share("/Groceries/D", with: invited.people.carol, "r")
        try await alice.sync()
      }
      if isSplitWhileSending { bob.network.fail(.before(split), "POST", Routes.commits) } else { try await split() }
      try await bob.delete("/Groceries")
      for _ in 0..<2 { try await world.settle(bob, phone, alice) }
      #expect(bob.network.hasStruck)
      #expect(try await alice.members(bob, of: "/Groceries") == [:])
      #expect(try await alice.members(bob, invited.people.carol, of: "/Groceries/D") == ["carol": "r"])
      for device in [bob, phone] {
        #expect(try await BranchEndTests.branchCount(device) == 0, "\(device.name)")
        #expect(try await device.queueCount() == 0, "\(device.name)")
        #expect(try await device.tree() == "", "\(device.name)")
      }
    }
  }
}
