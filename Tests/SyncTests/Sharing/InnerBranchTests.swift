import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZeroDarkCloud

/// A branch that was shared before the branch around it: the outer one's log does not name it, only a pointer does.
struct InnerBranchTests {
  typealias People = ListChangeTests.People

  /// Alice's list with a folder that she shares with `first`, before she shares the list with Bob.
  private static func nested(_ world: TestWorld, with first: (People) -> [TestDevice]) async throws -> People {
    let people = try await People(world)
    let alice = people.alice
    for path in ["/list", "/list/inner", "/list/inner/leaf"] { try await alice.create(path, path) }
    for member in first(people) { try await alice.share("/list/inner", with: member) }
    try await alice.sync()
    try await alice.share("/list", with: people.bob)
    try await alice.sync()
    return people
  }

  @Test("G-2: a guest of both sees the inner branch in the outer one, on all devices; it is announced once")
  func theInnerBranchIsAcceptedWithTheOuter() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world) { [$0.bob] }
      let (alice, bob) = (people.alice, people.bob)
      let phone = try await world.device("phone", account: "bob")
      try await bob.graft("/list", try await alice.invite("/list"), from: alice)
      try await bob.sync()
      let announced = bob.recorder.take().filter { $0.contains("/inner") }
      #expect(announced == ["new /list/inner", "modified data /list/inner", "new /list/inner/leaf"])
      try await world.settle(phone, bob)
      let tree = try await alice.branch("/list")
      for device in [bob, phone] { #expect(try await device.branch("/list") == tree, "\(device.name)") }
      try await bob.edit("/list/inner/leaf", "bob's")
      try await world.settle(bob, alice, phone)
      #expect(try await alice.content(of: "/list/inner/leaf")?.data == Data("bob's".utf8))
    }
  }

  /// - Bob leaves the list on his phone, while his other device has not sent a node of the inner branch
  /// => the merge journal of that device has it at its place, whichever log the device reads first
  @Test(
    "G-2: unsent changes of a branch inside of one that the user has left elsewhere are in the journal",
    arguments: ["", "/list", "/list/inner"])
  func unsentChangesOfTheInnerBranchAreInTheJournal(readFirst path: String) async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world) { [$0.bob] }
      let (alice, bob) = (people.alice, people.bob)
      let phone = try await world.device("phone", account: "bob")
      try await bob.graft("/list", try await alice.invite("/list"), from: alice)
      try await world.settle(bob, phone)
      try await bob.create("/list/inner/new", "unsent")
      try await phone.delete("/list")
      try await phone.sync()
      if !path.isEmpty { try await SplitRaceTests.pull(try await alice.cloudID(path), bob) }
      try await world.settle(bob, phone)
      let entries = try await bob.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.map(\.kind) == [.accessLost])
      #expect(entries.map { $0.mine.path?.description } == ["home:/list/inner/new"])
      #expect(try await bob.tree() == phone.tree())
      #expect(try await bob.queueCount() == 0)
    }
  }

  /// - Bob's phone grafts the inner branch, and his other device the list around it, both offline
  /// => all his devices show the inner branch where he has put it, whichever pointer they read first
  @Test("G-3: a graft of a branch inside a grafted one has the same place on all devices")
  func theUsersOwnGraftOfTheInnerBranchWins() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world) { [$0.bob] }
      let (alice, bob) = (people.alice, people.bob)
      let phone = try await world.device("phone", account: "bob")
      let (outer, inner) = (try await alice.invite("/list"), try await alice.invite("/list/inner"))
      try await world.settle(phone)
      try await phone.graft("/own", inner, from: alice)
      try await bob.graft("/list", outer, from: alice)
      try await bob.sync()
      _ = bob.recorder.take()
      try await world.settle(phone, bob)
      let moved = bob.recorder.take().filter { $0.contains("inner") || $0.contains("own") }
      #expect(moved == ["moved /list/inner -> /own", "new /list/inner"])
      let fresh = try await world.device("fresh", account: "bob")
      try await world.settle(fresh)
      let tree = try await bob.tree()
      for device in [phone, fresh] { #expect(try await device.tree() == tree, "\(device.name)") }
      #expect(try await bob.node("/list/inner").isPointer)
      try await bob.edit("/own/leaf", "bob's")
      try await world.settle(bob, alice, phone)
      #expect(try await alice.content(of: "/list/inner/leaf")?.data == Data("bob's".utf8))
    }
  }

  /// - Alice splits `/list/x/y` off her list, and `/list/x` afterwards: the pointer to the first is in the second
  /// - Bob grafts `/list/x`, and then the list
  /// => his new device, which reads the list's log after the pointer, shows what his first one shows
  @Test("G-2: a new device shows a branch whose pointer it read before the log that names it")
  func aNewDeviceReadsThePointerFirst() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      for path in ["/list", "/list/x", "/list/x/y", "/list/x/y/leaf"] { try await alice.create(path, path) }
      for (path, member) in [("/list", bob), ("/list/x/y", people.carol), ("/list/x", people.carol)] {
        try await alice.share(path, with: member)
        try await alice.sync()
      }
      for (path, original) in [("/own", "/list/x"), ("/list", "/list")] {
        try await bob.graft(path, try await alice.invite(original), from: alice)
        try await bob.sync()
      }
      let fresh = try await world.device("fresh", account: "bob")
      try await world.settle(fresh, bob)
      for device in [bob, fresh] {
        let (shown, original) = (try await device.branch("/own"), try await alice.branch("/list/x"))
        #expect(shown == original, "\(device.name)")
      }
    }
  }

  /// Alice and Bob, who has grafted the list and may not read the branch in it.
  private static func withoutAccessInside(_ world: TestWorld) async throws -> (alice: TestDevice, bob: TestDevice) {
    let people = try await nested(world) { [$0.carol] }
    let (alice, bob) = (people.alice, people.bob)
    try await alice.unshare("/list/inner", with: bob)
    try await alice.sync()
    try await bob.graft("/list", try await alice.invite("/list"), from: alice)
    try await world.settle(bob)
    return (alice, bob)
  }

  @Test("the pointer's links and tags are those of the branch that takes its place")
  func aMemberWhoIsAddedLater() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.withoutAccessInside(world)
      let pointer = try await bob.node("/list/inner")
      #expect(pointer.isPointer)
      #expect(try await bob.branch("/list/inner") == "")
      try await bob.write { _, cloud in cloud.setTag("kept", forNodeID: pointer.uuid, withIdentifier: "tag") }
      try await alice.share("/list/inner", with: bob)
      try await alice.sync()
      try await bob.sync()
      try await bob.download()
      let node = try await bob.node("/list/inner")
      #expect(node.uuid == pointer.uuid && !node.isPointer)
      let tag = try await bob.write { _, cloud in cloud.tag(forNodeID: node.uuid, withIdentifier: "tag") as? String }
      #expect(tag == "kept")
      #expect(try await bob.branch("/list/inner") == alice.branch("/list/inner"))
    }
  }

  /// - Bob has changed the pointer to a branch that he may not read, and not sent that, when Alice adds him to its list
  /// => the change of the pointer is sent, and the branch takes the pointer's place
  @Test func unsentChangesOfThePointerAreSent() async throws {
    try await TestWorld.run { world in
      let (alice, bob) = try await Self.withoutAccessInside(world)
      let pointer = try await bob.node("/list/inner")
      try await bob.write { transaction, cloud in
        try cloud.queue(.modify, try #require(try transaction.nodes.node(uuid: pointer.uuid)), dependsOn: [])
      }
      try await alice.share("/list/inner", with: bob)
      try await alice.sync()
      try await bob.pull()
      #expect(try await !bob.node("/list/inner").isPointer)
      try await world.settle(bob, alice)
      #expect(try await bob.queueCount() == 0)
      #expect(try await bob.branch("/list/inner") == alice.branch("/list/inner"))
    }
  }

  /// - A member renames the folder that its owner has split off
  /// => their new device, and a member who is added afterwards, show the branch in it
  @Test("G-2: a branch is followed after a member has renamed its folder") func aMemberRenamesTheFolder() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world) { [$0.bob] }
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      try await bob.graft("/list", try await alice.invite("/list"), from: alice)
      try await bob.sync()
      try await bob.rename("/list/inner", to: "renamed")
      try await world.settle(bob, alice)
      for path in ["/list", "/list/renamed"] { try await alice.share(path, with: carol) }
      try await alice.sync()
      try await carol.graft("/list", try await alice.invite("/list"), from: alice)
      let phone = try await world.device("phone", account: "bob")
      try await world.settle(phone, carol)
      let branch = try await alice.branch("/list")
      #expect(branch?.contains("/renamed/leaf") == true)
      for device in [bob, phone, carol] { #expect(try await device.branch("/list") == branch, "\(device.name)") }
    }
  }

  @Test("the running engine accepts an inner branch, and asks once for one that the guest may not read")
  func theEngineAcceptsIt() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world) { [$0.bob] }
      let (alice, bob) = (people.alice, people.bob)
      try await alice.create("/list/other")
      try await alice.sync()
      try await alice.share("/list/other", with: people.carol)
      try await alice.unshare("/list/other", with: bob)
      try await alice.sync()
      bob.engineClock = world.clock.engineClock
      try await bob.relaunch()
      let run = try bob.runInBackground()
      defer { run.cancel() }
      try await bob.graft("/list", try await alice.invite("/list"), from: alice)
      try await Self.wait(until: { try await bob.branch("/list/inner")?.contains("/leaf") ?? false })
      let asked = bob.network.requests.count { $0.path.contains("offered") }
      for number in 0..<3 {
        try await alice.create("/list/new\(number)")
        try await alice.sync()
        try await Self.wait(until: { try await bob.branch("/list")?.contains("/new\(number)") ?? false })
      }
      #expect(bob.network.requests.count { $0.path.contains("offered") } == asked)
      run.cancel()
      await run.value
    }
  }

  @Test("G-3: a pointer of another member makes no device ask for the branch")
  func aPointerOfAnotherMember() async throws {
    try await TestWorld.run { world in
      let people = try await Self.nested(world) { [$0.bob] }
      let (alice, bob) = (people.alice, people.bob)
      try await bob.graft("/list", try await alice.invite("/list"), from: alice)
      try await world.settle(bob)
      try await bob.database.read { transaction in
        let rule = InnerBranchRule(localUser: 1, transaction: transaction)
        let rows = try transaction.nodes.pointersOfOthers(localUser: 1)
        #expect(rows.count == 1)
        for var row in rows {
          // The branch is followed already, so that no device asks for it again.
          #expect(try !rule.isInnerBranch(row))
          let unknown = NodeID.random()
          let tree = try #require(row.pointer?.zone.tree)
          row.unused?.pointer?.zone = ZoneID(tree: tree, root: unknown)
          row.unused?.pointer?.node = unknown
          #expect(try rule.isInnerBranch(row))
          row.cloud?.writer = try bob.userID
          #expect(try rule.isInnerBranch(row))
          row.nodeID = .random()
          #expect(try !rule.isInnerBranch(row))
        }
      }
    }
  }

  private static func wait(until isTrue: () async throws -> Bool) async throws {
    for _ in 0..<5_000 {
      if try await isTrue() { return }
      try await Task.sleep(for: .milliseconds(20))
    }
    Issue.record("nothing happened")
  }
}
