import Foundation
import Testing
import ZDCTreesystem

@testable import ZDCClientStore
@testable import ZeroDarkCloud

@Suite struct NodeManagerTests {
  let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  @Test func lookups_findTheSameNodeEveryWay() async throws {
    try await device.create("/a", "/a/b")
    let userID = device.userID
    try await device.read { cloud in
      let manager = ZDCNodeManager.sharedInstance
      let (transaction, treeID) = (cloud.transaction, cloud.treeID)
      let (a, b) = (try cloud.at("/a"), try cloud.at("/a/b"))
      let path = ZDCTreesystemPath(pathComponents: ["a", "b"])
      #expect(manager.path(for: b, transaction: transaction) == path)
      #expect(manager.findNode(withName: "b", parentID: a.uuid, transaction: transaction) == b)
      #expect(
        manager.findNode(withPath: path, localUserID: userID, treeID: treeID, transaction: transaction) == b)
      #expect(
        manager.findNode(withCloudID: b.cloudID, localUserID: userID, treeID: treeID, transaction: transaction)
          == b)
      let home = try #require(cloud.trunkNode(.home))
      #expect(home.trunk == .home)
      #expect(manager.trunkNode(for: b, transaction: transaction) == home)
      #expect(
        manager.trunkNode(forLocalUserID: userID, treeID: treeID, trunk: .home, transaction: transaction) == home)
      #expect(manager.parentNodeIDs(for: b, transaction: transaction) == [home.uuid, a.uuid])
      #expect(manager.parentNodeIDs(for: home, transaction: transaction) == [])
      #expect(manager.isNode(b.uuid, aDescendantOf: home.uuid, transaction: transaction))
      #expect(!manager.isNode(a.uuid, aDescendantOf: a.uuid, transaction: transaction))
      #expect(manager.hasChildren(a.uuid, transaction: transaction))
      #expect(cloud.hasChildren(b.uuid) == false)
      #expect(cloud.parentNode(b) == a)
      #expect(cloud.parentNode(home) == nil)
      #expect(cloud.targetNode(b) == b)
      #expect(cloud.node(name: "b", parentID: a.uuid) == b)
      #expect(cloud.user(id: userID)?.isLocal == true)
      #expect(cloud.user(id: "nobody") == nil)
    }
  }

  /// In the original API, recursion could not be prevented, and stopping ended only one level.
  @Test func theOriginalsForms_canSkipABranch_orStop() async throws {
    try await device.create("/a", "/a/1", "/b", "/b/2", "/b/2/3", "/c")
    try await device.read { cloud in
      let home = try #require(cloud.trunkNode(.home))
      let manager = ZDCNodeManager.sharedInstance
      var seen: [String] = []
      manager.recursiveIterateNodes(withParentID: home.uuid, transaction: cloud.transaction) {
        node, path, recurseInto, stop in
        #expect(recurseInto)
        seen.append((path + [node]).compactMap(\.name).joined(separator: "/"))
        recurseInto = node.name != "a"
        stop = node.name == "3"
      }
      #expect(seen == ["a", "b", "b/2", "b/2/3"])
      var ids: [[String]] = []
      manager.recursiveIterateNodeIDs(withParentID: home.uuid, transaction: cloud.transaction) {
        nodeID, path, recurseInto, stop in
        ids.append(path + [nodeID])
        recurseInto = false
        stop = ids.count == 2
      }
      #expect(ids == [[try cloud.at("/a").uuid], [try cloud.at("/b").uuid]])
      var children: [String] = []
      manager.iterateNodeIDs(withParentID: home.uuid, transaction: cloud.transaction) { nodeID, stop in
        children.append(nodeID)
        stop = children.count == 2
      }
      #expect(children == ids.map { $0[0] })
    }
  }

  @Test func lists_andFreeNames() async throws {
    try await device.create("/a", "/a/b", "/a/b 2")
    let userID = device.userID
    try await device.read { cloud in
      let manager = ZDCNodeManager.sharedInstance
      let all = Set(try ["/a", "/a/b", "/a/b 2"].map { try cloud.at($0).uuid })
      #expect(Set(manager.allNodeIDs(withLocalUserID: userID, transaction: cloud.transaction)) == all)
      #expect(
        Set(manager.allNodeIDs(withLocalUserID: userID, treeID: cloud.treeID, transaction: cloud.transaction))
          == all)
      #expect(
        manager.allNodeIDs(withLocalUserID: userID, treeID: "another.tree", transaction: cloud.transaction) == [])
      #expect(manager.allUploadedNodeIDs(withLocalUserID: userID, transaction: cloud.transaction) == [])
      #expect(manager.allNodeIDs(withLocalUserID: "nobody", transaction: cloud.transaction) == [])
      var b = try cloud.at("/a/b")
      #expect(manager.resolveNamingConflict(b, transaction: cloud.transaction) == "b")
      b = ZDCNode(localUserID: userID)
      b.parentID = try cloud.at("/a").uuid
      b.name = "b"
      #expect(manager.resolveNamingConflict(b, transaction: cloud.transaction) == "b 3")
    }
  }

  @Test func recursion_canSkipABranch_orStop() async throws {
    try await device.create("/a", "/a/1", "/b", "/b/2", "/c")
    try await device.read { cloud in
      let home = try #require(cloud.trunkNode(.home))
      var seen: [String] = []
      ZDCNodeManager.sharedInstance.recursiveEnumerateNodes(
        withParentID: home.uuid, transaction: cloud.transaction
      ) { node, parents, recurseInto, stop in
        seen.append((parents + [node]).compactMap(\.name).joined(separator: "/"))
        recurseInto = node.name != "a"
        stop = node.name == "2"
      }
      #expect(seen == ["a", "b", "b/2"])
    }
  }

  @Test func childrenBeyondAPage_areAllSeen_andStopStops() async throws {
    try await device.write { cloud in
      for index in 0..<1_203 { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(index)"])) }
    }
    try await device.read { cloud in
      let home = try #require(cloud.trunkNode(.home)).uuid
      var names: [String] = []
      ZDCNodeManager.sharedInstance.enumerateNodes(withParentID: home, transaction: cloud.transaction) { node, _ in
        names.append(node.name ?? "")
      }
      #expect(names == (0..<1_203).map(String.init))
      var count = 0
      ZDCNodeManager.sharedInstance.enumerateNodes(withParentID: home, transaction: cloud.transaction) { _, stop in
        count += 1
        stop = count == 501
      }
      #expect(count == 501)
    }
  }
}

