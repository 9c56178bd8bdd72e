import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Where the framework decides a conflict, the merge journal records the decision and can undo it.
struct JournalCaptureTests {
  private static func pair(
    _ world: TestWorld, _ start: @escaping @Sendable (TestDevice) async throws -> Void = { _ in }
  ) async throws -> (TestDevice, TestDevice) {
    let a = try await world.device("A")
    let b = try await world.device("B")
    try await start(a)
    try await world.settle(a, b)
    return (a, b)
  }

  private static func entries(_ device: TestDevice) async throws -> [ZDCMergeJournalEntry] {
    try await device.write { _, cloud in cloud.mergeJournal() }
  }

  private static func onlyEntry(_ device: TestDevice) async throws -> ZDCMergeJournalEntry {
    let entries = try await entries(device)
    #expect(entries.count == 1)
    return try #require(entries.first)
  }

  private static func undo(_ device: TestDevice) async throws -> ZDCMergeUndo {
    try await device.write { _, cloud in try cloud.undo(try #require(cloud.mergeJournal().first)) }
  }

  private static func path(_ text: String) -> ZDCTreesystemPath? { ZDCTreesystemPath(text) }

  // MARK: Names

  @Test("behaviour 10.14: the app is asked, the local node renamed, the app notified; undo swaps the names")
  func automaticRename() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      try await a.create("/n.txt", "A")
      try await b.create("/n.txt", "B")
      try await a.sync()
      try await world.settle(b, a)
      let told = b.recorder.lines.filter { $0.hasPrefix("conflict") || $0.hasPrefix("moved") || $0.hasPrefix("new") }
      #expect(told == ["conflict path /n.txt", "moved /n.txt -> /n 2.txt", "new /n.txt"])
      let entry = try await Self.onlyEntry(b)
      let (mine, theirs) = (try await b.node("/n 2.txt"), try await b.node("/n.txt"))
      #expect(entry.kind == .renamed && entry.nodeID == mine.uuid)
      #expect(entry.mine.path == Self.path("/n.txt") && entry.result.path == Self.path("/n 2.txt"))
      #expect(entry.theirs.cloudID == theirs.cloudID && entry.otherNodeID == theirs.uuid)
      #expect(try entry.cloudWriterID == a.localUserID)
      #expect(try await Self.entries(a) == [])
      #expect(try await Self.undo(b).isDone)
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/n 2.txt  \"A\"\n/n.txt  \"B\"")
    }
  }

  @Test func renamedByTheAppInTheCallback_isNoDecisionOfTheFramework() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      try await a.create("/n", "A")
      try await b.create("/n", "B")
      try await a.sync()
      b.recorder.on(.conflict, "/n") { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        try cloud.moveNode(node, to: cloud.conflictFreePath(ZDCTreesystemPath(pathComponents: ["n"])))
      }
      try await world.settle(b, a)
      #expect(try await Self.entries(b) == [])
      #expect(try await a.tree(versions: false) == "/n  \"A\"\n/n 2  \"B\"")
    }
  }

  // MARK: Moves and names

  @Test("behaviour 10.13: a remote move wins over a queued one; the journal has it, undo makes it")
  func droppedMove() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world) { try await $0.create("/f", "1") }
      try await a.rename("/f", to: "a")
      try await b.rename("/f", to: "b")
      try await a.sync()
      try await world.settle(b)
      let entry = try await Self.onlyEntry(b)
      #expect(entry.kind == .moveDropped && entry.mine.path == Self.path("/b") && entry.result.path == Self.path("/a"))
      #expect(try entry.cloudWriterID == a.localUserID)
      #expect(try await Self.undo(b).isDone)
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/b  \"1\"")
    }
  }

  @Test func bothMovedToTheSamePlace_isNoConflict() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world) { try await $0.create("/f", "1") }
      try await a.rename("/f", to: "g")
      try await b.rename("/f", to: "g")
      try await world.settle(a, b)
      #expect(try await Self.entries(b) == [])
    }
  }

  @Test func movedIntoADeletedFolder_cannotBeUndone() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world) {
        try await $0.create("/f", "1")
        try await $0.create("/d")
      }
      try await a.delete("/d")
      try await b.move("/f", to: "/d/f")
      try await a.sync()
      try await world.settle(b)
      let entry = try await Self.onlyEntry(b)
      #expect(entry.kind == .moveDropped && entry.mine.path == Self.path("/d/f"))
      await #expect {
        _ = try await Self.undo(b)
      } throws: {
        ($0 as? ZDCCloudError)?.code == .missingParent
      }
      #expect(try await Self.onlyEntry(b).undoneAt == nil)
    }
  }

  // MARK: Content

  /// Makes B take the cloud's version inside the conflict callback.
  private static func takeCloud(
    _ b: TestDevice, _ skip: @escaping @Sendable (ZDCNode, ZDCCloudTransaction) throws -> Void
  ) {
    b.recorder.on(.conflict) { node, transaction in
      let transaction = try #require(transaction as? ZDCReadWriteTransaction)
      try skip(node, try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)))
    }
  }

  private static func contents(_ world: TestWorld) async throws -> (TestDevice, TestDevice) {
    let (a, b) = try await pair(world) { try await $0.create("/f", "0") }
    try await a.edit("/f", "A")
    try await b.edit("/f", "B")
    try await a.sync()
    return (a, b)
  }

  @Test func cloudTaken_theLoserIsGivenBack() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.contents(world)
      Self.takeCloud(b) { $1.skipDataUploads(forNodeID: $0.uuid, losing: Data("B".utf8)) }
      try await world.settle(b, a)
      let entry = try await Self.onlyEntry(b)
      #expect(entry.kind == .cloudWon && entry.content == Data("B".utf8))
      let node = try await b.node("/f")
      #expect(entry.theirs.eTag == node.eTag_data && entry.base.eTag != entry.theirs.eTag)
      let undo = try await Self.undo(b)
      #expect(undo.nodeID == node.uuid)
      try await b.edit("/f", String(decoding: try #require(undo.content), as: UTF8.self))
      try await world.settle(b, a)
      #expect(try await a.tree() == "/f  v3  \"B\"")
    }
  }

  @Test func cloudTaken_theLoserIsInAnotherNode_undoSwapsTheNames() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.contents(world)
      Self.takeCloud(b) { node, cloud in
        let copy = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["f 2"]))
        cloud.skipDataUploads(forNodeID: node.uuid, keptAs: copy.uuid)
      }
      try await world.settle(b, a)
      let entry = try await Self.onlyEntry(b)
      #expect(entry.kind == .cloudWon && entry.mine.path == Self.path("/f 2"))
      let copy = try await b.node("/f 2").uuid
      #expect(try await Self.undo(b).isDone)
      #expect(try await b.node("/f").uuid == copy)
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/f\n/f 2  \"A\"")
    }
  }

  @Test func cloudTaken_whatWasNeverGivenCannotBeGivenBack() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.contents(world)
      b.recorder.dataConflictPolicy = .takeCloud
      try await world.settle(b, a)
      await #expect {
        _ = try await Self.undo(b)
      } throws: {
        ($0 as? ZDCCloudError)?.code == .invalidParameter
      }
    }
  }

  @Test func mergedWithoutAReport_hasTheVersionsOnly() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.contents(world)
      b.recorder.dataConflictPolicy = .mergeLines
      try await world.settle(b, a)
      let entry = try await Self.onlyEntry(b)
      #expect(entry.kind == .merged && entry.report == nil && entry.content == nil)
      #expect(entry.base.eTag != nil && entry.theirs.eTag != nil)
    }
  }

  @Test func anUploadSkippedWithoutAConflict_isNoDecision() async throws {
    try await TestWorld.run { world in
      let (_, b) = try await Self.pair(world) { try await $0.create("/f", "0") }
      try await b.edit("/f", "B")
      try await b.write { _, cloud in
        cloud.skipDataUploads(forNodeID: try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: ["f"]))).uuid)
      }
      #expect(try await Self.entries(b) == [])
      try await b.edit("/f", "C")
      try await b.sync()
    }
  }

  // MARK: Deletions

  @Test func deletedInTheCloud_keptHere_undoDeletes() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world) { try await $0.create("/f", "0") }
      b.recorder.on(.deletedDirty) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        _ = try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)?.insertNode(node)
      }
      try await b.edit("/f", "B")
      try await a.delete("/f")
      try await a.sync()
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/f  \"B\"")
      let entry = try await Self.onlyEntry(b)
      #expect(entry.kind == .deletedInCloud && entry.theirs.isDeleted && entry.result.path == Self.path("/f"))
      #expect(entry.result.cloudID != entry.cloudID)
      #expect(try await Self.undo(b).isDone)
      try await world.settle(b, a)
      #expect(try await a.tree() == "")
    }
  }

  @Test("M12: undo of a kept folder spares what was put into it since", arguments: ["a", "b"])
  func deletedInTheCloud_undoSparesWhatCameLater(writer: String) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world) { device in
        for path in ["/d", "/d/e", "/d/e/f"] { try await device.create(path, "0") }
      }
      b.recorder.on(.deletedDirty) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        let path = try #require(Self.path("/d/e/f"))
        let dirty = try #require(cloud.node(path: path))
        _ = try cloud.insertNode(dirty)
      }
      try await b.edit("/d/e/f", "B")
      try await a.delete("/d")
      try await a.sync()
      try await world.settle(b, a)
      try await (writer == "a" ? a : b).create("/d/since", "new")
      try await world.settle(a, b)
      let entries = try await Self.entries(b)
      let entry = try #require(entries.first { $0.kind == .deletedInCloud })
      _ = try await b.write { _, cloud in try cloud.undo(entry) }
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/d  \"0\"\n/d/since  \"new\"")
    }
  }

  @Test("M12: undo of a kept folder that others filled and that is not all read yet is refused")
  func deletedInTheCloud_undoIsRefusedIfNothingCanGo() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world) { try await $0.create("/d", "0") }
      b.recorder.on(.deletedDirty) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        _ = try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)?.insertNode(node)
      }
      try await b.edit("/d", "B")
      try await a.delete("/d")
      try await a.sync()
      try await world.settle(b, a)
      try await a.create("/d/since", "new")
      try await world.settle(a, b)
      await #expect(throws: ZDCCloudError.self) { try await Self.undo(b) }
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/d  \"B\"\n/d/since  \"new\"")
      #expect(try await Self.onlyEntry(b).undoneAt == nil)
    }
  }

  @Test func deletedInTheCloud_deletedHereToo() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world) { try await $0.create("/f", "0") }
      b.recorder.on(.deletedDirty) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        _ = try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)?.delete(node)
      }
      try await b.edit("/f", "B")
      try await a.delete("/f")
      try await world.settle(a, b)
      let entry = try await Self.onlyEntry(b)
      #expect(entry.kind == .deletedInCloud && entry.result.isDeleted)
    }
  }

  @Test(arguments: ["edit", "child"])
  func deletedHere_changedByOthers(change: String) async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world) { try await $0.create("/f", "0") }
      let node = try await b.node("/f")
      if change == "edit" { try await a.edit("/f", "A") } else { try await a.create("/f/child", "A") }
      try await b.delete("/f")
      try await a.sync()
      try await world.settle(b, a)
      #expect(try await a.tree() == "")
      let entry = try await Self.onlyEntry(b)
      #expect(entry.kind == .deletedHere && entry.nodeID == node.uuid && entry.result.isDeleted)
      #expect((entry.cloudID == node.cloudID) == (change == "edit"))
      #expect(try entry.cloudWriterID == a.localUserID)
    }
  }
}
