import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Changes of each kind, by a member and by another device of the owner, in folders that the owner splits off, in each
/// order.
struct SplitTableTests {
  typealias People = ListChangeTests.People

  /// When the changes are made.
  enum Order: CaseIterable {
    /// They are in the log before the owner queues the splits.
    case before
    /// They are in the log after the owner has queued the splits.
    case beforeTheSplitsAreSent
    /// The device is offline while the splits come into the log.
    case offline
    /// The splits come into the log while the device's first request is on its way.
    case whileTheyAreSent
    /// The device has read the splits.
    case after
  }

  /// The device that makes the changes: that of a member who may share, or another one of the owner's.
  enum Changer: CaseIterable { case member, otherDevice }

  /// A kind of change, in a folder with its name that has the nodes `/a` and `/a/b`.
  private enum Change: String, CaseIterable {
    case create, edit, editTop, rename, renameTop, delete, moveInside, moveIn, moveOut

    var folder: String { "/" + rawValue }
    var folderAfterwards: String { self == .renameTop ? "/renamed" : folder }

    /// The nodes afterwards.
    ///
    /// - Parameter isMoved: Whether the splits left moves of nodes between folders in force.
    func nodes(isMoved: Bool) -> [String] {
      let top = "\(folder)  \"top\""
      let (a, b) = ("\(folder)/a  \"1\"", "\(folder)/a/b  \"2\"")
      switch self {
      case .create: return [top, a, b, "\(folder)/a/new  \"new\""]
      case .edit: return [top, a, "\(folder)/a/b  \"edited\""]
      case .editTop: return ["\(folder)  \"edited\"", a, b]
      case .rename: return [top, "\(folder)/renamed  \"1\"", "\(folder)/renamed/b  \"2\""]
      case .renameTop: return ["/renamed  \"top\"", "/renamed/a  \"1\"", "/renamed/a/b  \"2\""]
      case .delete: return [top]
      case .moveInside: return [top, a, "\(folder)/b  \"2\""]
      case .moveIn: return [top, a, b, isMoved ? "\(folder)/a/x  \"x\"" : "/x  \"x\""]
      case .moveOut: return [top] + (isMoved ? ["/a  \"1\"", "/a/b  \"2\""] : [a, b])
      }
    }

    /// - Parameter path: Returns the device's path for one of the owner's.
    func make(_ device: TestDevice, _ path: (String) throws -> String) async throws {
      let (top, a, b) = (try path(folder), try path(folder + "/a"), try path(folder + "/a/b"))
      switch self {
      case .create: try await device.create(a + "/new", "new")
      case .edit: try await device.edit(b, "edited")
      case .editTop: try await device.edit(top, "edited")
      case .rename: try await device.rename(a, to: "renamed")
      case .renameTop: try await device.rename(top, to: "renamed")
      case .delete: try await device.delete(a)
      case .moveInside: try await device.move(b, to: top + "/b")
      case .moveIn: try await device.move(try path("/x"), to: a + "/x")
      case .moveOut: try await device.move(a, to: try path("/a"))
      }
    }
  }

  /// Alice's tree on two of her devices, and on those of Bob, who may share it, and of Carol.
  private struct Scene: Sendable {
    let people: People
    let second: TestDevice
    let changer: TestDevice
    var (alice, bob, carol): (TestDevice, TestDevice, TestDevice)
    var world: TestWorld { people.world }

