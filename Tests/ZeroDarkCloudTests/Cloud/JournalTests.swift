import Foundation
import GRDB
import Testing
import ZDCProtocol
import ZDCTreesystem

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// The entries of the merge journal, how long it keeps them, and that they cannot be read without the key.
@Suite struct JournalTests {
  private func conflict(_ text: String) -> ZDCMergeConflict {
    let json = Data("\"\(text)\"".utf8)
    return ZDCMergeConflict(kind: .value, path: ["title"], base: json, mine: json, theirs: json, result: json)
  }

  private func report(_ text: String) -> ZDCMergeReport {
    let changeset = ZDCChangeset(encoded: Data(text.utf8))
    return ZDCMergeReport(conflicts: [conflict(text)], undo: changeset, remaining: changeset, lost: changeset)
  }

  /// Returns a device whose nodes /f and /g are in the cloud and whose queue is empty.
  private func device(_ limits: ZDCJournalLimits = ZDCJournalLimits()) async throws -> CloudFixture {
    let device = try await CloudFixture(journalLimits: limits)
    try await device.create("/f", "/g")
    try await device.pretendAllPushed()
    return device
  }

  /// Queues an upload of the node, and reports a merge with its newest version that contains the text.
  private func merge(_ device: CloudFixture, _ path: String = "/f", _ text: String) async throws {
    let report = report(text)
    try await device.write { cloud in
      let node = try cloud.at(path)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: .empty)
      cloud.didMergeData(withETag: try #require(node.eTag_data), forNodeID: node.uuid, report: report)
    }
  }

  @Test func entriesAreListedNewestFirst_ofAllNodesOrOfOne() async throws {
    let device = try await device()
    try await merge(device, "/f", "1")
    try await merge(device, "/g", "2")
    try await merge(device, "/f", "3")
    try await device.read { cloud in
      let all = cloud.mergeJournal()
      #expect(all.map { $0.report?.conflicts.first?.mine } == ["\"3\"", "\"2\"", "\"1\""].map { Data($0.utf8) })
      #expect(cloud.mergeJournal(limit: 1) == [all[0]])
      let f = try cloud.at("/f").uuid
      #expect(cloud.mergeJournal(forNodeID: f) == [all[0], all[2]])
      #expect(cloud.mergeJournalEntry(id: all[1].id) == all[1])
      #expect(cloud.mergeJournalEntry(id: UUID()) == nil)
    }
  }

