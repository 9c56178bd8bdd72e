import Foundation
import GRDB
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Deleted nodes: listed, and created again with everything that was deleted with them.
struct TrashTests {
  private static func trash(_ device: TestDevice) async throws -> [ZDCDeletedNode] {
    try await device.syncManager.deletedNodes(localUserID: try device.localUserID)
  }

  @discardableResult
  private static func restore(
    _ deleted: ZDCDeletedNode, _ device: TestDevice, into folder: String? = nil
  ) async throws -> ZDCTrashRestoration {
    let folderID = try await folder.asyncMap { try await device.node($0).uuid }
    return try await device.syncManager.restore(
      deleted, intoFolderID: folderID, localUserID: try device.localUserID)
  }

  private static func seed(_ a: TestDevice) async throws {
    for path in ["/d", "/d/e", "/other"] { try await a.create(path) }
    for (path, text) in [("/d/n", "one"), ("/d/e/m", "two"), ("/note", "three")] { try await a.create(path, text) }
    try await a.sync()
  }

  private static let tree = """
    /d
    /d/e
    /d/e/m  "two"
    /d/n  "one"
    /note  "three"
    /other
    """

  /// - A deletes a folder and a note; B, which never deleted anything, restores both; C is fresh
  /// => all devices have what was there before, with its content, and no content was sent
  @Test func aFolderComesBackWithEverythingInIt() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await Self.seed(a)
      try await a.create("/large", String(repeating: "large content ", count: 20_000))
      try await world.settle(a, b)
      try await a.move("/large", to: "/d/large")
      try await world.settle(a, b)
      let before = try await a.tree(versions: false)
      let ids = [try await a.cloudID("/d/e/m"), try await a.cloudID("/note")]
      for path in ["/d", "/note"] { try await a.delete(path) }
      try await world.settle(a, b)
      #expect(try await b.tree(versions: false) == "/other")
      let c = try await world.device("C")
      try await world.settle(a, b, c)
      for device in [a, b, c] {
        let deleted = try await Self.trash(device)
        #expect(Set(deleted.map { $0.path.fullPath() }) == ["home:/d", "home:/note"])
        #expect(deleted.first { $0.name == "d" }?.nodeCount == 5)
        #expect(deleted.allSatisfy { $0.isKept && $0.hasParent && $0.keptUntil != nil })
        #expect(deleted.allSatisfy { $0.deletedByID == (try? device.localUserID) })
      }
      _ = b.recorder.take()
      for deleted in try await Self.trash(b) {
        let result = try await Self.restore(deleted, b)
        #expect(result.left == 0 && result.restored == deleted.nodeCount)
      }
      #expect(b.recorder.take().filter { $0.hasPrefix("new ") }.count == 6)
      try await b.relaunch()
      try await b.sync()
      #expect(b.network.count("POST", Routes.blobs) == 0)
      try await world.settle(a, b, c)
      let d = try await world.device("D")
      try await world.settle(a, b, c, d)
      for device in [a, b, c, d] {
        #expect(try await device.tree(versions: false) == before)
        #expect(try await Self.trash(device).isEmpty)
        #expect(try await [device.cloudID("/d/e/m"), device.cloudID("/note")] == ids)
      }
      // What was restored can be edited and deleted like anything else, and restored again.
      try await c.edit("/d/e/m", "edited")
      try await c.delete("/note")
      try await world.settle(a, b, c, d)
      try await Self.restore(try #require(try await Self.trash(d).first), d)
      try await world.settle(a, b, c, d)
      #expect(try await a.tree(versions: false) == before.replacing("\"two\"", with: "\"edited\""))
    }
  }

  /// - the name is taken: "note 2"
  /// - the folder is gone: an error, then another folder
  @Test func theOldPlaceIsTakenOrGone() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await Self.seed(a)
      try await a.delete("/d/n")
      try await a.sync()
      for path in ["/d", "/note"] { try await a.delete(path) }
      try await a.sync()
      try await a.create("/note", "new")
      try await world.settle(a, b)
      let deleted = try await Self.trash(b)
      #expect(deleted.count == 3)
      let (note, inner) = (deleted.first { $0.name == "note" }, deleted.first { $0.name == "n" })
      try await Self.restore(try #require(note), b)
      let lost = try #require(inner)
      #expect(!lost.hasParent)
      await #expect { try await Self.restore(lost, b) } throws: { ($0 as? ZDCCloudError)?.code == .missingParent }
      try await Self.restore(lost, b, into: "/other")
      await #expect { try await Self.restore(lost, b) } throws: { ($0 as? ZDCCloudError)?.code == .conflict }
      try await world.settle(a, b)
      for device in [a, b] {
        #expect(
          try await device.tree(versions: false) == """
            /note  "new"
            /note 2  "three"
            /other
            /other/n  "one"
            """)
      }
    }
  }

  /// - a folder is deleted, restored, and deleted again from the inside out; so it has had two keys of one generation
  /// => each node is listed once, and opens under the key of its time
  @Test func aFolderThatWasRestoredIsDeletedAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.seed(a)
      try await a.delete("/d")
      try await a.sync()
      try await Self.restore(try #require(try await Self.trash(a).first), a)
      try await world.settle(a)
      try await a.edit("/d/n", "edited")
      for path in ["/d/e/m", "/d"] {
        try await a.delete(path)
        try await a.sync()
      }
      let b = try await world.device("B")
      try await world.settle(a, b)
      for device in [a, b] {
        #expect(try await Self.trash(device).map { "\($0.name) \($0.nodeCount)" } == ["d 3", "m 1"])
      }
      for deleted in try await Self.trash(b) { try await Self.restore(deleted, b) }
      try await world.settle(a, b)
      for device in [a, b] {
        #expect(try await device.tree(versions: false) == Self.tree.replacing("\"one\"", with: "\"edited\""))
        let versions = try await device.syncManager.versions(
          ofNodeID: try await device.node("/d/n").uuid, localUserID: try device.localUserID)
        #expect(versions.count == 1)
      }
    }
  }

  /// - two devices restore the same folder while they are offline
  /// => it is there once
  @Test func twoDevicesRestoreTheSame() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await Self.seed(a)
      try await world.settle(a, b)
      try await a.delete("/d")
      try await world.settle(a, b)
      for device in [a, b] { try await Self.restore(try #require(try await Self.trash(device).first), device) }
      try await world.settle(a, b)
      for device in [a, b] {
        #expect(try await device.tree(versions: false) == Self.tree)
        #expect(try await device.queueCount() == 0)
      }
    }
  }

  /// - 1,500 nodes in a folder, restored with a process that ends after each request
  /// => all are there; records came in pages, and no request was made for a single node
  @Test func aLargeFolder_withKillsInBetween() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/top")
      try await a.create(1_500, in: "/top")
      try await a.sync()
      let before = try await a.tree(versions: false)
      try await a.delete("/top")
      try await a.sync()
      let requests = a.network.count("POST", Routes.records)
      let deleted = try #require(try await Self.trash(a).first)
      #expect(deleted.nodeCount == 1_501)
      #expect(try await Self.restore(deleted, a).restored == 1_501)
      #expect(a.network.count("POST", Routes.records) - requests <= 4)
      let commits = try world.server.commitCount()
      for _ in 0..<4 {
        a.network.fail(.loseResponse, "POST", Routes.commits, times: 1)
        do { try await a.push() } catch is TransportError {}
        try await a.relaunch()
      }
      try await world.settle(a)
      #expect(try world.server.commitCount() == commits + 2)
      #expect(try await a.tree(versions: false) == before)
      let b = try await world.device("B")
      try await world.settle(a, b)
      #expect(try await b.tree(versions: false) == before)
    }
  }

  /// - the quota has released the content of one of two deleted files
  /// => the folder comes back with the other one
  @Test func whatTheQuotaHasReleasedStaysGone() async throws {
    try await TestWorld.run(quotaBytes: 300_000) { world in
      let a = try await world.device("A")
      try await a.create("/d")
      try await a.create("/d/small", "one")
      try await a.create(
        "/d/large", String(decoding: EndToEndTests.bytes(150_000, seed: 1).map { $0 % 26 + 97 }, as: UTF8.self))
      try await a.sync()
      try await a.delete("/d")
      try await a.sync()
      try await a.create(
        "/next", String(decoding: EndToEndTests.bytes(200_000, seed: 2).map { $0 % 26 + 97 }, as: UTF8.self))
      try await a.sync()
      let result = try await Self.restore(try #require(try await Self.trash(a).first), a)
      #expect((result.restored, result.left) == (2, 1) || (result.restored, result.left) == (1, 2))
      try await a.sync()
      #expect(try await a.queueCount() == 0)
      #expect(try await a.tree(versions: false).contains("/d"))
      #expect(try await !a.tree(versions: false).contains("/d/large"))
    }
  }

  @Test func afterTheRetention_nothingIsListed() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await Self.seed(a)
      try await a.delete("/d")
      try await a.sync()
      let deleted = try #require(try await Self.trash(a).first)
      world.clock.advance(by: .seconds(31 * 24 * 3_600))
      try await world.server.collect()
      try await a.sync()
      #expect(try await Self.trash(a).isEmpty)
      await #expect { try await Self.restore(deleted, a) } throws: { ($0 as? ServerError)?.code == .gone }
    }
  }

  /// - a row with a number that 200,000 versions separate from the newest one
  @Test func theOldestAreForgotten() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      for path in ["/first", "/second", "/third"] { try await a.create(path) }
      try await a.sync()
      for path in ["/first", "/second"] {
        try await a.delete(path)
        try await a.sync()
      }
      #expect(try await Self.trash(a).map(\.name) == ["second", "first"])
      try await a.database.write { transaction in
        try transaction.database.execute(sql: "UPDATE zdc_former SET id = 200000 WHERE id = 2")
      }
      try await a.delete("/third")
      try await a.sync()
      #expect(try await Self.trash(a).map(\.name) == ["third", "second"])
    }
  }

  @Test func pagesAreInTheOrderOfDeletions() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let names = (1...7).map { "n\($0)" }
      for name in names { try await a.create("/\(name)", name) }
      try await a.sync()
      for name in names {
        try await a.delete("/\(name)")
        try await a.sync()
      }
      var (found, last): ([String], ZDCDeletedNode?) = ([], nil)
      while true {
        let page = try await a.syncManager.deletedNodes(localUserID: try a.localUserID, after: last, limit: 3)
        guard let oldest = page.last else { break }
        (found, last) = (found + page.map(\.name), oldest)
      }
      #expect(found == names.reversed())
    }
  }

  /// - Bob, a member, deletes a file of Alice's; Carol joins afterwards; Bob is removed
  /// => Alice restores it; Carol does not see it; Bob sees nothing any more
  @Test func membersSeeWhatWasDeletedInTheirTime() async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let (alice, bob, carol) = (people.alice, people.bob, people.carol)
      for path in ["/list", "/other"] { try await alice.create(path) }
      try await alice.create("/list/milk", "one")
      try await alice.share(with: bob)
      try await alice.sync()
      try await bob.accept(alice)
      world.clock.advance(by: .seconds(1))
      try await bob.delete(try bob.path("/list/milk", of: alice))
      try await bob.sync()
      try await alice.sync()
      #expect(try await Self.trash(bob).map(\.name) == ["milk"])
      world.clock.advance(by: .seconds(1))
      try await alice.share(with: carol)
      try await alice.sync()
      try await carol.accept(alice)
      #expect(try await Self.trash(carol).isEmpty)
      let deleted = try #require(try await Self.trash(alice).first)
      #expect(deleted.deletedByID == (try bob.localUserID))
      try await alice.unshare(with: bob)
      try await alice.sync()
      #expect(try await Self.trash(bob).isEmpty)
      try await Self.restore(deleted, alice)
      try await alice.sync()
      try await carol.sync()
      try await carol.download()
      #expect(try await carol.tree(of: alice) == "/list\n/list/milk  \"one\"\n/other")
      try await bob.sync()
      #expect(try await bob.tree(of: alice) == nil)
    }
  }

  /// A server that withholds the record of a deleted node that it says it has, or alters it.
  @Test(arguments: ["altered", "withheld"]) func aServerThatWithholds(lie: String) async throws {
    try await TestWorld.run { world in
      let hostile = HostileServer(world.server)
      let a = try await TestDevice("A", server: world.server, clock: world.clock, through: hostile)
      _ = try await a.createAccount()
      try await Self.seed(a)
      try await a.delete("/d")
      try await a.sync()
      let deleted = try #require(try await Self.trash(a).first)
      hostile.tell(lie == "altered" ? .turnBit(.record, at: 60) : .withhold(.record), to: "A")
      #expect(try await Self.trash(a).isEmpty)
      await #expect { try await Self.restore(deleted, a) } throws: { ($0 as? ZDCSecurityError)?.code == .objectMissing }
      #expect(hostile.liesTold > 0)
      #expect(try await a.tree(versions: false) == "/note  \"three\"\n/other")
      hostile.stopTampering()
      try await Self.restore(deleted, a)
      try await world.settle(a)
      #expect(try await a.tree(versions: false) == Self.tree)
      try await a.close()
    }
  }
}

extension Optional where Wrapped: Sendable {
  fileprivate func asyncMap<Value>(_ body: (Wrapped) async throws -> Value) async rethrows -> Value? {
    guard let self else { return nil }
    return try await body(self)
  }
}
