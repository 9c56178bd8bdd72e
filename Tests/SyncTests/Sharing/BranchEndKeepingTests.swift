import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Changes that a device had queued in an ended branch, and that the app keeps (S-9).
struct BranchEndKeepingTests {
  typealias People = ListChangeTests.People

  /// Lets the app answer the next announcement of queued changes in a deleted branch.
  private static func answer(
    _ device: TestDevice, _ answer: @escaping @Sendable (ZDCNode, ZDCCloudTransaction) throws -> Void
  ) {
    device.recorder.on(.deletedDirty) { [unowned device] node, transaction in
      let transaction = try #require(transaction as? ZDCReadWriteTransaction)
      try answer(node, try #require(try device.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)))
    }
  }

  private static func keys(_ device: TestDevice, _ uuids: [String]) async throws -> [Data] {
    try await device.database.read { transaction in
      try uuids.compactMap { try transaction.nodes.node(uuid: $0) }.map { Data($0.key.exportBytes() + $0.nodeID.bytes) }
    }
  }

  @Test("a member's queued changes become new nodes in their home, with the nodes above them")
  func aMemberKeepsChanges() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let top = try await BranchTests.path("", people)
      let root = try await alice.cloudID("/home/list")
      try await bob.edit(top + "/a/b", "bob's b")
      try await bob.create(top + "/d/new", "bob's new")
      try await bob.edit(top + "/h", "not kept")
      try await bob.rename(top + "/g", to: "not asked")
      let kept = [try await bob.node(top + "/a/b").uuid, try await bob.node(top + "/d/new").uuid]
      let all = kept + [try await bob.node(top).uuid, try await bob.node(top + "/a").uuid]
      let before = try await Self.keys(bob, all)
      try await bob.write { transaction, cloud in
        transaction.setObject(TestContent("linked"), forKey: "b", inCollection: "linked")
        try cloud.linkNodeID(kept[0], toKey: "b", inCollection: "linked")
      }
      Self.answer(bob) { _, cloud in for uuid in kept { cloud.queueDataUpload(forNodeID: uuid, withChangeset: nil) } }
      try await alice.delete("/home/list")
      try await alice.sync()
      _ = bob.recorder.take()
      try await bob.pull()
      let heard = bob.recorder.take()
      #expect(heard.last == "moved /\(root) -> /\(root)", "\(heard)")
      #expect(heard.first?.hasPrefix("deletedDirty ") == true)
      let deleted = Set(heard.filter { $0.hasPrefix("deleted ") }.map { $0.dropFirst("deleted /\(root)".count) })
      #expect(deleted == ["/a/b/c", "/d/e", "/not asked", "/h"], "\(heard)")
      let entries = try await bob.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.contains { $0.mine.path?.nodeName == "h" && $0.result.isDeleted }, "\(entries)")
      #expect(entries.contains { $0.keptNodeIDs?.count == 5 && $0.result.path?.trunk == .home }, "\(entries)")
      try await world.settle(bob)
      #expect(
        try await bob.tree(versions: false) == """
          /\(root)  "top"
          /\(root)/a  "1"
          /\(root)/a/b  "bob's b"
          /\(root)/d
          /\(root)/d/new  "bob's new"
          """)
      #expect(try await bob.branch(top) == nil)
      #expect(try await BranchEndTests.branchCount(bob) == 0)
      let after = try await Self.keys(bob, all)
      #expect(after.count == all.count && Set(after).isDisjoint(with: before))
      #expect(zip(before, after).allSatisfy { $0.prefix(32) != $1.prefix(32) && $0.suffix(16) != $1.suffix(16) })
      #expect(
        try await bob.write { _, cloud in cloud.linkedNode(forKey: "b", inCollection: "linked")?.uuid } == kept[0])
      #expect(try await BranchEndTests.endCount(root, people) == 1)
    }
  }

  @Test("another device of the owner keeps its changes under the branch's name")
  func anotherDeviceOfTheOwnerKeepsChanges() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let alice = people.alice
      let second = try await world.device("second")
      try await second.sync()
      try await second.download()
      try await second.edit("/home/list", "second's")
      Self.answer(second) { node, cloud in try cloud.insertNode(node) }
      try await alice.delete("/home/list")
      try await alice.sync()
      try await world.settle(second, alice, people.bob)
      for device in [alice, second] {
        #expect(try await device.tree(versions: false) == "/home\n/list  \"second's\"\n/other  \"private\"")
      }
      #expect(try await people.bob.tree() == "")
    }
  }

  @Test("the app deletes the nodes in the call, or says nothing: they go", arguments: [false, true])
  func nothingIsKept(deletes: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let top = try await BranchTests.path("", people)
      try await bob.edit(top + "/a/b", "bob's b")
      if deletes { Self.answer(bob) { node, cloud in try cloud.delete(node) } }
      try await alice.delete("/home/list")
      try await alice.sync()
      try await bob.sync()
      #expect(try await bob.queueCount() == 0)
      #expect(try await bob.tree() == "")
      #expect(try await bob.branch(top) == nil)
      let entries = try await bob.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.count == 1 && entries[0].kind == .deletedInCloud && entries[0].result.isDeleted, "\(entries)")
    }
  }
}
