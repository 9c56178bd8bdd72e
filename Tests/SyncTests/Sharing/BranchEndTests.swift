import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// The owner ends a branch that is shared separately by deleting it (S-9).
struct BranchEndTests {
  typealias People = ListChangeTests.People

  /// The number of zones of a device that are no trunk of its user.
  static func branchCount(_ device: TestDevice) async throws -> Int {
    try await device.database.read { try $0.zones.zones(localUser: 1).filter { !$0.isTrunk || $0.owner != nil }.count }
  }

  /// The commits of a branch's log that delete its root, as the server has them; each must be the last and delete nothing
  /// else.
  static func endCount(_ root: String, _ people: People) async throws -> Int {
    let tree = TreeID.derive(owner: try people.alice.userID, trunk: .home, appTreeID: TestDevice.treeID)
    let zone = ZoneID(tree: tree, root: try #require(NodeID(text: root)))
    let page = try PageContents(try await people.rogue("alice", people.alice).page(of: zone))
    let commits = page.commits.map(\.commit.fields)
    let ends = commits.filter { fields in
      fields.operations.contains { if case .delete(let node, _, _) = $0 { node == zone.root } else { false } }
    }
    for end in ends {
      #expect(end.seq == commits.last?.seq && end.operations.count == 1)
      #expect(end.writer == (try people.alice.userID))
    }
    return ends.count
  }

  static func code(_ body: () async throws -> Void) async -> ZDCCloudError.Code? {
    do {
      try await body()
      return nil
    } catch { return (error as? ZDCCloudError)?.code }
  }

  @Test("the owner deletes the branch: one last commit in its log, and it is gone for every member, announced once")
  func theOwnerEndsABranch() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let top = try await BranchTests.path("", people)
      let root = try await alice.cloudID("/home/list")
      let before = try world.server.commitCount()
      for member in [bob, carol] { _ = member.recorder.take() }
      try await alice.delete("/home/list")
      #expect(try await alice.tree(versions: false) == "/home\n/other  \"private\"")
      #expect(try await alice.queueCount() == 2)
      try await alice.sync()
      #expect(try await alice.queueCount() == 0)
      #expect(try world.server.commitCount() == before + 2)
      for member in [bob, carol] {
        try await member.sync()
        #expect(try await member.branch(top) == nil)
        #expect(member.recorder.take() == ["deleted \(top.dropFirst("detached:".count))"])
        try await member.sync()
        #expect(member.recorder.take() == [])
      }
      for device in [alice, bob, carol] { #expect(try await Self.branchCount(device) == 0) }
      #expect(try await Self.endCount(root, people) == 1)
      #expect(alice.recorder.take().allSatisfy { !$0.hasPrefix("deleted") })
      // Its members are rid of it on the server too, and it cannot be accepted again.
      #expect(try await bob.api.zones(since: nil).zones.count == 4)
      await #expect(throws: ServerError.self) { try await bob.accept(root, of: alice) }
      #expect(try await Self.branchCount(bob) == 0)
      // The name is free.
      try await alice.create("/home/list", "another")
      try await world.settle(alice, bob)
    }
  }

  /// How a member loses a branch.
  enum Ending: CaseIterable, Sendable {
    /// The owner deletes it.
    case end
    /// The owner removes the member from its list.
    case removal

    var journalKind: ZDCMergeJournalEntry.Kind { self == .end ? .deletedInCloud : .accessLost }
  }

