import Foundation
import GRDB
import Testing
import ZDCTreesystem
import ZeroDarkCloudTesting

@testable import ZDCClientStore
@testable import ZeroDarkCloud

@Suite struct CloudCreateTests {
  let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  private func path(_ names: String...) -> ZDCTreesystemPath { ZDCTreesystemPath(pathComponents: names) }

  @Test func createdNode_existsImmediately_withItsOperationsQueued() async throws {
    let node = try await device.write { try $0.createNode(withPath: ZDCTreesystemPath(pathComponents: ["foo"])) }
    let userID = device.userID
    try await device.read { cloud in
      #expect(cloud.node(id: node.uuid) == node)
      let found = try cloud.at("/foo")
      #expect(found == node)
      #expect(node.name == "foo")
      #expect(node.localUserID == userID)
      #expect(node.treeID == CloudFixture.treeID)
      #expect(node.parentID == cloud.trunkNode(.home)?.uuid)
      #expect(!node.isUploaded)
      #expect(node.cloudID.count == 26)
      #expect(node.shareList.shareItem(forUserID: userID)?.permissions == "rws")
      #expect(cloud.path(for: node) == ZDCTreesystemPath(pathComponents: ["foo"]))
      #expect(cloud.hasPendingDataUploads(forNodeID: node.uuid))
    }
    #expect(try await device.queue() == "1 create /foo\n2 putData /foo after 1")
  }

  @Test func theSeedsOtherSpelling_andIgnoredResults_compile() async throws {
    try await device.write { cloud in
      try cloud.createNode(with: ZDCTreesystemPath(pathComponents: ["list"]))
    }
    #expect(try await device.tree() == "home:/list")
  }

