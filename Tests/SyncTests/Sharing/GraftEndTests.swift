import Foundation
import Testing
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Grafts end with the branch, and with the node above their pointer.
struct GraftEndTests {
  typealias Grafted = GraftEndingTests.Grafted

  private func expectNothingLeft(_ grafted: Grafted) async throws {
    try await grafted.world.settle(grafted.alice, grafted.bob, grafted.phone)
    for device in [grafted.bob, grafted.phone] {
      #expect(try await device.tree(versions: false) == "/own")
      #expect(try await grafted.remains(device) == [0, 0, 0, 0], "\(device.name)")
    }
  }

  @Test(
    "S-9: the owner deletes the branch: each device of the guest reports it, and keeps unsent changes in the journal")
  func theOwnerDeletesTheBranch() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob, phone) = (grafted.alice, grafted.bob, grafted.phone)
      try await bob.edit("/Groceries/D", "never sent")
      try await alice.delete("/Groceries")
      try await alice.sync()
      try await bob.sync()
      let heard = bob.recorder.take().filter { !$0.hasPrefix("data") }
      #expect(heard.first == "conflict graft_DstNodeNotFound /Groceries", "\(heard)")
      #expect(heard.last == "deleted /Groceries" && heard.count == 3, "\(heard)")
      let entries = try await bob.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.map(\.kind) == [.deletedInCloud])
      try await phone.sync()
      let told = phone.recorder.take()
      #expect(told.last == "deleted /Groceries" && told.count <= 2, "\(told)")
      try await expectNothingLeft(grafted)
      #expect(try await alice.tree(versions: false).contains("Groceries") == false)
    }
  }

  @Test("S-9: nodes that the guest's app keeps of an ended branch become their own, at the graft's place by name")
  func theGuestKeepsTheirChanges() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob, phone) = (grafted.alice, grafted.bob, grafted.phone)
      try await bob.edit("/Groceries/D", "kept")
      let uuid = try await bob.node("/Groceries/D").uuid
      let zdc = try bob.zdc
      bob.recorder.on(.deletedDirty) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        cloud.queueDataUpload(forNodeID: uuid, withChangeset: nil)
      }
      try await alice.delete("/Groceries")
      try await alice.sync()
      try await world.settle(bob, phone)
      for device in [bob, phone] {
        let tree = try await device.tree(versions: false)
        #expect(tree == "/Groceries  \"the list\"\n/Groceries/D  \"kept\"\n/own", "\(device.name)")
        #expect(try await grafted.remains(device) == [0, 0, 0, 0], "\(device.name)")
      }
    }
  }

  /// - Bob grafts the list into a folder that his phone deletes
  /// - his app keeps the graft by queueDataUpload, which ``ZDCWaitReason`` names as the way to keep a node
  /// => both devices show the list in the folder, and nothing waits
  @Test(arguments: ["r", "rw"]) func aGraftInADeletedFolder_staysIfTheAppKeepsIt(_ letters: String) async throws {
    try await TestWorld.run { world in
      let invited = try await GraftTests.Invited(world, letters)
      let bob = invited.bob
      let phone = try await world.device("phone", account: "bob")
      try await bob.create("/folder")
      try await bob.sync()
      try await phone.sync()
      try await bob.graft("/folder/list", invited.invite, from: invited.alice)
      try await phone.delete("/folder")
      try await phone.sync()
      try await bob.sync()
      #expect(try await bob.queue().contains("deletedRemotely"))
      try await bob.reviveAll()
      try await invited.expectEqual("/folder/list", on: bob, phone)
      #expect(try await phone.tree() == bob.tree())
      for device in [bob, phone] { #expect(try await device.queueCount() == 0, "\(device.name)") }
    }
  }

  @Test("killed after each of its transactions, a guest's device ends the graft once", arguments: [0, 1, 2, 3])
  func killedWhileItEnds(commits: Int) async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob) = (grafted.alice, grafted.bob)
      try await alice.delete("/Groceries")
      try await alice.sync()
      bob.die(afterCommits: commits, network: .alive)
      do { try await bob.sync() } catch { #expect(bob.isDead, "\(error)") }
      try await bob.relaunch()
      try await expectNothingLeft(grafted)
    }
  }

  @Test("the guest deletes the folder above a graft: they leave the branch, and the owner keeps it")
  func theGuestDeletesTheFolderAbove() async throws {
    try await TestWorld.run { world in
      let grafted = try await Grafted(world)
      let (alice, bob, phone) = (grafted.alice, grafted.bob, grafted.phone)
      try await bob.create("/folder")
      try await bob.move("/Groceries", to: "/folder/Groceries")
      try await world.settle(bob, phone, alice)
      try await bob.edit("/folder/Groceries/D", "never sent")
      try await bob.delete("/folder")
      #expect(try await bob.tree(versions: false) == "/own")
      try await grafted.expectEnd()
      #expect(try await alice.content(of: "/Groceries/D")?.data == Data("milk".utf8))
    }
  }

  @Test("the guest ends their own branch with a graft inside: they leave the graft")
  func theGuestEndsTheirOwnBranchAboveAGraft() async throws {
    try await TestWorld.run { world in
      let invited = try await GraftTests.Invited(world)
      let (alice, bob, carol) = (invited.alice, invited.bob, invited.people.carol)
      try await bob.meet(carol)
      try await bob.create("/folder")
      try await bob.sync()
      try await bob.share("/folder", with: carol)
      try await bob.sync()
      let phone = try await world.device("phone", account: "bob")
      try await bob.graft("/folder/Groceries", invited.invite, from: alice)
      try await invited.expectEqual("/folder/Groceries", on: bob, phone)
      try await bob.delete("/folder")
      try await world.settle(bob, phone, alice)
      for device in [bob, phone] {
        #expect(try await device.tree() == "", "\(device.name)")
        #expect(try await device.queueCount() == 0, "\(device.name)")
      }
      #expect(try await alice.members(bob, of: "/Groceries").isEmpty)
    }
  }
}