  /// - an undo would swap two nodes, but the subtree of one would be too deep in its new place
  /// => the undo fails, and neither node has moved
  @Test func undoThatWouldBeTooDeep_leavesBothWhereTheyAre() async throws {
    let device = try await CloudFixture()
    try await device.write { cloud in
      for (top, height) in [("a", 100), ("x", 60)] {
        var path = [top]
        for _ in 0..<height {
          try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: path))
          path.append("n")
        }
      }
    }
    let before = (try await device.tree(), try await device.queue())
    let code = try await device.write { cloud in
      let place = ZDCTreesystemPath(pathComponents: ["x"] + Array(repeating: "n", count: 59))
      let (a, deep) = (try cloud.at("/a"), try #require(cloud.node(path: place)))
      try cloud.readWrite.record(.renamed, try cloud.row(path: "/a")) { entry in
        entry.mine.path = place
        entry.otherNodeID = deep.uuid
      }
      let entry = try #require(cloud.mergeJournal(forNodeID: a.uuid).first)
      return cloudCode { _ = try cloud.undo(entry) }
    }
    #expect(code == .invalidParameter)
    #expect(try await device.tree() == before.0)
    #expect(try await device.queue() == before.1)
  }

  /// - an undo deletes two kept nodes, and the second deletion fails
  /// => both nodes are there, and nothing is queued
  @Test func undoThatCannotDeleteAll_deletesNone() async throws {
    let device = try await CloudFixture()
    try await device.create("/d", "/d/a", "/d/b", "/d/since")
    try await device.pretendAllPushed()
    let before = (try await device.tree(), try await device.queue())
    try await device.write { cloud in
      let kept = try ["/d/a", "/d/b"].map { try cloud.row(path: $0) }
      try cloud.readWrite.record(.deletedInCloud, try cloud.row(path: "/d")) { $0.keptNodeIDs = kept.map(\.uuid) }
      let entry = try #require(cloud.mergeJournal().first)
      let (a, b) = (kept[0].id, kept[1].id)
      try cloud.transaction.database.execute(
        sql: """
          CREATE TRIGGER second BEFORE DELETE ON zdc_node
          WHEN old.id IN (\(a), \(b)) AND (SELECT COUNT(*) FROM zdc_node WHERE id IN (\(a), \(b))) = 1
          BEGIN SELECT RAISE(ABORT, 'by test'); END
          """)
      #expect(throws: (any Error).self) { try cloud.undo(entry) }
      try cloud.transaction.database.execute(sql: "DROP TRIGGER second")
    }
    #expect(try await device.tree() == before.0)
    #expect(try await device.queue() == before.1)
  }

  @Test func anEntryIsWrittenWithTheMerge_orNotAtAll() async throws {
    struct Failure: Error {}
    let device = try await device()
    let report = report("1")
    await #expect(throws: Failure.self) {
      try await device.write { cloud in
        let node = try cloud.at("/f")
        cloud.didMergeData(withETag: "v", forNodeID: node.uuid, report: report)
        #expect(cloud.mergeJournal().count == 1)
        throw Failure()
      }
    }
    #expect(try await device.read { $0.mergeJournal() } == [])
  }

  @Test func entriesStayWhenTheirNodeGoes_andCannotBeUndone() async throws {
    let device = try await device()
    try await merge(device, "/f", "1")
    try await device.write { cloud in
      try cloud.delete(try cloud.at("/f"))
      let entry = try #require(cloud.mergeJournal().first)
      #expect(cloudCode { try cloud.undo(entry) } == .invalidParameter)
    }
  }

  @Test func undoneOnce_isMarked_andNotUndoneTwice() async throws {
    let device = try await device()
    try await merge(device, "/f", "1")
    try await device.write { cloud in
      let entry = try #require(cloud.mergeJournal().first)
      let undo = try cloud.undo(entry)
      #expect(undo.changeset == entry.report?.lost && undo.nodeID == entry.nodeID && !undo.isDone)
      let marked = try #require(cloud.mergeJournal().first)
      #expect(marked.undoneAt != nil && marked.report == entry.report)
      #expect(cloudCode { try cloud.undo(entry) } == .invalidParameter)
    }
  }

  @Test func theOldestGo_beyondTheNumberOfEntries() async throws {
    var limits = ZDCJournalLimits()
    limits.maxEntries = 3
    let device = try await device(limits)
    for number in 1...5 { try await merge(device, "/f", "\(number)") }
    let kept = try await device.read { $0.mergeJournal().map { $0.report?.conflicts.first?.mine } }
    #expect(kept == ["\"5\"", "\"4\"", "\"3\""].map { Data($0.utf8) })
  }

  @Test func theOldestGo_beyondTheirAge() async throws {
    var limits = ZDCJournalLimits()
    limits.maxAge = 0
    let device = try await device(limits)
    // The fixture's clock advances at each reading.
    for number in 1...3 { try await merge(device, "/f", "\(number)") }
    #expect(try await device.read { $0.mergeJournal().count } == 1)
  }

  @Test func aLargeEntryLosesWhatLostLast() async throws {
    let text = String(repeating: "x", count: 10_000)
    // The parts of the entry that remain, from the largest limit to the smallest.
    let steps: [(limit: Int, lost: Bool, mine: Bool, undo: Bool, theirs: Bool)] = [
      (1 << 20, true, true, true, true), (60_000, true, true, true, false), (30_000, true, true, false, false),
      (20_000, true, false, false, false), (2_000, false, false, false, false),
    ]
    for step in steps {
      var limits = ZDCJournalLimits()
      limits.maxEntryBytes = step.limit
      let device = try await device(limits)
      try await merge(device, "/f", text)
      let entry = try #require(try await device.read { $0.mergeJournal().first })
      #expect((entry.report?.lost != nil) == step.lost, "\(step.limit)")
      #expect((entry.report?.conflicts.first?.mine != nil) == step.mine, "\(step.limit)")
      #expect((entry.report?.undo.isEmpty == false) == step.undo, "\(step.limit)")
      #expect((entry.report?.conflicts.first?.theirs != nil) == step.theirs, "\(step.limit)")
      #expect(entry.isShortened == (step.limit != 1 << 20))
    }
  }

  @Test func namesAndValuesAreSealed() async throws {
    let device = try await device()
    try await device.create("/canary-name")
    try await device.pretendAllPushed(dataVersion: 2)
    try await merge(device, "/canary-name", "canary-value")
    let rows = try await device.read { cloud in
      try Row.fetchAll(cloud.transaction.database, sql: "SELECT * FROM zdc_journal").map { "\($0)" + $0.allBytes }
    }
    #expect(rows.count == 1)
    for row in rows { #expect(!row.contains("canary")) }
  }

  @Test func clearedForOneNode_orForAll() async throws {
    let device = try await device()
    try await merge(device, "/f", "1")
    try await merge(device, "/g", "2")
    try await device.write { cloud in
      cloud.clearMergeJournal(forNodeID: try cloud.at("/f").uuid)
      #expect(cloud.mergeJournal().count == 1)
      cloud.clearMergeJournal()
      #expect(cloud.mergeJournal() == [])
    }
  }

  // MARK: The queue after a merge

  @Test func theRemainder_replacesThePendingChangesets() async throws {
    let device = try await device()
    let (first, second, rest) = ("1", "2", "rest")
    try await device.write { cloud in
      let node = try cloud.at("/f")
      for text in [first, second] {
        cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: ZDCChangeset(encoded: Data(text.utf8)))
      }
      let remaining = ZDCChangeset(encoded: Data(rest.utf8))
      cloud.didMergeData(
        withETag: "v", forNodeID: node.uuid,
        report: ZDCMergeReport(conflicts: [], undo: .empty, remaining: remaining))
      #expect(cloud.pendingChangesets(forNodeID: node.uuid) == [remaining, .empty])
      #expect(try cloud.uploads(node.uuid).map(\.baseETag) == ["v", "v"])
    }
  }

  @Test func anEmptyRemainder_dropsTheUploads_unlessOneIsUnknown() async throws {
    let device = try await device()
    try await device.write { cloud in
      let nothing = ZDCMergeReport(conflicts: [], undo: .empty, remaining: nil)
      let (f, g) = (try cloud.at("/f"), try cloud.at("/g"))
      cloud.queueDataUpload(forNodeID: f.uuid, withChangeset: .empty)
      cloud.didMergeData(withETag: "v", forNodeID: f.uuid, report: nothing)
      #expect(!cloud.hasPendingDataUploads(forNodeID: f.uuid))
      cloud.queueDataUpload(forNodeID: g.uuid, withChangeset: .empty)
      cloud.queueDataUpload(forNodeID: g.uuid, withChangeset: nil)
      cloud.didMergeData(withETag: "v", forNodeID: g.uuid, report: nothing)
      #expect(try cloud.uploads(g.uuid).map(\.baseETag) == ["v", "v"])
    }
  }
}

extension Row {
  /// All texts and blobs, as stored.
  fileprivate var allBytes: String {
    databaseValues.map { value in
      switch value.storage {
      case .blob(let data): String(decoding: data, as: UTF8.self)
      case .string(let text): text
      default: ""
      }
    }.joined()
  }
}
