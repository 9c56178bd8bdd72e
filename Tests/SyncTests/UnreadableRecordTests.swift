import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Records, roots and grants that a device cannot read or must not replace: the log continues over public bytes,
/// nothing is lost, and the next valid version ends the problem.
struct UnreadableRecordTests {
  static func rogue(_ world: TestWorld, _ device: TestDevice) async throws -> RogueWriter {
    let user = try #require(UserID(text: try device.localUserID))
    return try await RogueWriter(words: try #require(world.words()), user: user, server: world.server)
  }

  /// Pushes a version of a node whose private part no device can open.
  static func spoil(
    _ name: String, _ rogue: RogueWriter, _ change: (inout RecordDraft) -> Void = { _ in }
  ) async throws {
    let home = try await rogue.home()
    let other = try home.node("other").record.fields.sealedPrivate
    var draft = try home.draft(next: name)
    change(&draft)
    let bad = RogueZone.record(try RecordSealer.seal(draft)) { $0.sealedPrivate = other }
    try await rogue.push(try home.commit(putting: bad), [bad])
  }

  private static func sql(_ device: TestDevice, _ statement: String) async throws {
    try await device.database.write { transaction in try transaction.database.execute(sql: statement) }
  }

  // MARK: Repair

  @Test("C5: this device mends a node whose newest version it cannot open", arguments: ["rename", "edit", "move"])
  func aQuarantinedNode_isMendedHere(by change: String) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for device in [a, b] { world.expectsSecurityErrors(["recordAuthFailed"], on: device) }
      for (path, text) in [("/kept", "1"), ("/other", "2")] { try await a.create(path, text) }
      try await a.create("/d")
      try await world.settle(a, b)
      let rogue = try await Self.rogue(world, a)
      try await Self.spoil("kept", rogue) { $0.recordVersion += 5 }
      try await world.settle(a, b)
      #expect(try await b.node("/kept").quarantine == "recordAuthFailed")
      switch change {
      case "rename": try await b.rename("/kept", to: "mended")
      case "edit": try await b.edit("/kept", "3")
      default: try await b.move("/kept", to: "/d/kept")
      }
      try await b.sync()
      #expect(try await b.queueCount() == 0)
      try await world.settle(a, b)
      let path = ["rename": "/mended", "edit": "/kept"][change] ?? "/d/kept"
      for device in [a, b] {
        #expect(try await device.node(path).quarantine == nil)
        #expect(try await device.content(of: path)?.data == Data((change == "edit" ? "3" : "1").utf8))
      }
    }
  }

  /// - the newest version has other content, with a key that no device has
  /// => a rename waits and reports why: existing content must stay or be replaced; new content takes the name along
  @Test("C5: content that no device can open is replaced by new content only")
  func foreignContent_isReplacedByContent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for device in [a, b] { world.expectsSecurityErrors(["recordAuthFailed"], on: device) }
      for (path, text) in [("/kept", "1"), ("/other", "2")] { try await a.create(path, text) }
      try await world.settle(a, b)
      let rogue = try await Self.rogue(world, a)
      let home = try await rogue.home()
      let sealed = try ContentSealer.sealSmall(data: Array("theirs".utf8))
      var draft = try home.draft(next: "kept")
      draft.content = sealed.content(dataVersion: 4)
      let other = try home.node("other").record.fields.sealedPrivate
      let bad = RogueZone.record(try RecordSealer.seal(draft)) { $0.sealedPrivate = other }
      let blob = try #require(draft.content?.blobID)
      try await rogue.push(try home.commit(putting: bad), [bad], contents: [(blob, sealed.bytes)])
      try await world.settle(a, b)
      try await b.rename("/kept", to: "renamed")
      try await b.sync()
      #expect(try await b.queue() == "move /renamed unreadable")
      #expect(try await b.explain("/renamed")?.operations.first?.detail == "recordAuthFailed")
      try await b.edit("/renamed", "3")
      try await world.settle(b, a)
      #expect(try await b.queueCount() == 0)
      #expect(try await a.content(of: "/renamed")?.data == Data("3".utf8))
    }
  }

  /// - a folder's newest version has a garbage key of a later generation
  /// => a change below it gives the folder a fresh key of that generation, and everything is readable
  @Test("C5: a change below a folder whose newest key no device has repairs it")
  func aFolderWithAForeignKey_isMended() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for device in [a, b] { world.expectsSecurityErrors(["recordAuthFailed"], on: device) }
      try await a.create("/d")
      try await a.create("/d/f", "1")
      try await a.create("/other", "2")
      try await world.settle(a, b)
      let rogue = try await Self.rogue(world, a)
      try await rogue.rotateHome()
      // The folder is stale now, so its generation may rise.
      let home = try await rogue.home()
      var draft = try home.draft(next: "d")
      (draft.key, draft.keyGen) = (.random(), 2)
      let wrap = try home.node("other").record.fields.parentWrap
      let bad = RogueZone.record(try RecordSealer.seal(draft)) { $0.parentWrap = wrap }
      try await rogue.push(try home.commit(putting: bad), [bad])
      try await world.settle(a, b)
      try await b.edit("/d/f", "3")
      try await b.create("/d/new", "4")
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/d\n/d/f  \"3\"\n/d/new  \"4\"\n/other  \"2\"")
      #expect(try await a.node("/d").quarantine == nil)
    }
  }

  // MARK: Reports

  @Test("A2: nodes that cannot be read are counted and listed, with those that wait below them")
  func unreadableNodes_areListed() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["recordAuthFailed", "recordAuthFailed"], on: b)
      for (path, text) in [("/kept", "1"), ("/other", "2")] { try await a.create(path, text) }
      try await world.settle(a, b)
      #expect(try await b.syncManager.unreadableNodes(localUserID: b.localUserID) == [])
      let rogue = try await Self.rogue(world, a)
      let home = try await rogue.home()
      let foreign = try home.node("other").record.fields.sealedPrivate
      let bad = RogueZone.record(try RecordSealer.seal(try home.draft(new: "folder"))) { $0.sealedPrivate = foreign }
      var child = try home.draft(new: "child")
      child.parent = bad.fields.node
      let below = try RecordSealer.seal(child)
      let spoilt = RogueZone.record(try RecordSealer.seal(try home.draft(next: "kept"))) {
        $0.sealedPrivate = foreign
      }
      try await rogue.push(try home.commit(putting: bad, below, spoilt), [bad, below, spoilt])
      let summary = try await b.sync()
      #expect(summary.unreadableNodes == 3 && !summary.isComplete)
      let listed = try await b.syncManager.unreadableNodes(localUserID: b.localUserID)
      let kept = try await b.node("/kept")
      #expect(try await b.explain("/kept")?.isInSync == false)
      #expect(Set(listed.map(\.cloudID)) == [kept.cloudID, bad.fields.node.text, below.fields.node.text])
      #expect(listed.allSatisfy { $0.code == .recordAuthFailed && $0.trunk == .home && $0.parentID != nil })
      #expect(listed.filter(\.isBelow).map(\.cloudID) == [below.fields.node.text])
      #expect(listed.compactMap(\.nodeID) == [kept.uuid])
      #expect(try await b.syncManager.syncState(forLocalUserID: b.localUserID).unreadableNodes == 3)
      try await b.delete("/kept")
      try await b.sync()
      #expect(try await b.syncManager.syncState(forLocalUserID: b.localUserID).unreadableNodes == 2)
    }
  }

  /// - the server has lost the records of a known node and of a new one
  /// => each is counted as missing until it is back
  @Test("A2: nodes whose records are missing are counted and listed", arguments: ["missing", "rotten"])
  func missingNodes_areListed(damage: String) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["objectMissing"], on: b)
      try await a.create("/f", "1")
      try await world.settle(a, b)
      try await a.edit("/f", "2")
      try await a.create("/g", "3")
      try await a.sync()
      try Self.damage(world) { damage == "missing" ? Data() : $0.prefix(99) + [$0[99] ^ 1] + $0.dropFirst(100) }
      try await b.sync()
      let listed = try await b.syncManager.unreadableNodes(localUserID: b.localUserID)
      #expect(listed.count == 2 && listed.allSatisfy { $0.code == .objectMissing && !$0.isBelow })
      #expect(try await b.explain("/f")?.quarantine == "objectMissing")
      #expect(try await b.syncManager.frozenZones(localUserID: b.localUserID) == [])
      #expect(try await b.content(of: "/f")?.data == Data("1".utf8))
      try Self.repair(world)
      try await world.settle(b)
      #expect(try await b.syncManager.unreadableNodes(localUserID: b.localUserID) == [])
      #expect(try await b.content(of: "/g")?.data == Data("3".utf8))
    }
  }

  /// Changes the two newest records in the server's files, and saves the originals.
  static func damage(_ world: TestWorld, _ change: (Data) -> Data) throws {
    try VerificationTests.server(world) { db in
      try db.execute(
        sql: "CREATE TABLE saved AS SELECT id, record AS bytes FROM nodes ORDER BY commit_key DESC, put DESC LIMIT 2")
      for row in try Row.fetchAll(db, sql: "SELECT id, bytes FROM saved") {
        let id: Int64 = row["id"]
        try db.execute(sql: "UPDATE nodes SET record = ? WHERE id = ?", arguments: [change(row["bytes"]), id])
      }
    }
  }

  /// Undoes ``damage(_:_:)``.
  static func repair(_ world: TestWorld) throws {
    try VerificationTests.server(world) { db in
      try db.execute(sql: "UPDATE nodes SET record = saved.bytes FROM saved WHERE saved.id = nodes.id")
      try db.execute(sql: "DROP TABLE saved")
    }
  }

  // MARK: Fields that this client does not use

  /// - a later version of the app has stored a record with an extra that this version does not know
  /// => the node is shown and not overwritten; a later version without the extra ends that
  @Test("C6: a node with an unknown extra is shown and read-only")
  func anUnknownExtra_makesReadOnly() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      world.expectsSecurityErrors(["unsupportedVersion"], on: a)
      for (path, text) in [("/f", "1"), ("/g", "2")] { try await a.create(path, text) }
      try await a.sync()
      let rogue = try await Self.rogue(world, a)
      let home = try await rogue.home()
      var draft = try home.draft(next: "f")
      draft.secrets.unknownExtras = [RecordPrivate.UnknownExtra(type: 200, value: [1, 2, 3])]
      draft.secrets.name = Array("shown".utf8)
      let record = try RecordSealer.seal(draft)
      try await rogue.push(try home.commit(putting: record), [record])
      try await a.sync()
      #expect(try await a.node("/shown").quarantine == "unsupportedVersion")
      try await a.rename("/shown", to: "mine")
      try await a.edit("/g", "3")
      try await a.sync()
      #expect(try await a.queue() == "move /mine unreadable")
      #expect(try await a.explain("/mine")?.operations.first?.detail == "unsupportedVersion")
      #expect(try await rogue.home().node("shown").secrets.unknownExtras.count == 1)
      let later = try await rogue.home()
      var known = try later.draft(next: "shown")
      known.secrets.unknownExtras = []
      let good = try RecordSealer.seal(known)
      try await rogue.push(try later.commit(putting: good), [good])
      try await a.sync()
      #expect(try await a.queueCount() == 0)
      #expect(try await rogue.home().nodes["mine"] != nil)
    }
  }

  @Test("C6: a rename, a move and an edit of others keep a pointer, its origin, its recipients and who was served")
  func unusedFields_areKept() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/d")
      try await a.create("/p", "1")
      try await a.sync()
      let rogue = try await Self.rogue(world, a)
      let users = try (1...3).map { try #require(UserID([UInt8](repeating: $0, count: 32))) }
      let tree = try #require(TreeID([UInt8](repeating: 9, count: 32)))
      let start = try #require(CommitHash([UInt8](repeating: 8, count: 32)))
      let target = PointerTarget(
        owner: users[0], zone: ZoneID(trunkOf: tree), node: .random(), genesis: start, seq: 0, head: start)
      let origin = MovedNode(tree: tree, node: .random())
      let (recipients, served) = ([users[0], users[1]], [users[1]])
      let home = try await rogue.home()
      var pointer = try home.draft(new: "pointer")
      pointer.secrets.pointer = target
      pointer.secrets.recipients = recipients
      pointer.secrets.movedFrom = origin
      var message = try home.draft(next: "p")
      (message.secrets.recipients, message.secrets.served) = (recipients, served)
      let records = [try RecordSealer.seal(pointer), try RecordSealer.seal(message)]
      try await rogue.push(try home.commit(putting: records[0], records[1]), records)
      try await a.sync()
      try await a.rename("/pointer", to: "renamed")
      try await a.edit("/p", "2")
      try await a.sync()
      try await a.relaunch()
      try await a.move("/renamed", to: "/d/renamed")
      try await a.move("/p", to: "/d/p")
      try await a.sync()
      let after = try await rogue.home()
      let moved = try after.node("renamed")
      #expect(moved.secrets.pointer == target && moved.secrets.recipients == recipients)
      #expect(moved.secrets.movedFrom == origin)
      let folder = try after.node("d").record.fields.node
      #expect(moved.record.fields.isPointer && moved.record.fields.parent == folder)
      let secrets = try after.node("p").secrets
      #expect(secrets.recipients == recipients && secrets.served == served)
    }
  }

  // MARK: Version numbers

  /// - a node's version in the cloud is the highest possible one
  /// => a change to it waits and reports why; other changes are pushed; no crash
  @Test("C7: a version that cannot rise any more stops nothing else", arguments: ["recordVersion", "dataVersion"])
  func aVersionAtItsEnd(column: String) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      world.mayWait(a)
      for (path, text) in [("/f", "1"), ("/g", "2")] { try await a.create(path, text) }
      try await a.sync()
      try await Self.sql(a, "UPDATE zdc_node SET \(column) = -1 WHERE depth = 1 AND uuid = '\(a.node("/f").uuid)'")
      try await a.edit("/f", "3")
      try await a.edit("/g", "4")
      try await a.create("/h", "5")
      try await a.sync()
      #expect(try await a.queue() == "putData /f exhausted")
      #expect(try await a.explain("/f")?.operations.first?.detail == "limitExceeded")
    }
  }

  // MARK: Roots and grants

  /// - the owner's wrap of a new key holds another key; later there is a valid rotation
  /// => the log continues, pushing waits and reports why, other trees continue; then everything is readable
  @Test("K-3: a grant that does not hold the zone's key stops neither the log nor other trees")
  func aGrantOfAnotherKey() async throws {
    try await TestWorld.run { world in
      // A fresh device meets the first grant in the log as well.
      world.skipsComparison()
      let a = try await world.device("A")
      let b = try await world.device("B")
      for device in [a, b] { world.expectsSecurityErrors(["keyCommitmentMismatch"], on: device) }
      for (path, text) in [("/d/f", "1"), ("/g", "2")] {
        if path.hasPrefix("/d") { try await a.create("/d") }
        try await a.create(path, text)
      }
      try await world.settle(a, b)
      let rogue = try await Self.rogue(world, a)
      let home = try await rogue.home()
      let encPub = try await rogue.encPub()
      let bad = try home.rotation(encPub: encPub, granting: .random())
      try await rogue.push(bad)
      try await b.create("/new", "3")
      try await b.write { _, cloud in
        _ = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["pref"], trunk: .prefs))
      }
      try await b.sync()
      try await a.sync()
      #expect(a.recorder.lines.contains("new /pref"))
      let waiting = try #require(try await b.explain("/new")?.operations)
      #expect(waiting.map(\.reason) == [.unreadable, .unreadable])
      #expect(waiting.first?.detail == "keyCommitmentMismatch")
      #expect(try await b.content(of: "/d/f")?.data == Data("1".utf8))
      // The author of the rotation knows the key, and now hands it out.
      let grant = try GrantSealer(zone: home.zone, zoneKeyGen: 2, key: bad.key).seal(
        for: rogue.keys.userID, encGen: 1, encPub: encPub)
      var fields = bad.acl.fields
      (fields.version, fields.prev, fields.entries[0].wrapHash) = (fields.version + 1, bad.acl.hash, grant.wrapHash)
      let list = try ZoneACL(fields) { try rogue.keys.signingKey.sign(label: "acl", message: $0) }
      let commit = try home.commit([.acl(version: list.fields.version, hash: list.hash)], after: bad.commit) {
        $0.aclHash = list.hash
      }
      try await rogue.push(commit, acl: list, grants: [grant])
      let c = try await world.device("C")
      world.expectsSecurityErrors(["keyCommitmentMismatch"], on: c)
      try await world.settle(b, a, c)
      for device in [a, c] { #expect(try await device.content(of: "/new")?.data == Data("3".utf8)) }
      #expect(try await b.queueCount() == 0)
    }
  }

  /// - the root's private part is garbage, its key is the granted one
  /// => everything below it is read and written, on old devices and on fresh ones
  @Test("K-3: garbage in the root's record hides nothing below it")
  func aSpoiledRoot() async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let a = try await world.device("A")
      let b = try await world.device("B")
      for device in [a, b] { world.expectsSecurityErrors(["recordAuthFailed"], on: device) }
      try await a.create("/d")
      try await a.create("/d/f", "1")
      try await world.settle(a, b)
      let rogue = try await Self.rogue(world, a)
      let garbage = try await rogue.home().node("d").record.fields.sealedPrivate
      try await rogue.rotateHome { $0.sealedPrivate = garbage }
      let c = try await world.device("C")
      world.expectsSecurityErrors(["recordAuthFailed"], on: c)
      try await world.settle(a, b, c)
      try await c.create("/d/new", "2")
      try await c.edit("/d/f", "3")
      try await world.settle(c, a, b)
      for device in [a, b, c] {
        #expect(try await device.tree(versions: false) == "/d\n/d/f  \"3\"\n/d/new  \"2\"")
      }
    }
  }
}