  @Test func child_waitsForItsParent_notForTheParentsContent() async throws {
    try await device.create("/a", "/a/b")
    #expect(
      try await device.queue() == """
        1 create /a
        2 putData /a after 1
        3 create /a/b after 1
        4 putData /a/b after 3
        """)
  }

  @Test func belowAPushedParent_nothingIsWaitedFor() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    try await device.create("/a/b")
    #expect(try await device.queue() == "1 create /a/b\n2 putData /a/b after 1")
  }

  @Test func missingParent_saysAtWhichDepth_andNoName() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      let missing = ZDCTreesystemPath(pathComponents: ["a", "secret", "c"])
      do {
        try cloud.createNode(withPath: missing)
        Issue.record("created without a parent")
      } catch let error as ZDCCloudError where error.code == .missingParent {
        #expect(error.path == missing)
        #expect("\(error)".hasSuffix("(no parent at depth 2)") && !"\(error)".contains("secret"))
      }
    }
    #expect(try await device.tree() == "home:/a")
  }

  /// - a device has logged in to an account, and has pulled nothing yet
  /// => not even a node at the top can be created, and the error says why; after the first pull it can
  @Test("Q5: before the first pull nothing can be created, and the error says why")
  func missingParent_beforeTheFirstPull_saysThatTheTrunkIsUnknown() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/early")
      try await a.sync()
      let b = try await world.device("B")
      let late = ZDCTreesystemPath(pathComponents: ["late"])
      let error = try await b.write { _, cloud -> ZDCCloudError? in
        do { try cloud.createNode(withPath: late) } catch let error as ZDCCloudError { return error }
        return nil
      }
      #expect(error?.code == .missingParent && error?.path == late)
      #expect(error.map { "\($0)" }?.hasSuffix("(the trunk has not been pulled yet)") == true)
      #expect(try await b.queueCount() == 0)
      try await b.sync()
      try await b.create("/late")
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/early\n/late")
    }
  }

  @Test func takenName_isAConflict_andNothingIsDone() async throws {
    try await device.create("/a")
    let before = try await device.queue()
    try await device.write { cloud in
      #expect(cloudCode { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["a"])) } == .conflict)
    }
    #expect(try await device.queue() == before)
  }

  @Test func sameLettersInAnotherForm_areTheSameName_otherCaseIsNot() async throws {
    try await device.create("/caf\u{e9}")
    try await device.write { cloud in
      let decomposed = ZDCTreesystemPath(pathComponents: ["cafe\u{301}"])
      #expect(cloudCode { try cloud.createNode(withPath: decomposed) } == .conflict)
      #expect(cloud.node(path: decomposed)?.name.map { Array($0.utf8) } == Array("caf\u{e9}".utf8))
      try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["CAF\u{c9}"]))
    }
    let count = try await device.read { cloud in
      let home = try #require(cloud.trunkNode(.home))
      return try cloud.children(ofNodeID: home.uuid).count
    }
    #expect(count == 2)
  }

  @Test(arguments: ["", "\0", "a\0b", String(repeating: "x", count: 1_025), String(repeating: "ä", count: 513)])
  func invalidNames_areRefused(name: String) async throws {
    try await device.write { cloud in
      let path = ZDCTreesystemPath(pathComponents: [name])
      #expect(cloudCode { try cloud.createNode(withPath: path) } == .invalidParameter)
    }
  }

  @Test(arguments: ["/", " ", "..", "a/b", "🧼", "\u{301}", "\n", String(repeating: "x", count: 1_024)])
  func anyOtherText_isAName(name: String) async throws {
    let node = try await device.write { try $0.createNode(withPath: ZDCTreesystemPath(pathComponents: [name])) }
    #expect(try await device.read { $0.node(path: ZDCTreesystemPath(pathComponents: [name])) } == node)
  }

  @Test func trunksAndForeignTrunks_areRefused() async throws {
    try await device.write { cloud in
      let trunk = ZDCTreesystemPath(pathComponents: [])
      #expect(cloudCode { try cloud.createNode(withPath: trunk) } == .invalidParameter)
      for trunk in [ZDCTreesystemTrunk.inbox, .outbox] {
        let path = ZDCTreesystemPath(pathComponents: ["a"], trunk: trunk)
        #expect(cloudCode { try cloud.createNode(withPath: path) } == .invalidParameter)
      }
      // Paths of a tree of another user begin with the id of its root.
      for names in [["a"], ["a", "b"]] {
        let path = ZDCTreesystemPath(pathComponents: names, trunk: .detached)
        #expect(cloudCode { try cloud.createNode(withPath: path) } == .missingParent)
      }
      try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["a"], trunk: .prefs))
    }
    #expect(try await device.tree() == "prefs:/a")
  }

  @Test func depthAbove128_isRefused() async throws {
    try await device.write { cloud in
      var path = ZDCTreesystemPath(pathComponents: [])
      for _ in 0..<128 {
        path = path.appendingComponent("x")
        try cloud.createNode(withPath: path)
      }
      #expect(cloudCode { try cloud.createNode(withPath: path.appendingComponent("x")) } == .invalidParameter)
    }
  }

  @Test func unknownUser_hasNoTree_andUsersDoNotSeeEachOther() async throws {
    try await device.create("/mine")
    let zdc = device.zdc
    let other = try await CloudFixture.addUser(zdc)
    let mine = try await device.read { try $0.at("/mine") }
    try await zdc.rw.write { transaction in
      #expect(zdc.cloudTransaction(transaction, forLocalUserID: "nobody") == nil)
      #expect(zdc.cloudTransaction(transaction, forLocalUserID: other, treeID: "com.example.other") == nil)
      let cloud = try #require(zdc.cloudTransaction(transaction, forLocalUserID: other))
      #expect(cloud.node(id: mine.uuid) == nil)
      #expect(cloud.node(cloudID: mine.cloudID) == nil)
      #expect(cloud.node(path: ZDCTreesystemPath(pathComponents: ["mine"])) == nil)
      #expect(cloudCode { try cloud.insertNode(mine) } == .invalidParameter)
      try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["mine"]))
    }
    #expect(try await device.tree() == "home:/mine")
  }

  @Test func throwingFromTheBlock_takesNodesAndQueueBack() async throws {
    struct Stop: Error {}
    await #expect(throws: Stop.self) {
      try await device.write { cloud in
        try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["a"]))
        throw Stop()
      }
    }
    #expect(try await device.tree() == "")
    #expect(try await device.queue() == "")
  }

  @Test func insertedNode_keepsItsIdsAndBurnDate() async throws {
    try await device.create("/a")
    let parent = try await device.read { try $0.at("/a") }
    var node = ZDCNode(localUserID: device.userID)
    node.parentID = parent.uuid
    node.name = "b"
    node.burnDate = Date(timeIntervalSince1970: 5_000)
    let draft = node
    let stored = try await device.write { try $0.insertNode(draft) }
    #expect(stored.uuid == node.uuid)
    #expect(stored.cloudID == node.cloudID)
    #expect(stored.burnDate == node.burnDate)
    #expect(stored.treeID == CloudFixture.treeID)
    #expect(try await device.read { try $0.at("/a/b") } == stored)
    try await device.write { cloud in
      #expect(cloudCode { try cloud.insertNode(stored) } == .conflict)
      var orphan = ZDCNode(localUserID: stored.localUserID)
      orphan.name = "c"
      #expect(cloudCode { try cloud.insertNode(orphan) } == .missingParent)
      orphan.parentID = parent.uuid
      orphan.name = nil
      #expect(cloudCode { try cloud.insertNode(orphan) } == .invalidParameter)
      orphan.name = "c"
      orphan.shareList.addShareItem(ZDCShareItem(permissions: "r"), forUserID: "bob")
      #expect(cloudCode { try cloud.insertNode(orphan) } == .unsupportedShare)
    }
  }

  @Test func deletedNodeThatIsInsertedAgain_isAnotherNodeToTheCloud() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    let node = try await device.read { try $0.at("/a") }
    let again = try await device.write { cloud in
      try cloud.delete(node)
      return try cloud.insertNode(node)
    }
    #expect(again.uuid == node.uuid)
    #expect(again.cloudID != node.cloudID)
    #expect(!again.isUploaded)
  }

  @Test func explicitDependencies_holdBothOperations() async throws {
    try await device.create("/first")
    try await device.write { cloud in
      let first = cloud.pendingOperations(forNodeID: try cloud.at("/first").uuid)
      try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["second"]), dependencies: first)
    }
    #expect(
      try await device.queue() == """
        1 create /first
        2 putData /first after 1
        3 create /second after 1,2
        4 putData /second after 1,2,3
        """)
  }

  @Test func addedOperations_areThoseOfThisTransaction() async throws {
    try await device.create("/a")
    try await device.write { cloud in
      #expect(cloud.addedOperations().isEmpty)
      let node = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["b"]))
      let added = cloud.addedOperations()
      #expect(added.map(\.putType) == [.node_Rcrd, .node_Data])
      #expect(added.allSatisfy { $0.nodeID == node.uuid && $0.cloudID == node.cloudID && $0.type == .put })
      #expect(added[1].dependencies == [added[0].uuid])
      #expect(cloud.addedOperations(forNodeID: node.uuid) == added)
      try cloud.delete(node)
      #expect(cloud.addedOperations().isEmpty)
    }
  }

  @Test func conflictFreePath_countsOn() async throws {
    try await device.create("/a.txt", "/a 2.txt")
    try await device.read { cloud in
      let taken = ZDCTreesystemPath(pathComponents: ["a.txt"])
      #expect(cloud.conflictFreePath(taken).nodeName == "a 3.txt")
      #expect(cloud.conflictFreePath(ZDCTreesystemPath(pathComponents: ["b"])).nodeName == "b")
      let orphan = ZDCTreesystemPath(pathComponents: ["none", "b"])
      #expect(cloud.conflictFreePath(orphan) == orphan)
    }
  }

  @Test func aThousandChildren_takeAFixedNumberOfStatementsEach() async throws {
    try await device.create("/a")
    let counts = try await device.write { cloud -> [Int] in
      var counts: [Int] = []
      for round in 0..<2 {
        let counter = StatementCounter()
        cloud.transaction.database.trace { _ in counter.count += 1 }
        for index in 0..<500 {
          try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["a", "\(round)-\(index)"]))
        }
        cloud.transaction.database.trace(options: [])
        counts.append(counter.count)
      }
      return counts
    }
    // One lookup of the name, one node, two operations, two dependencies.
    #expect(counts[1] == 500 * 6)
    #expect(counts[0] <= 500 * 6 + 12)
  }
}

final class StatementCounter {
  var count = 0
}
