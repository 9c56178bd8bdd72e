import Foundation
import GRDB
import Testing
import ZDCTreesystem

@testable import ZDCClientStore
@testable import ZeroDarkCloud

@Suite struct CloudLinkTests {
  let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  private func linked() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      try cloud.linkNodeID(try cloud.at("/a").uuid, toKey: "k", inCollection: "notes")
      // The object may be stored after the link.
      (cloud.transaction as? ZDCReadWriteTransaction)?
        .setObject(Note(title: "milk"), forKey: "k", inCollection: "notes")
    }
  }

  @Test func link_isFoundFromBothSides() async throws {
    try await linked()
    try await device.read { cloud in
      let node = try cloud.at("/a")
      let link = try #require(cloud.linkedCollectionAndKey(forNodeID: node.uuid))
      #expect(link == ("notes", "k"))
      #expect(cloud.linkedCollection(forNodeID: node.uuid) == "notes")
      #expect(cloud.linkedKey(forNodeID: node.uuid) == "k")
      #expect(cloud.isNodeLinked(node.uuid))
      #expect(cloud.linkedNodeID(forKey: "k", inCollection: "notes") == node.uuid)
      #expect(cloud.linkedNode(forKey: "k", inCollection: "notes") == node)
      #expect((cloud.linkedObject(forNodeID: node.uuid) as? Note)?.title == "milk")
      #expect((cloud.linkedObject(forPath: ZDCTreesystemPath(pathComponents: ["a"])) as? Note)?.title == "milk")
      #expect(cloud.linkedNodeID(forKey: "k", inCollection: "other") == nil)
    }
  }

  @Test func linkedObject_takesOneStatementForTheLink_andOneForTheObject() async throws {
    try await linked()
    try await device.read { cloud in
      let id = try cloud.at("/a").uuid
      let counter = StatementCounter()
      cloud.transaction.database.trace { _ in counter.count += 1 }
      #expect(cloud.linkedObject(forNodeID: id) is Note)
      cloud.transaction.database.trace(options: [])
      #expect(counter.count == 2)
    }
  }

  @Test func linksAreOneToOne() async throws {
    try await linked()
    try await device.create("/b")
    try await device.write { cloud in
      let (a, b) = (try cloud.at("/a").uuid, try cloud.at("/b").uuid)
      try cloud.linkNodeID(a, toKey: "k", inCollection: "notes")
      #expect(cloudCode { try cloud.linkNodeID(a, toKey: "other", inCollection: "notes") } == .conflict)
      #expect(cloudCode { try cloud.linkNodeID(b, toKey: "k", inCollection: "notes") } == .conflict)
      #expect(cloudCode { try cloud.linkNodeID("none", toKey: "x", inCollection: "notes") } == .invalidParameter)
      #expect(cloud.unlinkKey("k", inCollection: "notes") == a)
      #expect(cloud.unlinkKey("k", inCollection: "notes") == nil)
      try cloud.linkNodeID(b, toKey: "k", inCollection: "notes")
    }
  }

  @Test func deletedObject_deletesItsNode_inTheCloudToo() async throws {
    try await linked()
    try await device.pretendAllPushed()
    try await device.zdc.rw.write { $0.removeObject(forKey: "k", inCollection: "notes") }
    #expect(try await device.tree() == "")
    #expect(try await device.queue() == "1 delete -")
  }

  @Test func deletedNode_leavesTheObject_andNoLink() async throws {
    try await linked()
    try await device.write { cloud in
      try cloud.delete(try cloud.at("/a"))
      #expect(cloud.linkedNodeID(forKey: "k", inCollection: "notes") == nil)
      #expect(cloud.transaction.hasObject(forKey: "k", inCollection: "notes"))
    }
    try await device.zdc.rw.write { $0.removeObject(forKey: "k", inCollection: "notes") }
    #expect(try await device.queue() == "")
  }

  @Test func duringARemoteDeleteCallback_linksAreStillFound_tagsAndNodesAreNot() async throws {
    try await linked()
    try await device.zdc.rw.write { [device] transaction in
      let cloud = try #require(device.zdc.cloudTransaction(transaction, forLocalUserID: device.userID))
      let row = try cloud.row(path: "/a")
      cloud.setTag("t", forNodeID: row.uuid, withIdentifier: "tag")
      try transaction.unlinkBeforeRemoval(of: [row], keepLookups: true)
      try transaction.nodes.deleteSubtree(of: row.id)
      #expect(cloud.linkedKey(forNodeID: row.uuid) == "k")
      #expect((cloud.linkedObject(forNodeID: row.uuid) as? Note)?.title == "milk")
      #expect(cloud.linkedNodeID(forKey: "k", inCollection: "notes") == row.uuid)
      #expect(cloud.tag(forNodeID: row.uuid, withIdentifier: "tag") == nil)
      #expect(cloud.node(id: row.uuid) == nil)
      transaction.removeObject(forKey: "k", inCollection: "notes")
      try transaction.endRemoval()
      #expect(cloud.linkedKey(forNodeID: row.uuid) == nil)
    }
    #expect(try await device.queue() == "")
  }

  // MARK: Tags

  @Test func tagsKeepTheirType() async throws {
    try await device.create("/a")
    let url = try #require(URL(string: "file:///tmp/x"))
    let date = Date(timeIntervalSince1970: 1_234.5)
    let uuid = UUID()
    try await device.write { cloud in
      let id = try cloud.at("/a").uuid
      let values: [String: any ZDCTagValue] = [
        "text": "milk", "int": 7, "big": UInt64.max, "double": 0.1, "bool": true, "data": Data([1, 2]), "url": url,
        "date": date, "uuid": uuid, "small": Int32(-3), "tiny": Int8(-1), "byte": UInt8.max,
      ]
      for (identifier, value) in values { cloud.setTag(value, forNodeID: id, withIdentifier: identifier) }
    }
    try await device.read { cloud in
      let id = try cloud.at("/a").uuid
      func tag<T>(_ name: String, _ type: T.Type) -> T? { cloud.tag(forNodeID: id, withIdentifier: name) as? T }
      #expect(tag("text", String.self) == "milk")
      #expect(tag("int", Int.self) == 7)
      #expect(tag("big", UInt64.self) == .max)
      #expect(tag("double", Double.self) == 0.1)
      #expect(tag("bool", Bool.self) == true)
      #expect(tag("data", Data.self) == Data([1, 2]))
      #expect(tag("url", URL.self) == url)
      #expect(tag("date", Date.self) == date)
      #expect(tag("uuid", UUID.self) == uuid)
      #expect(tag("small", Int32.self) == -3)
      #expect(tag("tiny", Int8.self) == -1)
      #expect(tag("byte", UInt8.self) == .max)
      #expect(tag("int", String.self) == nil)
      var seen: [String] = []
      try cloud.enumerateTags(forNodeID: id) { identifier, _, stop in
        seen.append(identifier)
        stop = seen.count == 3
      }
      #expect(seen == ["big", "bool", "byte"])
    }
  }

  @Test func tags_areReplaced_removed_andGoWithTheirNode() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      let id = try cloud.at("/a").uuid
      cloud.setTag("one", forNodeID: id, withIdentifier: "x")
      cloud.setTag("two", forNodeID: id, withIdentifier: "x")
      #expect(cloud.tag(forNodeID: id, withIdentifier: "x") as? String == "two")
      cloud.setTag(nil, forNodeID: id, withIdentifier: "x")
      #expect(cloud.tag(forNodeID: id, withIdentifier: "x") == nil)
      cloud.setTag("y", forNodeID: id, withIdentifier: "y")
      cloud.setTag("z", forNodeID: id, withIdentifier: "z")
      cloud.removeTag(forNodeID: id, withIdentifier: "y")
      #expect(cloud.tag(forNodeID: id, withIdentifier: "z") as? String == "z")
      cloud.removeAllTags(forNodeID: id)
      #expect(cloud.tag(forNodeID: id, withIdentifier: "z") == nil)
      cloud.setTag("lost", forNodeID: "nobody", withIdentifier: "x")
    }
  }

  @Test func callWithoutTry_thatTheDatabaseFails_takesTheWholeTransactionBack() async throws {
    try await device.create("/a")
    await #expect(throws: (any Error).self) {
      try await device.write { cloud in
        try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["b"]))
        try cloud.transaction.database.execute(sql: "DROP TABLE zdc_tag")
        cloud.setTag("x", forNodeID: try cloud.at("/a").uuid, withIdentifier: "x")
        #expect(cloud.tag(forNodeID: try cloud.at("/a").uuid, withIdentifier: "x") == nil)
      }
    }
    #expect(try await device.tree() == "home:/a")
    try await device.write { cloud in
      let node = try cloud.at("/a")
      cloud.setTag("x", forNodeID: node.uuid, withIdentifier: "x")
      #expect(cloud.tag(forNodeID: node.uuid, withIdentifier: "x") as? String == "x")
    }
  }

  // MARK: Download marks

  @Test func marks_addUp_anyOfThemCounts_andANewerVersionKeepsThem() async throws {
    try await device.create("/a", "/a/b")
    try await device.pretendAllPushed()
    try await device.write { cloud in
      let (a, b) = (try cloud.at("/a"), try cloud.at("/a/b"))
      cloud.markNodeAsNeedsDownload(b.uuid, components: .data)
      cloud.markNodeAsNeedsDownload(a.uuid, components: .thumbnail)
      cloud.markNodeAsNeedsDownload(a.uuid, components: .data)
      #expect(cloud.nodeIsMarkedAsNeedsDownload(a.uuid, components: .all))
      #expect(cloud.nodeIsMarkedAsNeedsDownload(a.uuid, components: [.data, .header]))
      #expect(!cloud.nodeIsMarkedAsNeedsDownload(a.uuid, components: .metadata))
      #expect(cloud.nodeIDsMarkedAsNeedsDownload() == [a.uuid, b.uuid])
      #expect(cloud.nodeIDsMarkedAsNeedsDownload(components: .thumbnail) == [a.uuid])
      cloud.unmarkNodeAsNeedsDownload(a.uuid, components: .all, ifETagMatches: "older")
      #expect(cloud.nodeIsMarkedAsNeedsDownload(a.uuid, components: .data))
      cloud.unmarkNodeAsNeedsDownload(a.uuid, components: .data, ifETagMatches: a.eTag_data)
      #expect(!cloud.nodeIsMarkedAsNeedsDownload(a.uuid, components: .data))
      #expect(cloud.nodeIsMarkedAsNeedsDownload(a.uuid, components: .thumbnail))
      cloud.unmarkNodeAsNeedsDownload(a.uuid, components: .all)
      #expect(cloud.nodeIDsMarkedAsNeedsDownload() == [b.uuid])
    }
  }
}