    init(_ world: TestWorld, _ changer: Changer, folders: [Change] = [.edit]) async throws {
      people = try await People(world)
      (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for folder in folders.map(\.folder) {
        for (path, text) in [("", "top"), ("/a", "1"), ("/a/b", "2")] { try await alice.create(folder + path, text) }
      }
      try await alice.create("/x", "x")
      try await alice.share(with: bob, "rws")
      try await alice.share(with: carol)
      try await alice.sync()
      second = try await world.device("second")
      self.changer = changer == .member ? bob : second
      for member in [bob, carol] { try await member.accept(alice) }
      try await world.settle(second, bob, carol)
    }

    /// Returns a device's path for one of the owner's.
    func path(_ path: String, on device: TestDevice) throws -> String {
      device === bob ? try bob.path(path, of: alice) : "home:\(path.isEmpty ? "/" : path)"
    }

    func play(
      _ order: Order, splits: @escaping @Sendable () async throws -> Void, changes: () async throws -> Void
    ) async throws {
      try await SplitTableTests.play(order, changer, alice, splits: splits, changes: changes)
      try await world.settle(changer, alice, second, bob, carol)
      #expect(changer.network.hasStruck)
    }

    /// Expects that all devices show the owner's tree, and a new one of Bob's. The world compares a new one of Alice's.
    func expectEqual(_ members: TestDevice...) async throws {
      let tree = try await alice.tree(versions: false)
      #expect(try await second.tree(versions: false) == tree)
      let phone = try await world.device("phone", account: "bob")
      try await phone.accept(alice)
      try await world.settle(phone)
      for member in members + [phone] { #expect(try await member.tree(of: alice) == tree, "\(member.name)") }
    }

    func expect(_ members: [String: String], of path: String, _ others: [TestDevice]) async throws {
      for device in [alice, second, bob] {
        var found: [String: String] = [:]
        for other in others { try await found.merge(device.members(other, of: self.path(path, on: device))) { $1 } }
        #expect(found == members, "\(device.name) \(path)")
      }
    }
  }

  /// Makes changes of a device and the owner's splits in an order.
  private static func play(
    _ order: Order, _ changer: TestDevice, _ alice: TestDevice, _ method: String = "POST",
    _ route: String = Routes.commits, splits: @escaping @Sendable () async throws -> Void,
    changes: () async throws -> Void
  ) async throws {
    let sendSplits: @Sendable () async throws -> Void = {
      try await splits()
      try await alice.sync()
    }
    switch order {
    case .before:
      try await changes()
      for device in [changer, alice] { try await device.sync() }
      try await splits()
    case .beforeTheSplitsAreSent:
      try await splits()
      try await changes()
      try await changer.sync()
    case .offline:
      try await changes()
      try await sendSplits()
    case .whileTheyAreSent:
      changer.network.fail(.before(sendSplits), method, route)
      try await changes()
    case .after:
      try await sendSplits()
      try await changer.sync()
      try await changes()
    }
  }

  /// => each device shows the tree with the change; a move between folders that are one zone no longer is undone
  @Test("a change of each kind, in each order with its folder's split", arguments: Order.allCases, Changer.allCases)
  func changesOfNodes(order: Order, changer: Changer) async throws {
    try await TestWorld.run { world in
      let scene = try await Scene(world, changer, folders: Change.allCases)
      let (alice, carol) = (scene.alice, scene.carol)
      try await scene.play(order) {
        for change in Change.allCases {
          let path = order == .before ? change.folderAfterwards : change.folder
          try await alice.share(path, with: carol, "r")
        }
      } changes: {
        for change in Change.allCases {
          try await change.make(scene.changer) { try scene.path($0, on: scene.changer) }
        }
      }
      let isMoved = [.before, .beforeTheSplitsAreSent, .after].contains(order)
      let expected = Change.allCases.flatMap { $0.nodes(isMoved: isMoved) }
      let tree = try await alice.tree(versions: false).split(separator: "\n").map(String.init)
      #expect(tree.sorted() == expected.sorted())
      try await scene.expectEqual(scene.bob, carol)
      for change in Change.allCases {
        try await scene.expect(["bob": "rws", "carol": "r"], of: change.folderAfterwards, [scene.bob, carol])
      }
      try await scene.expect(["bob": "rws", "carol": "rw"], of: "", [scene.bob, carol])
      let journal = try await scene.changer.write { _, cloud in cloud.mergeJournal() }
      #expect(journal.count { $0.kind == .moveDropped } == (isMoved ? 0 : 2))
    }
  }

  /// - A member of the tree is removed, another one may only read from then on, and a third user becomes a member
  /// => all of that is in force in the tree and in the folder
  @Test("changes of the tree's list, in each order with a split", arguments: Order.allCases, Changer.allCases)
  func changesOfTheList(order: Order, changer: Changer) async throws {
    try await TestWorld.run { world in
      let scene = try await Scene(world, changer)
      let (alice, carol) = (scene.alice, scene.carol)
      var others: [String: TestDevice] = [:]
      for name in ["dave", "erin", "frank"] {
        let other = try await world.device(name, account: name)
        try await other.sync()
        for device in [alice, scene.changer] { try await device.meet(other) }
        others[name] = other
      }
      try await scene.changer.meet(carol)
      let (dave, erin) = (try #require(others["dave"]), try #require(others["erin"]))
      let frank = try #require(others["frank"])
      try await alice.share(with: erin)
      try await world.settle(alice, scene.second, scene.bob)
      try await scene.play(order) {
        try await alice.share("/edit", with: dave)
      } changes: {
        let home = try scene.path("", on: scene.changer)
        try await scene.changer.unshare(home, with: carol)
        for user in [erin, frank] { try await scene.changer.share(home, with: user, "r") }
      }
      let all = [carol, dave, erin, frank]
      try await scene.expect(["erin": "r", "frank": "r"], of: "/x", all)
      try await scene.expect(["dave": "rw", "erin": "r", "frank": "r"], of: "/edit/a", all)
      #expect(try await carol.tree(of: alice) == nil)
      try await scene.expectEqual(scene.bob)
      try await dave.accept(try await alice.cloudID("/edit"), of: alice)
      try await world.settle(dave)
      #expect(try await dave.branch("detached:/" + alice.cloudID("/edit")) == alice.branch("/edit"))
    }
  }

  /// => the tree has one new key, and everything stays readable and can be changed
  @Test("the tree's key is replaced, in each order with a split", arguments: Order.allCases, Changer.allCases)
  func aNewKey(order: Order, changer: Changer) async throws {
    try await TestWorld.run { world in
      let scene = try await Scene(world, changer)
      let (alice, bob, carol) = (scene.alice, scene.bob, scene.carol)
      try await scene.play(order) {
        try await alice.share("/edit", with: carol, "r")
      } changes: {
        try await RotationTests.queueRotation(scene.changer, of: alice)
      }
      #expect(try await scene.people.home().acl.fields.zoneKeyGen == 2)
      for path in ["/x", "/edit/a/b"] { try await bob.edit(bob.path(path, of: alice), "later") }
      try await world.settle(bob, alice, scene.second, carol)
      let expected = "/edit  \"top\"\n/edit/a  \"1\"\n/edit/a/b  \"later\"\n/x  \"later\""
      #expect(try await alice.tree(versions: false) == expected)
      try await scene.expectEqual(bob, carol)
      try await scene.expect(["bob": "rws", "carol": "r"], of: "/edit/a", [bob, carol])
    }
  }

  /// - A user accepts a folder, or grafts it, and the owner splits a part of it off
  /// => the user's devices show all of it, and are members of the part
  @Test("a folder is accepted, in each order with a split inside", arguments: Order.allCases, [false, true])
  func anAcceptance(order: Order, isGraft: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for path in ["/list", "/list/part", "/list/part/a"] { try await alice.create(path, path) }
      try await alice.share("/list", with: carol)
      try await alice.sync()
      let (id, invite) = (try await alice.cloudID("/list"), try await alice.invite("/list"))
      let place = isGraft ? "/mine" : "detached:/" + id
      try await Self.play(order, carol, alice, "PUT", Routes.membership) {
        try await alice.share("/list/part", with: bob, "r")
      } changes: {
        if isGraft { try await carol.graft(place, invite, from: alice) } else { try await carol.accept(id, of: alice) }
      }
      try await world.settle(carol, alice)
      #expect(carol.network.hasStruck)
      let phone = try await world.device("phone", account: "carol")
      if !isGraft { try await phone.accept(id, of: alice) }
      try await world.settle(phone)
      let tree = try await alice.branch("/list")
      for device in [carol, phone] { #expect(try await device.branch(place) == tree, "\(device.name)") }
      #expect(try await alice.members(bob, carol, of: "/list") == ["carol": "rw"])
      #expect(try await alice.members(bob, carol, of: "/list/part/a") == ["bob": "r", "carol": "rw"])
    }
  }
}
