import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The callbacks for others' changes, and what an app knows without further requests.
@Suite struct PullPromiseTests {
  private static let contentRoutes = [
    ("POST", "/v1/trees/{treeID}/zones/{zoneRoot}/contents"),
    ("GET", "/v1/trees/{treeID}/nodes/{nodeID}/blobs/{blobID}"),
  ]

  @Test func everythingButContent_isThereAfterAPull() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/d", "")
      try await a.create("/d/f", TestContent(data: Data("text".utf8), thumbnail: Data([1, 2, 3])))
      try await a.sync()
      try await b.pull()
      let (mine, theirs) = (try await a.node("/d/f"), try await b.node("/d/f"))
      #expect(theirs.name == "f")
      #expect(theirs.isUploaded && theirs.cloudID == mine.cloudID && theirs.uuid != mine.uuid)
      #expect(!theirs.shareList.isEmpty && theirs.shareList == mine.shareList)
      #expect(theirs.eTag_rcrd != nil && theirs.eTag_rcrd == mine.eTag_rcrd)
      #expect(theirs.eTag_data != nil && theirs.eTag_data == mine.eTag_data)
      #expect(theirs.lastModified == world.clock.now && mine.lastModified == world.clock.now)
      #expect(theirs.cloudDataInfo?.dataSize == 4 && theirs.cloudDataInfo?.thumbnailSize == 3)
      for (method, route) in Self.contentRoutes { #expect(b.network.count(method, route) == 0) }
    }
  }

  /// - the app deletes its copies to save space
  /// => nothing is lost: it can download them again
  @Test func aDeletedLocalCopy_isDownloadedAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/small", "1")
      try await a.create("/large", TestContent(data: EndToEndTests.bytes(100_000, seed: 1)))
      try await a.sync()
      try await b.pull()
      for round in 1...2 {
        #expect(try await b.download() == 2, "round \(round)")
        #expect(try await b.content(of: "/large")?.data.count == 100_000)
        try await b.write { transaction, _ in transaction.removeAllObjects(inCollection: TestContent.collection) }
        #expect(try await b.content(of: "/large") == nil)
      }
      #expect(try await b.queueCount() == 0)
    }
  }

  // MARK: One call for each change

  @Test func recordAndContentChanged_areTwoCalls() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await world.settle(a, b)
      _ = b.recorder.take()
      try await a.write { _, cloud in
        var node = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: ["f"])))
        node.burnDate = Date(timeIntervalSince1970: 4_000_000_000)
        try cloud.modifyNode(node)
      }
      try await a.edit("/f", "2")
      try await a.sync()
      try await b.pull()
      #expect(b.recorder.take().sorted() == ["modified data /f", "modified treesystem /f"])
      #expect(try await b.node("/f").burnDate == Date(timeIntervalSince1970: 4_000_000_000))
    }
  }

  /// - A changes a burn date, and B the content, the name, or both before that is sent
  /// => both hold
  @Test func recordChangedHere_contentOrNameElsewhere() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      let date = Date(timeIntervalSince1970: 4_000_000_000)
      for number in 1...3 {
        try await a.create("/f\(number)", "1")
        try await world.settle(a, b)
        try await a.write { _, cloud in
          var node = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: ["f\(number)"])))
          node.burnDate = date
          try cloud.modifyNode(node)
        }
        if number != 2 { try await b.edit("/f\(number)", "2") }
        if number > 1 { try await b.rename("/f\(number)", to: "g\(number)") }
        try await b.push()
        try await world.settle(a, b)
        for device in [a, b] {
          let node = try await device.node(number > 1 ? "/g\(number)" : "/f\(number)")
          #expect(node.burnDate == date, "\(number)")
        }
      }
    }
  }

  /// What A changes, what B changes before that is sent, and what both have in the end.
  struct BurnDates: CustomTestStringConvertible {
    let testDescription: String
    var mine: (date: Date?, name: String?) = (nil, nil)
    var theirs: (date: Date?, name: String?, text: String?) = (nil, nil, nil)
    let result: (date: Date, name: String)

    static let first = Date(timeIntervalSince1970: 4_000_000_000)
    static let second = Date(timeIntervalSince1970: 4_100_000_000)
    static let all = [
      BurnDates(
        testDescription: "date and name, content", mine: (first, "mine"), theirs: (nil, nil, "2"),
        result: (first, "mine")),
      BurnDates(
        testDescription: "date and name, name", mine: (first, "mine"), theirs: (nil, "theirs", nil),
        result: (first, "theirs")),
      BurnDates(
        testDescription: "name, date", mine: (nil, "mine"), theirs: (second, nil, nil), result: (second, "mine")),
      BurnDates(
        testDescription: "date, date", mine: (first, nil), theirs: (second, nil, nil), result: (first, "f")),
      BurnDates(
        testDescription: "date, date and name", mine: (first, nil), theirs: (second, "theirs", "2"),
        result: (first, "theirs")),
    ]
  }

  /// - A changes a burn date, a name, or both in one operation, and B something else of the node before that is sent
  /// => no burn date is lost; of two, A's holds
  @Test(arguments: BurnDates.all) func recordChangedHere_andElsewhere(story: BurnDates) async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/f", "1")
      try await world.settle(a, b)
      try await Self.change(a, story.mine.date, story.mine.name)
      try await Self.change(b, story.theirs.date, story.theirs.name)
      if let text = story.theirs.text { try await b.edit("/\(story.theirs.name ?? "f")", text) }
      try await b.push()
      try await world.settle(a, b)
      let fresh = try await world.device("C")
      try await world.settle(fresh)
      for device in [a, b, fresh] {
        #expect(try await device.node("/\(story.result.name)").burnDate == story.result.date)
      }
    }
  }

  private static func change(_ device: TestDevice, _ date: Date?, _ name: String?) async throws {
    guard date != nil || name != nil else { return }
    try await device.write { _, cloud in
      var node = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: ["f"])))
      if let date { node.burnDate = date }
      if let name { node.name = name }
      try cloud.modifyNode(node)
    }
  }

  @Test func movedAndRenamedTogether_isOneCall() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/d")
      try await a.create("/f", "1")
      try await world.settle(a, b)
      _ = b.recorder.take()
      try await a.move("/f", to: "/d/g")
      try await a.sync()
      try await b.pull()
      #expect(b.recorder.take() == ["moved /f -> /d/g"])
    }
  }

  /// - while B is away /f is created, edited twice and renamed, /t created and deleted, /h edited twice and renamed
  /// => B is notified of the current state of each node, once
  @Test func manyChangesOfOneNode_areReportedAsOne() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/h", "0")
      try await world.settle(a, b)
      _ = b.recorder.take()
      let steps: [@Sendable () async throws -> Void] = [
        { try await a.create("/f", "0") }, { try await a.edit("/f", "1") }, { try await a.edit("/f", "2") },
        { try await a.rename("/f", to: "g") }, { try await a.create("/t") }, { try await a.delete("/t") },
        { try await a.edit("/h", "1") }, { try await a.rename("/h", to: "i") }, { try await a.edit("/i", "2") },
      ]
      for step in steps {
        try await step()
        try await a.sync()
      }
      try await b.pull()
      #expect(b.recorder.take().sorted() == ["modified data /i", "moved /h -> /i", "new /g"])
    }
  }

  // MARK: Deletions

  @Test func theTimeOfADeletion_isTheServers_orUnknown() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let app = ScriptedDelegate()
      try await a.create("/known")
      try await a.create("/unknown")
      try await a.sync()
      try await world.device("B", delegate: app) { b in
        try await b.pull()
        world.clock.advance(by: .seconds(60))
        let time = world.clock.now
        try await a.delete("/known")
        try await a.sync()
        try await a.delete("/unknown")
        try await a.sync()
        try VerificationTests.server(world) { db in
          try db.execute(sql: "UPDATE commits SET received_ms = 0 WHERE seq = (SELECT MAX(seq) FROM commits)")
        }
        try await b.pull()
        #expect(app.deletions == ["/known": time, "/unknown": nil] as [String: Date?])
      }
    }
  }

  // MARK: Unreadable nodes

  /// - a client with the account's keys stores a version of /kept that no device can open, and a good node beside it
  /// => /kept stays as it was and keeps its name; everything else continues
  @Test func aNodeThatCannotBeRead_keepsItsPlace_andStopsNothing() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      // A fresh device cannot read it either.
      world.skipsComparison()
      for device in [a, b] {
        world.expectsSecurityErrors(["recordAuthFailed"], on: device)
        world.mayWait(device)
      }
      try await a.create("/kept", "1")
      try await a.create("/other", "2")
      try await world.settle(a, b)
      _ = b.recorder.take()
      let user = try #require(UserID(text: try a.localUserID))
      let rogue = try await RogueWriter(words: try #require(world.words()), user: user, server: world.server)
      let home = try await rogue.home()
      let foreign = try home.node("other").record.fields.sealedPrivate
      let bad = RogueZone.record(try RecordSealer.seal(try home.draft(next: "kept"))) { $0.sealedPrivate = foreign }
      let good = try RecordSealer.seal(try home.draft(new: "beside"))
      try await rogue.push(try home.commit(putting: bad, good), [bad, good])

      try await b.sync()
      #expect(b.recorder.take() == ["new /beside"])
      #expect(try await b.node("/kept").quarantine != nil)
      #expect(try await b.content(of: "/kept")?.data == Data("1".utf8))
      await #expect(throws: ZDCCloudError.self) { try await b.create("/kept", "another") }
      try await b.edit("/other", "3")
      try await b.create("/new", "4")
      try await b.sync()
      #expect(try await b.queueCount() == 0)
      try await a.sync()
    }
  }
}