@Suite struct ExplainTests {
  let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  @Test func newNode_isReady_itsContentGoesAlong_andItsChildToo() async throws {
    try await device.create("/a", "/a/b")
    try await device.read { cloud in
      let explained = try #require(cloud.explain(nodeID: try cloud.at("/a/b").uuid))
      #expect(!explained.isUploaded && !explained.isInSync)
      #expect(explained.operations.map(\.kind) == ["create", "putData"])
      #expect(explained.operations.map(\.reason) == [.ready, .ready])
    }
  }

  @Test func waitingOperation_namesWhatItWaitsFor_andTheRootOfIt() async throws {
    try await device.create("/a", "/a/b")
    try await device.write { cloud in
      let create = try #require(try cloud.queue().first)
      try cloud.operations.setState(.pending, reason: .deletedRemotely, id: create.id)
    }
    try await device.read { cloud in
      let queue = cloud.explainQueue()
      #expect(queue.map(\.reason) == [.deletedRemotely] + Array(repeating: .waitingForOperation, count: 3))
      #expect(queue[3].waitsFor == [queue[2].uuid])
      #expect(queue[3].rootCauses == [queue[0].uuid])
      #expect(queue[3].detail == queue[2].uuid)
      #expect(cloud.explain(operationUUID: queue[3].uuid) == queue[3])
      #expect(queue[0].unblockedBy.contains("the app"))
    }
  }

