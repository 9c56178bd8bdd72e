import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Links, tags and download marks over a node's life: relaunched, changed by others, deleted elsewhere and kept here.
@Suite struct LinkPromiseTests {
  private static let key = "k"

  /// Attaches an object, a link, two tags and a mark to the node.
  private static func hangThings(on path: [String], of device: TestDevice) async throws -> ZDCNode {
    try await device.write { transaction, cloud in
      let node = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: path)))
      try cloud.linkNodeID(node.uuid, toKey: key, inCollection: "objects")
      transaction.setObject(TestContent("object"), forKey: key, inCollection: "objects")
      cloud.setTag("text", forNodeID: node.uuid, withIdentifier: "a")
      cloud.setTag(7, forNodeID: node.uuid, withIdentifier: "b")
      cloud.markNodeAsNeedsDownload(node.uuid, components: [.data, .thumbnail])
      return node
    }
  }

  private static func expectThings(
    on uuid: String, of device: TestDevice, location: SourceLocation = #_sourceLocation
  ) async throws {
    try await device.write { _, cloud in
      #expect(cloud.linkedNodeID(forKey: key, inCollection: "objects") == uuid, sourceLocation: location)
      #expect(cloud.linkedCollectionAndKey(forNodeID: uuid)?.key == key, sourceLocation: location)
      #expect(cloud.tag(forNodeID: uuid, withIdentifier: "a") as? String == "text", sourceLocation: location)
      #expect(cloud.tag(forNodeID: uuid, withIdentifier: "b") as? Int == 7, sourceLocation: location)
      #expect(cloud.nodeIsMarkedAsNeedsDownload(uuid, components: .thumbnail), sourceLocation: location)
      #expect(cloud.nodeIDsMarkedAsNeedsDownload() == [uuid], sourceLocation: location)
    }
  }

  /// => they survive a relaunch, a rename by others and a new version of the content, and no other device sees them
  @Test func linksTagsAndMarks_stayWithTheirNode() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/d")
      try await a.create("/f", "1")
      try await world.settle(a, b)
      let node = try await Self.hangThings(on: ["f"], of: b)
      try await b.relaunch()
      try await Self.expectThings(on: node.uuid, of: b)
      try await a.move("/f", to: "/d/g")
      try await a.edit("/d/g", "2")
      try await a.sync()
      try await b.pull()
      try await Self.expectThings(on: node.uuid, of: b)
      #expect(try await b.node("/d/g").uuid == node.uuid)
      let other = try await a.node("/d/g")
      try await a.write { _, cloud in
        #expect(cloud.tag(forNodeID: other.uuid, withIdentifier: "a") == nil)
        #expect(!cloud.isNodeLinked(other.uuid) && cloud.nodeIDsMarkedAsNeedsDownload() == [])
      }
      #expect(try await b.queueCount() == 0)
    }
  }

  /// - others delete the node while a change of it is queued here, and the app keeps it
  /// => the cloud has another node, the app the same one: uuid, link, tags and marks stay
  @Test func aNodeKeptAfterARemoteDelete_keepsItsLinkTagsAndMarks() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/d")
      try await a.create("/d/f", "0")
      try await world.settle(a, b)
      let node = try await Self.hangThings(on: ["d", "f"], of: b)
      try await a.delete("/d")
      try await a.sync()
      try await b.edit("/d/f", "B")
      try await b.sync()
      try await Self.expectThings(on: node.uuid, of: b)
      try await b.edit("/d/f", "again")
      try await world.settle(b, a)
      try await Self.expectThings(on: node.uuid, of: b)
      let kept = try await b.node("/d/f")
      #expect(kept.uuid == node.uuid && kept.cloudID != node.cloudID)
      #expect(try await a.tree(versions: false) == "/d\n/d/f  \"again\"")
    }
  }

  /// - a download of the old version ends after others stored a newer one
  /// => the mark stays until the newer one is downloaded
  @Test func aDownloadThatRacedWithANewerVersion_doesNotClearTheMark() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await world.settle(a, b)
      let old = try await b.node("/f")
      try await b.write { _, cloud in cloud.markNodeAsNeedsDownload(old.uuid, components: .all) }
      try await a.edit("/f", "2")
      try await a.sync()
      try await b.pull()
      let new = try await b.node("/f")
      try await b.write { _, cloud in
        cloud.unmarkNodeAsNeedsDownload(old.uuid, components: .all, ifETagMatches: old.eTag_data)
        #expect(cloud.nodeIsMarkedAsNeedsDownload(old.uuid, components: .data))
        cloud.unmarkNodeAsNeedsDownload(old.uuid, components: .data, ifETagMatches: new.eTag_data)
        #expect(!cloud.nodeIsMarkedAsNeedsDownload(old.uuid, components: .data))
        #expect(cloud.nodeIsMarkedAsNeedsDownload(old.uuid, components: .metadata))
      }
      try await b.relaunch()
      try await b.write { _, cloud in
        #expect(cloud.nodeIDsMarkedAsNeedsDownload(components: .thumbnail) == [old.uuid])
        #expect(cloud.nodeIDsMarkedAsNeedsDownload(components: .data) == [])
      }
    }
  }

  // MARK: Deleted elsewhere, changed here

  /// - others delete /d; here /d/way/dirty has a queued edit
  /// => the app is asked first, while everything exists; then the clean branches are deleted and announced, except for
  /// the one that the app deleted itself; the dirty node and its ancestors stay
  @Test func aDeletionThatMeetsChanges_keepsThemAndTheWayToThem() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let all = ["/d", "/d/clean", "/d/clean/x", "/d/mine", "/d/way", "/d/way/dirty", "/d/way/dirty/y", "/d/way/z"]
      for path in all { try await a.create(path, "0") }
      try await world.settle(a, b)
      try await b.edit("/d/way/dirty", "B")
      try await a.delete("/d")
      try await a.sync()
      _ = b.recorder.take()
      let seen = Seen()
      b.recorder.on(.deletedDirty) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        let there = all.filter {
          cloud.node(path: ZDCTreesystemPath($0) ?? ZDCTreesystemPath(pathComponents: [])) != nil
        }
        seen.add("\(there.count) of \(all.count)")
        try cloud.delete(try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: ["d", "mine"]))))
      }
      try await b.pull()
      #expect(seen.lines == ["8 of 8"])
      let lines = b.recorder.take()
      #expect(lines.first == "deletedDirty /d [/d/way/dirty]")
      #expect(lines.dropFirst().sorted() == ["deleted /d/clean", "deleted /d/way/dirty/y", "deleted /d/way/z"])
      #expect(
        try await b.tree(versions: false).split(separator: "\n").map { $0.split(separator: " ")[0] } == [
          "/d", "/d/way", "/d/way/dirty",
        ])
      try await b.edit("/d/way/dirty", "again")
      try await world.settle(b, a)
      #expect(a.recorder.lines("new").suffix(3) == ["new /d", "new /d/way", "new /d/way/dirty"])
    }
  }
}
