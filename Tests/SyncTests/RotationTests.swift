import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Rotations of a zone's key by its owner (PROTOCOL 3.10): everything stays readable, and the next writer rotates the
/// path.
struct RotationTests {
  private static func rogue(_ world: TestWorld, _ device: TestDevice) async throws -> RogueWriter {
    let user = try #require(UserID(text: try device.localUserID))
    return try await RogueWriter(words: try #require(world.words()), user: user, server: world.server)
  }

  /// Returns key generations by name; the root's are under an empty name.
  private static func generations(_ rogue: RogueWriter) async throws -> [String: [UInt32]] {
    let home = try await rogue.home()
    var found = home.nodes.mapValues { [$0.record.fields.keyGen, $0.record.fields.parentKeyGen] }
    found[""] = [home.root.record.fields.keyGen, 0]
    return found
  }

  private static func seed(_ a: TestDevice) async throws {
    for path in ["/d", "/d/e", "/other"] { try await a.create(path) }
    for (path, text) in [("/d/e/f", "1"), ("/g", "2"), ("/other/h", "3")] { try await a.create(path, text) }
    try await a.sync()
  }

  private static func twoDevices(_ world: TestWorld) async throws -> (TestDevice, TestDevice, RogueWriter) {
    let (a, b) = (try await world.device("A"), try await world.device("B"))
    try await seed(a)
    try await world.settle(a, b)
    return (a, b, try await rogue(world, a))
  }

  @Test("A3: a fresh device and a running one read everything after a rotation", arguments: [1, 3])
  func everythingStaysReadable(rotations: Int) async throws {
    try await TestWorld.run { world in
      let (a, b, rogue) = try await Self.twoDevices(world)
      let tree = try await a.tree(versions: false)
      for _ in 0..<rotations { try await rogue.rotateHome() }
      let c = try await world.device("C")
      try await world.settle(a, b, c)
      for device in [a, b, c] {
        #expect(try await device.tree(versions: false) == tree)
        #expect(try await device.node("/d/e/f").name == "f")
        #expect(try await device.content(of: "/d/e/f")?.data == Data("1".utf8))
      }
      await #expect(throws: ZDCCloudError.self) { try await a.create("/g", "a name that is taken") }
    }
  }

  @Test("R-rotate: a write below a stale folder rotates the path above it, and nothing else")
  func writingRotatesThePath() async throws {
    try await TestWorld.run { world in
      let (a, b, rogue) = try await Self.twoDevices(world)
      try await rogue.rotateHome()
      let before = try world.server.commitCount()
      try await b.edit("/d/e/f", "4")
      try await b.sync()
      #expect(try world.server.commitCount() == before + 1)
      #expect(
        try await Self.generations(rogue)
          == ["": [2, 0], "d": [2, 2], "e": [2, 2], "f": [2, 2], "g": [1, 1], "other": [1, 1], "h": [1, 1]])
      try await world.settle(a, b)
      #expect(try await a.content(of: "/d/e/f")?.data == Data("4".utf8))
      try await a.create("/d/e/new", "5")
      try await a.create("/other/new2", "6")
      try await a.sync()
      let later = try await Self.generations(rogue)
      #expect(later["new"] == [1, 2] && later["new2"] == [1, 2] && later["other"] == [2, 2] && later["h"] == [1, 1])
      let c = try await world.device("C")
      try await world.settle(a, b, c)
      #expect(try await c.content(of: "/other/new2")?.data == Data("6".utf8))
      #expect(try await c.content(of: "/other/h")?.data == Data("3".utf8))
    }
  }

