import Foundation
import Testing
import ZDCTreesystem

@testable import ZeroDarkCloud

@Suite struct CloudUploadTests {
  let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  private func changeset(_ text: String) -> ZDCChangeset { ZDCChangeset(encoded: Data(text.utf8)) }

  /// Gives the node new content in the cloud, as a pull would leave it, and returns its ETag.
  private func otherContentArrives(_ path: String) async throws -> String {
    try await device.write { cloud in
      try cloud.pretendPushed(try cloud.row(path: path), dataVersion: 2)
      let eTag = try cloud.at(path).eTag_data
      return try #require(eTag)
    }
  }

  @Test func upload_isBasedOnTheKnownVersion_andKeepsItsChangeset() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    let changes = changeset("one")
    try await device.write { cloud in
      let node = try cloud.at("/a")
      let operation = try #require(cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: changes))
      #expect(operation.eTag == node.eTag_data)
      #expect(operation.putType == .node_Data)
      #expect(node.cloudDataInfo?.dataSize == 3)
      #expect(node.lastModified == Date(timeIntervalSince1970: 2))
    }
    try await device.read { cloud in
      let node = try cloud.at("/a")
      #expect(cloud.pendingChangesets(forNodeID: node.uuid) == [changes])
    }
  }

  @Test func twoEdits_areTwoOperations_theSecondAfterTheFirst() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    let (one, two) = (changeset("one"), changeset("two"))
    try await device.write { cloud in
      let node = try cloud.at("/a")
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: one)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: two)
      #expect(cloud.pendingChangesets(forNodeID: node.uuid) == [one, two])
    }
    #expect(try await device.queue() == "1 putData /a\n2 putData /a after 1")
  }

  @Test func editAfterOthersChangedTheContent_staysBasedOnWhatTheAppHas() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    let old = try await device.write { cloud in
      cloud.queueDataUpload(forNodeID: try cloud.at("/a").uuid, withChangeset: nil)?.eTag
    }
    let new = try await otherContentArrives("/a")
    let second = try await device.write { cloud in
      cloud.queueDataUpload(forNodeID: try cloud.at("/a").uuid, withChangeset: nil)?.eTag
    }
    #expect(second == old)
    #expect(second != new)
  }

  @Test func mergedVersion_rebasesAllQueuedUploads_andEndsTheHold() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    try await device.write { cloud in
      let node = try cloud.at("/a")
      let held = try #require(cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil))
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
      let row = try #require(try cloud.operations.operation(uuid: held.uuid))
      try cloud.operations.setState(.pending, reason: .conflictHeld, id: row.id)
    }
    let new = try await otherContentArrives("/a")
    try await device.write { cloud in
      let node = try cloud.at("/a")
      #expect(cloud.explain(nodeID: node.uuid)?.operations.map(\.reason) == [.conflictHeld, .waitingForOperation])
      cloud.didMergeData(withETag: new, forNodeID: node.uuid)
      #expect(cloud.pendingOperations(forNodeID: node.uuid).map(\.eTag) == [new, new])
      #expect(cloud.explain(nodeID: node.uuid)?.operations.map(\.reason) == [.ready, .ready])
    }
  }

  @Test func skippedUploads_go_theRecordStays() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      let node = try cloud.at("/a")
      cloud.skipDataUploads(forNodeID: node.uuid)
      #expect(!cloud.hasPendingDataUploads(forNodeID: node.uuid))
    }
    #expect(try await device.queue() == "1 create /a")
  }

  @Test func unknownNodesAndTrunks_haveNoUpload() async throws {
    try await device.write { cloud in
      #expect(cloud.queueDataUpload(forNodeID: "nobody", withChangeset: nil) == nil)
      let trunk = try #require(cloud.trunkNode(.home))
      #expect(cloud.queueDataUpload(forNodeID: trunk.uuid, withChangeset: nil) == nil)
    }
  }

  @Test func nodeKeptAfterARemoteDelete_isQueuedAgainWithItsParents() async throws {
    try await device.create("/a", "/a/b", "/c")
    try await device.write { cloud in
      for operation in try cloud.queue() {
        try cloud.operations.setState(.pending, reason: .deletedRemotely, id: operation.id)
      }
    }
    try await device.write { cloud in
      let b = try cloud.at("/a/b")
      #expect(try cloud.insertNode(b) == b)
      #expect(cloud.explain(nodeID: try cloud.at("/a").uuid)?.operations.map(\.reason) == [.ready, .ready])
      #expect(cloud.explain(nodeID: b.uuid)?.operations.allSatisfy { $0.reason == .ready } == true)
      let c = cloud.explain(nodeID: try cloud.at("/c").uuid)
      #expect(c?.operations.map(\.reason) == [.deletedRemotely, .deletedRemotely])
      cloud.queueDataUpload(forNodeID: try cloud.at("/c").uuid, withChangeset: nil)
      let kept = try #require(cloud.explain(nodeID: try cloud.at("/c").uuid))
      #expect(kept.operations.allSatisfy { $0.reason != .deletedRemotely })
    }
  }

  @Test func operationsCanBeOrdered_butNotInARing() async throws {
    try await device.create("/a", "/b")
    try await device.write { cloud in
      var a = cloud.pendingOperations(forNodeID: try cloud.at("/a").uuid)[0]
      var b = cloud.pendingOperations(forNodeID: try cloud.at("/b").uuid)[0]
      a.addDependency(b)
      a.priority = 5
      try cloud.modifyOperation(a)
      b.addDependency(a)
      #expect(cloudCode { try cloud.modifyOperation(b) } == .invalidParameter)
      let stored = try #require(cloud.operation(uuid: a.uuid))
      #expect(stored.priority == 5)
      #expect(stored.dependencies == [b.uuid])
    }
    #expect(try await device.queue().hasPrefix("1 create /a after 3"))
  }

  @Test func putsOfAConversation_areFoundByTheirParent() async throws {
    try await device.create("/chat", "/chat/1", "/chat/2", "/other")
    try await device.read { cloud in
      let puts = cloud.pendingPutOperations(withParentID: try cloud.at("/chat").uuid)
      let ids = try [cloud.at("/chat/1").uuid, cloud.at("/chat/2").uuid]
      #expect(puts.map(\.nodeID) == [ids[0], ids[0], ids[1], ids[1]])
    }
  }
}