  @Test(
    "a member's unsent changes end in the journal; links, tags, marks and files go with the nodes",
    arguments: Ending.allCases)
  func unsentChangesEndInTheJournal(_ ending: Ending) async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let top = try await BranchTests.path("", people)
      try await bob.edit(top + "/a", "bob's")
      try await bob.edit(top, "bob's top")
      try await bob.create(top + "/a/new", "new")
      try await bob.rename(top + "/h", to: "renamed")
      try await bob.delete(top + "/g")
      let nodes = [try await bob.node(top), try await bob.node(top + "/d")]
      try await bob.write { transaction, cloud in
        for (index, node) in nodes.enumerated() {
          transaction.setObject(TestContent("linked"), forKey: "\(index)", inCollection: "linked")
          try cloud.linkNodeID(node.uuid, toKey: "\(index)", inCollection: "linked")
          cloud.setTag("x", forNodeID: node.uuid, withIdentifier: "tag")
          cloud.markNodeAsNeedsDownload(node.uuid, components: .thumbnail)
        }
      }
      let content = try await alice.branch("/home/list")
      switch ending {
      case .end: try await alice.delete("/home/list")
      case .removal: try await alice.unshare("/home/list", with: bob)
      }
      try await alice.sync()
      try await bob.sync()
      #expect(try await bob.branch(top) == nil)
      #expect(try await bob.queueCount() == 0)
      #expect(try await Self.branchCount(bob) == 0)
      let (entries, links) = try await bob.write { transaction, cloud in
        (
          cloud.mergeJournal(),
          (0..<2).filter { cloud.linkedNode(forKey: "\($0)", inCollection: "linked") != nil }.count
        )
      }
      let paths = Set(
        entries.filter { $0.kind == ending.journalKind && $0.result.isDeleted }.compactMap(\.mine.path?.nodeName))
      #expect(paths == ["a", "new", "renamed", alice.lostName(top)], "\(entries)")
      #expect(entries.allSatisfy { $0.theirs.isDeleted && $0.keptNodeIDs == nil })
      #expect(links == 0)
      // The app's objects are the app's.
      #expect(try await bob.database.read { $0.hasObject(forKey: "0", inCollection: "linked") })
      for table in ["zdc_tag", "zdc_link", "zdc_needs_download", "zdc_disk_file", "zdc_dependency"] {
        #expect(try await bob.count(table) == 0, "\(table)")
      }
      for entry in entries {
        #expect(await Self.code { _ = try await bob.write { _, cloud in try cloud.undo(entry) } } == .invalidParameter)
      }
      // Nothing of them was sent, and the others keep a branch that the member alone has lost.
      try await world.settle(alice, people.carol)
      let kept = ending == .end ? nil : content
      #expect(try await alice.branch("/home/list") == kept)
      #expect(try await people.carol.branch(top) == kept)
    }
  }

  @Test(
    "S-8: an owner who deletes a folder above their own branches ends these first, the inner ones before the outer ones"
  )
  func innerBranchesEndFirst() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      let top = try await BranchTests.path("", people)
      try await alice.unshare("/home/list/d", with: carol)
      try await alice.create("/home/second", "second")
      try await alice.share("/home/second", with: carol)
      try await world.settle(alice, bob, carol)
      var roots: [String] = []
      for path in ["/home/list", "/home/list/d", "/home/second"] { roots.append(try await alice.cloudID(path)) }
      let before = try world.server.commitCount()
      _ = bob.recorder.take()
      try await alice.delete("/home")
      #expect(try await alice.tree(versions: false) == "/other  \"private\"")
      #expect(try await alice.queueCount() == 4)
      // The outer branch and the folder wait.
      #expect(try await alice.queue().split(separator: "\n").count { $0.hasSuffix(" ready") } == 4)
      try await alice.push()
      #expect(try await Self.endCount(roots[1], people) == 1)
      #expect(try await Self.endCount(roots[0], people) == 0)
      try await alice.sync()
      #expect(try world.server.commitCount() == before + 4)
      for root in roots { #expect(try await Self.endCount(root, people) == 1) }
      try await world.settle(alice, bob, carol)
      #expect(
        bob.recorder.take().sorted() == ["/d", ""].map { "deleted \(top.dropFirst("detached:".count))\($0)" }.sorted())
      for device in [alice, bob, carol] { #expect(try await Self.branchCount(device) == 0) }
    }
  }

  @Test("S-8: another member ends nothing; a folder that they delete above a branch takes only its place")
  func othersDoNotEndBranches() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await BranchTests.create(alice)
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
      try await alice.share("/home/list", with: carol)
      try await world.settle(alice, bob)
      try await BranchTests.accept(carol, people)
      let (root, content) = (try await alice.cloudID("/home/list"), try await alice.branch("/home/list"))
      let path = try bob.path("/home/list", of: alice)
      #expect(await Self.code { try await bob.delete(path) } == .notAllowed)
      #expect(await Self.code { try await carol.delete("detached:/" + root) } == .invalidParameter)
      #expect(try await bob.queueCount() == 0)
      _ = alice.recorder.take()
      try await bob.delete(try bob.path("/home", of: alice))
      try await world.settle(bob, alice, bob, carol)
      #expect(alice.recorder.take().contains("moved /home/list -> /list"))
      #expect(try await alice.branch("/list") == content)
      #expect(try await bob.branch(try bob.path("/list", of: alice)) == content)
      #expect(try await carol.branch("detached:/" + root) == content)
      #expect(try await Self.endCount(root, people) == 0)
    }
  }

  @Test("an app that throws keeps the branch until the next pull, and sends nothing of it")
  func anAppThatThrowsIsNotifiedAgain() async throws {
    struct AppError: Error {}
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let top = try await BranchTests.path("", people)
      let content = try await bob.branch(top)
      try await alice.delete("/home/list")
      try await alice.sync()
      bob.recorder.on(.deleted, times: 2) { _, _ in throw AppError() }
      await #expect(throws: AppError.self) { try await bob.sync() }
      #expect(try await bob.branch(top) == content)
      try await bob.edit(top + "/a", "too late")
      let before = try world.server.commitCount()
      try await bob.relaunch()
      await #expect(throws: AppError.self) { try await bob.sync() }
      #expect(try await bob.branch(top)?.contains("too late") == true)
      #expect(try world.server.commitCount() == before)
      try await bob.sync()
      try await bob.sync()
      #expect(try await bob.branch(top) == nil)
      #expect(try await bob.queueCount() == 0)
      #expect(try await Self.branchCount(bob) == 0)
      let entries = try await bob.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.contains { $0.kind == .deletedInCloud && $0.mine.path?.nodeName == "a" }, "\(entries)")
    }
  }

  @Test("deleting the object that a branch's top is linked to ends the branch")
  func aLinkedObjectEndsItsBranch() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let alice = people.alice
      let (root, node) = (try await alice.cloudID("/home/list"), try await alice.node("/home/list"))
      try await alice.write { transaction, cloud in
        transaction.setObject(TestContent("list"), forKey: "list", inCollection: "lists")
        try cloud.linkNodeID(node.uuid, toKey: "list", inCollection: "lists")
      }
      try await alice.write { transaction, _ in transaction.removeObject(forKey: "list", inCollection: "lists") }
      #expect(try await alice.tree(versions: false) == "/home\n/other  \"private\"")
      try await world.settle(alice, people.bob, people.carol)
      #expect(try await Self.endCount(root, people) == 1)
      #expect(try await Self.branchCount(people.bob) == 0)
    }
  }

  @Test("changes of others that come before the end are deleted with the branch, and in the owner's journal")
  func changesBeforeTheEnd() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let (alice, bob) = (people.alice, people.bob)
      let top = try await BranchTests.path("", people)
      let root = try await alice.cloudID("/home/list")
      try await alice.delete("/home/list")
      try await bob.edit(top, "bob's top")
      try await bob.create(top + "/new", "new")
      try await bob.sync()
      try await alice.pull()
      #expect(try await alice.tree(versions: false) == "/home\n/other  \"private\"")
      let entries = try await alice.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.filter { $0.kind == .deletedHere }.count == 2, "\(entries)")
      try await world.settle(alice, bob, people.carol)
      #expect(try await Self.endCount(root, people) == 1)
      #expect(try await bob.branch(top) == nil)
    }
  }
}

extension TestDevice {
  fileprivate func count(_ table: String) async throws -> Int {
    try await database.read { transaction in
      try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM \(table)") ?? 0
    }
  }

  /// The last component of the path of a branch's top, which has no name itself.
  fileprivate func lostName(_ top: String) -> String { String(top.dropFirst("detached:/".count)) }
}