  @Test func pauseUntilLater_isReportedWithItsTime() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      var operation = try #require(try cloud.queue().first)
      operation.reason = .backoff
      operation.notBeforeMs = 1_700_000_600_000
      operation.attempts = 3
      try cloud.operations.update(operation)
    }
    try await device.read { cloud in
      let explained = try #require(cloud.explainQueue().first)
      #expect(explained.reason == .backoff)
      #expect(explained.attempts == 3)
      #expect(explained.notBefore == Date(timeIntervalSince1970: 1_700_000_600))
    }
  }

  /// The pause is over, but there is no free space yet: the operation is not reported as ready before the next attempt.
  @Test func fullAccount_isReported_alsoAfterThePause() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      var operation = try #require(try cloud.queue().first)
      operation.reason = .overQuota
      operation.reasonDetail = "quotaExceeded"
      operation.notBeforeMs = 5
      operation.attempts = 1
      try cloud.operations.update(operation)
    }
    try await device.read { cloud in
      let explained = try #require(cloud.explainQueue().first)
      #expect(explained.reason == .overQuota && explained.detail == "quotaExceeded")
      #expect(explained.notBefore == Date(timeIntervalSince1970: 0.005))
      #expect(cloud.explainQueue().dropFirst().allSatisfy { $0.reason == .ready })
    }
  }

  /// The log names a version of /a whose record has not arrived yet. The record of /b has been read.
  @Test func changeOfANodeWithAnUnreadVersion_waitsForThePull() async throws {
    try await device.create("/a", "/b")
    try await device.pretendAllPushed()
    try await device.write { cloud in
      for path in ["/a", "/b"] { try cloud.pretendLogged(try cloud.row(path: path), isRead: path == "/b") }
      try cloud.modifyNode(try cloud.at("/b"))
    }
    try await device.read { cloud in
      let (a, b) = (try #require(cloud.explain(nodeID: try cloud.at("/a").uuid)), try cloud.at("/b").uuid)
      #expect(a.isAwaitingPull && !a.isInSync && a.operations.isEmpty)
      #expect(cloud.explain(nodeID: b)?.operations.map(\.reason) == [.ready])
    }
    try await device.write { cloud in try cloud.modifyNode(try cloud.at("/a")) }
    try await device.read { cloud in
      let a = try cloud.at("/a").uuid
      #expect(cloud.explain(nodeID: a)?.operations.map(\.reason) == [.notPulledYet])
    }
  }

  @Test func frozenTree_isTheReasonForAllOfIt() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      let row = try cloud.row(path: "/a")
      var zone = try #require(try cloud.transaction.zones.zone(id: row.zone))
      zone.frozen = .zoneForkDetected
      try cloud.transaction.zones.update(zone)
    }
    try await device.read { cloud in
      let node = try cloud.at("/a")
      #expect(cloud.explainQueue().allSatisfy { $0.reason == .zoneFrozen && $0.detail == "zoneForkDetected" })
      #expect(cloud.explain(nodeID: node.uuid)?.zoneFrozen == "zoneForkDetected")
    }
  }

  @Test func pushedNode_isInSync_andUnknownOnesHaveNoAnswer() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    try await device.read { cloud in
      let node = try cloud.at("/a")
      #expect(cloud.explain(nodeID: node.uuid)?.isInSync == true)
      #expect(cloud.explain(nodeID: "nobody") == nil)
      #expect(cloud.explain(operationUUID: "nothing") == nil)
      #expect(cloud.explainQueue().isEmpty)
    }
  }

  @Test func everyReason_hasAnAnswer() {
    for reason in OperationRow.Reason.allCases {
      #expect(ZDCWaitReason(reason).rawValue == "\(reason)")
      #expect(!ZDCWaitReason(reason).unblockedBy.isEmpty)
    }
  }
}
