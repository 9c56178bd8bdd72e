import Foundation
import Testing
import ZDCTreesystem

@testable import ZDCClientStore
@testable import ZeroDarkCloud

@Suite struct CloudMoveTests {
  let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  @Test func renamedNode_keepsItsIdentity_andIsQueuedAsAMove() async throws {
    try await device.create("/a", "/a/b")
    try await device.pretendAllPushed()
    let operation = try await device.write { cloud in
      var node = try cloud.at("/a")
      node.name = "z"
      return try cloud.modifyNode(node)
    }
    #expect(operation.type == .move)
    #expect(try await device.tree() == "home:/z\nhome:/z/b")
    #expect(try await device.queue() == "1 move /z")
  }

  @Test func movedNode_takesItsBranchAlong() async throws {
    try await device.create("/a", "/a/b", "/a/b/c", "/d")
    try await device.pretendAllPushed()
    try await device.write { cloud in
      let moved = try cloud.moveNode(try cloud.at("/a/b"), to: ZDCTreesystemPath(pathComponents: ["d", "e"]))
      #expect(moved.name == "e")
      #expect(moved.parentID == (try cloud.at("/d").uuid))
      let depths = try cloud.nodes.subtree(of: try cloud.row(path: "/d").id).map(\.depth)
      #expect(depths == [1, 2, 3])
    }
    #expect(try await device.tree() == "home:/a\nhome:/d\nhome:/d/e\nhome:/d/e/c")
    #expect(try await device.queue() == "1 move /d/e")
  }

  @Test func beforeItIsSent_aMoveIsPartOfTheCreation() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      try cloud.moveNode(try cloud.at("/a"), to: ZDCTreesystemPath(pathComponents: ["b"]))
    }
    #expect(try await device.queue() == "1 create /b\n2 putData /b after 1")
  }

  @Test func whileTheCreationIsInFlight_aMoveFollowsIt() async throws {
    try await device.create("/a")
    try await device.pretendInFlight("/a")
    try await device.write { cloud in
      try cloud.moveNode(try cloud.at("/a"), to: ZDCTreesystemPath(pathComponents: ["b"]))
      try cloud.moveNode(try cloud.at("/b"), to: ZDCTreesystemPath(pathComponents: ["c"]))
    }
    #expect(try await device.queue() == "1 create /c\n2 putData /c after 1\n3 move /c after 1")
  }

  @Test func moveIntoANewFolder_waitsForTheFolder_andNoLongerForTheOld() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    try await device.create("/x", "/y")
    try await device.write { cloud in
      try cloud.moveNode(try cloud.at("/a"), to: ZDCTreesystemPath(pathComponents: ["x", "a"]))
    }
    #expect(try await device.queue().hasSuffix("5 move /x/a after 1"))
    try await device.write { cloud in
      try cloud.moveNode(try cloud.at("/x/a"), to: ZDCTreesystemPath(pathComponents: ["y", "a"]))
    }
    #expect(try await device.queue().hasSuffix("5 move /y/a after 3"))
  }

  @Test func parentAndChildChangePlaces_neitherWaitsForItself() async throws {
    try await device.create("/b", "/b/a")
    try await device.write { cloud in
      try cloud.moveNode(try cloud.at("/b/a"), to: ZDCTreesystemPath(pathComponents: ["a"]))
      try cloud.moveNode(try cloud.at("/b"), to: ZDCTreesystemPath(pathComponents: ["a", "b"]))
    }
    #expect(
      try await device.queue() == """
        1 create /a/b after 3
        2 putData /a/b after 1
        3 create /a
        4 putData /a after 3
        """)
  }

  @Test func changedPlacesOfPushedNodes_goInAnOrderThatIsNeverARing() async throws {
    try await device.create("/b", "/b/a")
    try await device.pretendAllPushed()
    try await device.write { cloud in
      try cloud.moveNode(try cloud.at("/b/a"), to: ZDCTreesystemPath(pathComponents: ["a"]))
      try cloud.moveNode(try cloud.at("/b"), to: ZDCTreesystemPath(pathComponents: ["a", "b"]))
    }
    #expect(try await device.queue() == "1 move /a\n2 move /a/b after 1")
  }

  @Test func belowItself_takenNames_otherTrunks_andTrunks_areRefused() async throws {
    try await device.create("/a", "/a/b", "/c", "prefs:/p")
    let before = try await device.queue()
    try await device.write { cloud in
      let a = try cloud.at("/a")
      func code(_ path: String) -> ZDCCloudError.Code? {
        cloudCode {
          let path = try #require(ZDCTreesystemPath(path))
          try cloud.moveNode(a, to: path)
        }
      }
      #expect(code("/a/b/a") == .invalidParameter)
      #expect(code("/a/a") == .invalidParameter)
      #expect(code("/c") == .conflict)
      #expect(code("/none/a") == .missingParent)
      #expect(code("prefs:/a") == .invalidParameter)
      #expect(code("~") == .invalidParameter)
      let trunk = try #require(cloud.trunkNode(.home))
      #expect(cloudCode { try cloud.modifyNode(trunk) } == .invalidParameter)
      #expect(cloudCode { try cloud.modifyNode(ZDCNode(localUserID: a.localUserID)) } == .invalidParameter)
      var shared = a
      shared.shareList.addShareItem(ZDCShareItem(permissions: "r"), forUserID: "bob")
      #expect(cloudCode { try cloud.modifyNode(shared) } == .unsupportedShare)
      var orphan = a
      orphan.parentID = nil
      #expect(cloudCode { try cloud.modifyNode(orphan) } == .missingParent)
    }
    #expect(try await device.queue() == before)
  }

  @Test func burnDateAlone_isAChangeOfTheRecord_thatAMoveTakesAlong() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    let first = try await device.write { cloud in
      var node = try cloud.at("/a")
      node.burnDate = Date(timeIntervalSince1970: 9_000)
      return try cloud.modifyNode(node)
    }
    #expect(first.putType == .node_Rcrd)
    #expect(try await device.read { try $0.at("/a").burnDate } == Date(timeIntervalSince1970: 9_000))
    let second = try await device.write { cloud in
      var node = try cloud.at("/a")
      node.name = "b"
      return try cloud.modifyNode(node)
    }
    #expect(second.uuid == first.uuid)
    #expect(second.type == .move)
  }

  @Test func aMoveToTheSamePlace_queuesNothing() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    try await device.write { cloud in
      try cloud.moveNode(try cloud.at("/a"), to: ZDCTreesystemPath(pathComponents: ["a"]))
    }
    #expect(try await device.queue() == "")
  }
}
