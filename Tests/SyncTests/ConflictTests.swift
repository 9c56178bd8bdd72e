import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Ways in which an app resolves a conflict, and that the resolution lasts.
struct ConflictTests {
  @Test func merged_bothEditsAreThere() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.conflict(world)
      a.recorder.dataConflictPolicy = .mergeLines
      b.recorder.dataConflictPolicy = .mergeLines
      try await world.settle(a, b)
      #expect(try await a.tree() == "/f  v3  \"A|B\"")
      #expect(b.recorder.lines.filter { $0.hasPrefix("conflict") } == ["conflict data /f"])
    }
  }

  /// - a device learns of a newer content, marks it for download, and the app changes its older one before that
  /// => a conflict: the app's older content does not replace the newer one unseen
  @Test(arguments: [false, true]) func changedBeforeTheMarkedContentArrived(isFetched: Bool) async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/f", "0")
      try await world.settle(a, b)
      try await a.edit("/f", "A")
      try await a.sync()
      try await b.pull()
      let node = try await b.node("/f")
      try await b.write { _, cloud in
        cloud.markNodeAsNeedsDownload(node.uuid, components: .all)
        guard isFetched else { return }
        cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .data, ifETagMatches: node.eTag_data)
      }
      try await b.edit("/f", "B")
      try await b.push()
      #expect(b.recorder.take().contains("conflict data /f") == !isFetched)
      try await world.settle(a)
      #expect(try await a.tree() == (isFetched ? "/f  v3  \"B\"" : "/f  v2  \"A\""))
      b.recorder.dataConflictPolicy = .mergeLines
      try await b.relaunch()
      try await world.settle(b, a)
      #expect(try await a.tree() == (isFetched ? "/f  v3  \"B\"" : "/f  v3  \"A|B\""))
    }
  }

  @Test func cloudTaken_theLocalEditIsDropped() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.conflict(world)
      b.recorder.dataConflictPolicy = .takeCloud
      try await world.settle(a, b)
      #expect(try await b.tree() == "/f  v2  \"A\"")
    }
  }

  @Test func held_blocksThisNodeOnly_andIsAskedAgainAfterARelaunch() async throws {
    try await TestWorld.run { world in
      let (_, b) = try await Self.conflict(world)
      try await b.sync()
      try await b.create("/g", "2")
      try await b.sync()
      #expect(try await b.tree() == "/f  v2  \"B\"  [putData conflictHeld]\n/g  v1  \"2\"")
      #expect(b.recorder.take().filter { $0.hasPrefix("conflict") } == ["conflict data /f"])
      try await b.relaunch()
      try await b.sync()
      #expect(b.recorder.take().filter { $0.hasPrefix("conflict") } == ["conflict data /f"])
      b.recorder.dataConflictPolicy = .takeCloud
      try await b.relaunch()
      try await b.sync()
      #expect(try await b.queueCount() == 0)
    }
  }

  /// - the app merges inside the callback, as early as it can
  /// => the upload continues in the next commit
  @Test func mergedInsideTheCallback_continuesImmediately() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.conflict(world)
      b.recorder.on(.conflict) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        transaction.setObject(TestContent("A and B"), forKey: node.uuid, inCollection: TestContent.collection)
        cloud.didMergeData(withETag: try #require(node.eTag_data), forNodeID: node.uuid)
      }
      try await world.settle(b, a)
      #expect(try await a.tree() == "/f  v3  \"A and B\"")
    }
  }

  @Test func pathConflict_theAppsOwnNameIsTaken() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await world.settle(a, b)
      try await a.create("/n", "A")
      try await b.create("/n", "B")
      try await a.sync()
      b.recorder.on(.conflict, "/n") { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        var renamed = node
        renamed.name = "mine"
        try cloud.modifyNode(renamed)
      }
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/mine  \"B\"\n/n  \"A\"")
      #expect(b.recorder.lines.filter { $0.hasPrefix("moved") } == [])
    }
  }

  // MARK: Deleted elsewhere, changed here

  @Test func keptNode_queuedAgain_isANewNodeWithItsOldUUID() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.dirtyDelete(world)
      let before = try await b.node("/d/f")
      #expect(b.recorder.lines.contains("deletedDirty /d [/d/f]"))
      try await b.edit("/d/f", "again")
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/d\n/d/f  \"again\"")
      #expect(try await b.node("/d/f").uuid == before.uuid)
    }
  }

  @Test func keptNode_deletedByTheApp_isGone() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.dirtyDelete(world)
      try await b.delete("/d")
      try await world.settle(b, a)
      #expect(try await b.tree() == "")
      #expect(try world.server.nodeCount() == 0)
    }
  }

  @Test func deletedInsideTheCallback_leavesNothing() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      b.recorder.on(.deletedDirty) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        try cloud.delete(node)
      }
      try await Self.dirtyDelete(a, b, world)
      #expect(try await b.tree() == "")
      #expect(try await b.queueCount() == 0)
    }
  }

  // MARK: Scenarios

  /// A's edit is committed, and B's is queued.
  private static func conflict(_ world: TestWorld) async throws -> (TestDevice, TestDevice) {
    let a = try await world.device("A")
    let b = try await world.device("B")
    try await a.create("/f", "0")
    try await world.settle(a, b)
    try await a.edit("/f", "A")
    try await b.edit("/f", "B")
    try await a.sync()
    return (a, b)
  }

  private static func dirtyDelete(_ world: TestWorld) async throws -> (TestDevice, TestDevice) {
    let a = try await world.device("A")
    let b = try await world.device("B")
    try await dirtyDelete(a, b, world)
    return (a, b)
  }

  private static func dirtyDelete(_ a: TestDevice, _ b: TestDevice, _ world: TestWorld) async throws {
    try await a.create("/d")
    try await a.create("/d/f", "0")
    try await world.settle(a, b)
    try await a.delete("/d")
    try await b.edit("/d/f", "B")
    try await a.sync()
    try await b.sync()
  }
}