  @Test("R-rotate: a rename, a move and a delete after a rotation")
  func placesChangeAfterARotation() async throws {
    try await TestWorld.run { world in
      let (a, b, rogue) = try await Self.twoDevices(world)
      try await rogue.rotateHome()
      // B queues before it has seen the rotation.
      try await b.move("/g", to: "/d/e/g")
      try await b.rename("/d/e", to: "e2")
      try await b.delete("/other/h")
      try await b.edit("/d/e2/f", "7")
      try await world.settle(b, a)
      let generations = try await Self.generations(rogue)
      #expect(generations["g"] == [2, 2] && generations["e2"] == [2, 2] && generations["d"] == [2, 2])
      #expect(generations["other"] == [1, 1])
      try await rogue.rotateHome()
      try await a.move("/d/e2/g", to: "/other/g")
      try await world.settle(a, b)
      #expect(
        try await b.tree(versions: false) == "/d\n/d/e2\n/d/e2/f  \"7\"\n/other\n/other/g  \"2\"")
      let later = try await Self.generations(rogue)
      #expect(later["g"] == [3, 2] && later["other"] == [2, 3] && later["d"] == [2, 2])
    }
  }

  /// - the answer to the commit that rotates a path is lost, and the process ends
  /// => the device meets the commit again in the log, and knows the keys that it made
  @Test("R-rotate: a rotation whose answer is lost is completed once", arguments: [true, false])
  func aLostAnswer(isRelaunched: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.seed(a)
      let rogue = try await Self.rogue(world, a)
      try await rogue.rotateHome()
      try await a.pull()
      try await a.edit("/d/e/f", "8")
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: (any Error).self) { try await a.push() }
      if isRelaunched { try await a.relaunch() }
      try await a.sync()
      try await a.create("/d/e/after", "9")
      try await a.create("/d/after2", "10")
      try await a.sync()
      let c = try await world.device("C")
      try await world.settle(a, c)
      #expect(try await c.content(of: "/d/e/after")?.data == Data("9".utf8))
      let generations = try await Self.generations(rogue)
      #expect(generations["e"] == [2, 2] && generations["after"] == [1, 2] && generations["after2"] == [1, 2])
    }
  }

  /// - the answer to a commit that rotates a folder is lost; the app deletes the folder, and creates another node
  /// => the new node, which gets the folder's number in the database, is not taken for it
  @Test func aNewNode_getsNoRotationOfADeletedOne() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/kept", "1")
      try await a.create("/d")
      try await a.sync()
      try await (try await Self.rogue(world, a)).rotateHome()
      try await a.pull()
      try await a.create("/d/f", "2")
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: (any Error).self) { try await a.push() }
      try await a.delete("/d")
      try await a.create("/new", "3")
      try await a.sync()
      let c = try await world.device("C")
      try await world.settle(a, c)
      #expect(try await c.tree(versions: false) == "/kept  \"1\"\n/new  \"3\"")
      #expect(try await a.queueCount() == 0)
    }
  }

  /// - a member of the branch has given a folder an extra that this version does not know, and the zone's key is replaced
  /// => what is written below it replaces the folder's key, and keeps the extra
  @Test func aFolderWithAnUnknownExtra_getsAFreshKey_andKeepsTheExtra() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      world.expectsSecurityErrors(["unsupportedVersion"], on: a)
      try await a.create("/d")
      try await a.sync()
      let rogue = try await Self.rogue(world, a)
      let home = try await rogue.home()
      var draft = try home.draft(next: "d")
      draft.secrets.unknownExtras = [RecordPrivate.UnknownExtra(type: 200, value: [1, 2, 3])]
      let record = try RecordSealer.seal(draft)
      try await rogue.push(try home.commit(putting: record), [record])
      try await rogue.rotateHome()
      try await a.sync()
      try await a.create("/d/f", "1")
      try await a.sync()
      #expect(try await a.queueCount() == 0)
      let folder = try await rogue.home().node("d")
      #expect(folder.record.fields.keyGen == 2 && folder.secrets.unknownExtras == draft.secrets.unknownExtras)
      try await a.rename("/d", to: "e")
      try await a.sync()
      #expect(try await a.queue() == "move /e unreadable")
      world.mayWait(a)
      world.skipsComparison()
    }
  }

  /// - 980 nodes are created in 40 folders, all of them stale
  /// => the 40 rotations count towards the commits, none of which has more than 1,000 operations
  @Test("K-15: rotations count in the plan of a commit")
  func rotationsCount() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      for folder in 0..<40 { try await a.create("/folder\(folder)") }
      try await a.sync()
      let rogue = try await Self.rogue(world, a)
      try await rogue.rotateHome()
      for number in 0..<980 { try await a.create("/folder\(number % 40)/new\(number)", "x") }
      try await a.sync()
      #expect(try await a.queueCount() == 0)
      let home = try await rogue.home()
      let counts = home.commits.map(\.fields.operations.count)
      #expect(counts.suffix(2).reduce(0, +) == 1_020 && counts.allSatisfy { $0 <= 1_000 })
      #expect(
        home.nodes["folder39"]?.record.fields.keyGen == 2 && home.nodes["new979"]?.record.fields.parentKeyGen == 2)
    }
  }

  /// - a member gives a file a version that no device can read, and its name to another file, before they are removed
  /// => the unreadable file is shown under another name, and the keys of both are replaced
  @Test(arguments: [false, true]) func theNameOfAnUnreadableNodeIsUsedAgain(isReadInBetween: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let alice = people.alice
      world.expectsSecurityErrors(["recordAuthFailed"], on: alice)
      try await alice.create("/list")
      for (path, text) in [("/list/x", "1"), ("/list/other", "2")] { try await alice.create(path, text) }
      try await alice.share(with: people.bob)
      try await alice.sync()
      let rogue = try await people.rogue("alice", alice)
      let home = try await rogue.home()
      var draft = try home.draft(next: "x", below: "list")
      draft.secrets.name = try FoldedName("gone").utf8
      let garbage = try home.node("other").record.fields.sealedPrivate
      let bad = RogueZone.record(try RecordSealer.seal(draft)) { $0.sealedPrivate = garbage }
      let first = try home.commit(putting: bad)
      try await rogue.push(first, [bad])
      if isReadInBetween { try await alice.sync() }
      let new = try RecordSealer.seal(try home.draft(new: "x", below: "list"))
      try await rogue.push(try home.commit(putting: new, after: first), [new])
      try await alice.sync()
      #expect(try await alice.tree(versions: false) == "/list\n/list/other  \"2\"\n/list/x\n/list/x 2  \"1\"")
      try await alice.unshare(with: people.bob)
      try await alice.sync()
      #expect(try await alice.syncManager.replaceOldKeys(forLocalUserID: try alice.localUserID) == 0)
      let fresh = try await world.device("fresh")
      try await world.settle(alice, fresh)
      #expect(try await fresh.tree(versions: false) == alice.tree(versions: false))
      #expect(try await fresh.content(of: "/list/x 2")?.data == Data("1".utf8))
    }
  }

  /// - after a removal, a member puts a node that no device can read, with the tag of another one's name under the new
  ///   key
  /// => the server refuses that one's rotation; the keys of all others are replaced, and the run ends
  @Test func aRefusedRotationDoesNotStopTheOthers() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let people = try await ListChangeTests.People(world)
      let alice = people.alice
      world.expectsSecurityErrors(["recordAuthFailed"], on: alice)
      for number in 1...5 { try await alice.create("/n\(number)", "\(number)") }
      try await alice.create("/n1/below", "6")
      try await alice.share(with: people.bob)
      try await alice.sync()
      try await alice.unshare(with: people.bob)
      try await alice.sync()
      let rogue = try await people.rogue("alice", alice)
      let home = try await rogue.home()
      let garbage = try home.node("n2").record.fields.sealedPrivate
      let bad = RogueZone.record(try RecordSealer.seal(try home.draft(new: "n1"))) { $0.sealedPrivate = garbage }
      try await rogue.push(try home.commit(putting: bad), [bad])
      try await alice.sync()
      let user = try alice.localUserID
      for _ in 0..<2 {
        #expect(try await alice.syncManager.replaceOldKeys(forLocalUserID: user) == 2)
      }
      #expect(alice.network.count("POST", Routes.commits) < 40)
      try await alice.rename("/n1", to: "m")
      try await alice.sync()
      #expect(try await alice.syncManager.replaceOldKeys(forLocalUserID: user) == 0)
      #expect(try await alice.queueCount() == 0)
    }
  }

  // MARK: Deleted folders

  /// - A deletes a folder; B moves a node into it, and gives both new keys, because the zone's key was replaced
  /// - A reads the folder's new record with the move, or before it
  /// => the folder's record is read again, and its key opens the node, which A takes out with all below it
  @Test(
    "M22: a node whose key was replaced when it was moved into a deleted folder is taken out",
    arguments: ["/other", "/other/h"], [false, true])
  func movedIntoADeletedFolder(place: String, isFolderReadBefore: Bool) async throws {
    try await TestWorld.run { world in
      let (a, b, rogue) = try await Self.twoDevices(world)
      try await rogue.rotateHome()
      let moved = try await a.node("/d/e").cloudID
      try await a.delete("/other")
      if isFolderReadBefore {
        try await b.create("/other/new", "4")
        try await b.sync()
        try await a.pull()
      }
      try await b.move("/d/e", to: place + "/e")
      try await b.sync()
      #expect(try await Self.generations(rogue)["e"] == [2, 2])
      try await a.sync()
      try await world.settle(b, a)
      #expect(try await b.tree(versions: false) == "/d\n/e\n/e/f  \"1\"\n/g  \"2\"")
      #expect(try await a.content(of: "/e/f")?.data == Data("1".utf8))
      await #expect(throws: ZDCCloudError.self) { try await a.create("/e/f", "a name that is taken") }
      let journal = try await a.write { _, cloud in cloud.mergeJournal() }
      #expect(!journal.contains { $0.cloudID == moved }, "\(journal)")
      #expect(try await a.queueCount() == 0)
    }
  }

  /// - A deletes a folder; another writer moves a node into it with a version that no device can read
  /// => the node goes with the folder, and the journal has it
  @Test func anUnreadableNodeInADeletedFolder_isInTheJournal() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      world.expectsSecurityErrors(["recordAuthFailed"], on: a)
      try await Self.seed(a)
      let rogue = try await Self.rogue(world, a)
      let home = try await rogue.home()
      let garbage = try home.node("h").record.fields.sealedPrivate
      let draft = try home.draft(next: "g", below: "other")
      let bad = RogueZone.record(try RecordSealer.seal(draft)) { $0.sealedPrivate = garbage }
      let moved = try await a.node("/g").cloudID
      try await a.delete("/other")
      try await rogue.push(try home.commit(putting: bad), [bad])
      try await a.sync()
      #expect(try await a.tree(versions: false) == "/d\n/d/e\n/d/e/f  \"1\"")
      let journal = try await a.write { _, cloud in cloud.mergeJournal() }
      #expect(journal.contains { $0.kind == .deletedHere && $0.cloudID == moved }, "\(journal)")
    }
  }

  // MARK: Old generations

  /// Queues the replacement of a home trunk's key.
  ///
  /// - Parameter owner: A device of the trunk's owner; nil for the device's own user.
  static func queueRotation(_ device: TestDevice, of owner: TestDevice? = nil) async throws {
    let session = try await device.syncManager.engine(for: try device.localUserID).session
    let user = try (owner ?? device).userID
    let home = ZoneID(trunkOf: .derive(owner: user, trunk: .home, appTreeID: TestDevice.treeID))
    try await device.write { transaction, _ in
      let zone = try #require(try transaction.zones.zone(localUser: session.localUser, home))
      let root = try #require(try transaction.nodes.root(zone: zone.id))
      let list = try #require(zone.head).acl.fields
      try transaction.queue(.rotate(after: list.zoneKeyGen), of: root, localUser: zone.localUser, atMs: 1)
    }
  }

  /// Returns the older generations of the home trunk's key that its access list has.
  private static func keptGenerations(_ rogue: RogueWriter) async throws -> [UInt32] {
    let home = try await rogue.home()
    return try KeyHistory(of: home.acl.fields, key: home.root.key).entries.map(\.keyGen)
  }

  /// - the key is replaced three times while only a node of the first generation exists, and again after one of the
  ///   fourth
  /// => the list has the keys of the first and the fourth; once these nodes have new keys, it has neither
  @Test("K-5: the next rotation leaves out generations that no node uses")
  func unusedGenerationsAreLeftOut() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/first", "1")
      try await a.sync()
      let rogue = try await Self.rogue(world, a)
      for _ in 0..<3 {
        try await Self.queueRotation(a)
        try await a.sync()
      }
      #expect(try await Self.keptGenerations(rogue) == [1])
      try await a.create("/fourth", "4")
      try await a.sync()
      try await Self.queueRotation(a)
      try await a.sync()
      #expect(try await Self.keptGenerations(rogue) == [1, 4])
      #expect(try await a.syncManager.replaceOldKeys(forLocalUserID: try a.localUserID) == 0)
      try await Self.queueRotation(a)
      try await a.sync()
      #expect(try await Self.keptGenerations(rogue) == [5])
      let c = try await world.device("C")
      try await world.settle(a, c)
      #expect(try await c.tree(versions: false) == "/first  \"1\"\n/fourth  \"4\"")
    }
  }

  private static func keptGenerations(_ device: TestDevice) async throws -> [UInt32] {
    let home = ZoneID(trunkOf: .derive(owner: try device.userID, trunk: .home, appTreeID: TestDevice.treeID))
    let zone = try await device.database.read { try $0.zones.zone(localUser: 1, home) }
    let list = try #require(zone?.head).acl.fields
    return try KeyHistory(of: list, key: try #require(zone?.key)).entries.map(\.keyGen)
  }

  /// - the key is replaced 512 times, and a node of each generation keeps that one in use
  /// => a member who was offline all the time and a new device read everything at once
  /// - the member is removed
  /// => the removal waits, with its reason, until the nodes have new keys
  @Test("K-5: a list has room for 512 old generations, and a removal beyond them waits for new keys")
  func asManyOldGenerationsAsAListHolds() async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let (alice, bob) = (people.alice, people.bob)
      try await alice.create("/0")
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
      for number in 1...Limits.oldKeyGenerations {
        try await Self.queueRotation(alice)
        try await alice.create("/\(number)")
        for _ in 0..<2 { try await alice.push() }
      }
      let fresh = try await world.device("fresh")
      for device in [fresh, bob] { try await Self.expectOnePull(device) }
      #expect(try await Self.keptGenerations(fresh) == Array(1...UInt32(Limits.oldKeyGenerations)))
      let paths = try await Self.paths(alice.tree())
      #expect(paths.count == Limits.oldKeyGenerations + 1)
      #expect(try await Self.paths(fresh.tree()) == paths)
      #expect(try await Self.paths(bob.tree(of: alice)) == paths)
      try await alice.unshare(with: bob)
      try await alice.sync()
      #expect(try await alice.members(bob) == ["bob": "rw"])
      let waiting = try #require(try await alice.explain("home:/")).operations
      #expect(waiting.map(\.reason) == [.serverSaid] && waiting.map(\.detail) == ["limitExceeded"])
      #expect(try await alice.syncManager.replaceOldKeys(forLocalUserID: try alice.localUserID) == 0)
      try await alice.sync()
      #expect(try await alice.members(bob) == [:])
      #expect(try await Self.keptGenerations(alice) == [UInt32(Limits.oldKeyGenerations) + 1])
    }
  }

  /// The paths of a tree whose content was not downloaded.
  private static func paths(_ tree: String?) -> [Substring] {
    (tree ?? "").split(separator: "\n").compactMap { $0.split(separator: " ").first }
  }

  /// Expects that a device reads the whole log with a few requests, and no list twice. Each list has the keys of all
  /// generations before it.
  private static func expectOnePull(_ device: TestDevice) async throws {
    device.network.resetCounts()
    try await device.sync()
    let requests = device.network.requests
    #expect(requests.count <= 20, "\(device.name): \(device.network.counts())")
    let bytes = requests.reduce(0) { $0 + $1.bytesReceived }
    #expect(bytes < Limits.oldKeyGenerations * Limits.historyWrapBytes, "\(device.name)")
  }
}
