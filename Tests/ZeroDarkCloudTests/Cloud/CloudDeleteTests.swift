import Foundation
import Testing
import ZDCTreesystem

@testable import ZeroDarkCloud

@Suite struct CloudDeleteTests {
  let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  @Test func unsentNodes_areDeletedWithoutATrace() async throws {
    try await device.create("/a", "/a/b")
    let operation = try await device.write { cloud in try cloud.delete(try cloud.at("/a")) }
    #expect(operation == nil)
    #expect(try await device.tree() == "")
    #expect(try await device.queue() == "")
  }

  @Test func pushedBranch_isOneDelete_andItsQueuedChangesGo() async throws {
    try await device.create("/a", "/a/b", "/c")
    try await device.pretendAllPushed()
    let node = try await device.read { try $0.at("/a") }
    let operation = try await device.write { cloud in
      cloud.queueDataUpload(forNodeID: try cloud.at("/a/b").uuid, withChangeset: nil)
      try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["a", "new"]))
      return try cloud.delete(node)
    }
    #expect(operation?.type == .deleteNode)
    #expect(operation?.cloudID == node.cloudID)
    #expect(operation?.nodeID == node.uuid)
    #expect(try await device.tree() == "home:/c")
    #expect(try await device.queue() == "1 delete -")
  }

  @Test func nodeThatWasMovedInAndNotSent_isDeletedWhereTheCloudHasIt() async throws {
    try await device.create("/a", "/n", "/n/child")
    try await device.pretendAllPushed()
    let (a, n) = try await device.read { (try $0.at("/a"), try $0.at("/n")) }
    try await device.write { cloud in
      try cloud.moveNode(n, to: ZDCTreesystemPath(pathComponents: ["a", "n"]))
      try cloud.delete(a)
    }
    let deleted = try await device.read { Set($0.pendingOperations().map(\.cloudID)) }
    #expect(deleted == [a.cloudID, n.cloudID])
    #expect(try await device.tree() == "")
  }

  @Test func newFolderAroundAPushedNode_deletesOnlyTheNode() async throws {
    try await device.create("/n")
    try await device.pretendAllPushed()
    let n = try await device.read { try $0.at("/n") }
    try await device.create("/new")
    let operation = try await device.write { cloud in
      try cloud.moveNode(n, to: ZDCTreesystemPath(pathComponents: ["new", "n"]))
      return try cloud.delete(try cloud.at("/new"))
    }
    #expect(operation?.cloudID == n.cloudID)
    #expect(try await device.queue() == "1 delete -")
  }

  @Test func creationInFlight_isDeletedToo() async throws {
    try await device.create("/a", "/a/b")
    try await device.pretendInFlight("/a")
    try await device.pretendInFlight("/a/b")
    let a = try await device.read { try $0.at("/a") }
    let operation = try await device.write { try $0.delete(a) }
    #expect(operation?.cloudID == a.cloudID)
    #expect(try await device.queue() == "1 delete -")
  }

  @Test func deletedName_isFreeImmediately() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    try await device.write { cloud in
      try cloud.delete(try cloud.at("/a"))
      try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["a"]))
    }
    #expect(try await device.queue() == "1 delete -\n2 create /a\n3 putData /a after 2")
  }

  @Test func trunksUnknownNodesAndSparingOptions_areRefused() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      let trunk = try #require(cloud.trunkNode(.home))
      #expect(cloudCode { try cloud.delete(trunk) } == .invalidParameter)
      #expect(cloudCode { try cloud.delete(ZDCNode(localUserID: trunk.localUserID)) } == .invalidParameter)
      let a = try cloud.at("/a")
      #expect(cloudCode { try cloud.delete(a, with: [.deleteOutdatedNodes]) } == .invalidParameter)
      try cloud.delete(a, with: .all)
    }
    #expect(try await device.tree() == "")
  }
}
