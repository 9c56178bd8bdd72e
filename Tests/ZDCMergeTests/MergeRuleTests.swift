import Foundation
import Testing
import ZDCMerge

/// The table at `ZDCSyncable`, rule by rule. O is the common base, L the local value, C the cloud's.
@Suite struct MergeRuleTests {
  /// Edits a copy of `base` locally and another one in the cloud, and merges them locally.
  private func merge<Value: ZDCSyncable>(
    _ base: Value, here: (inout Value) -> Void, there: (inout Value) -> Void
  ) throws -> (value: Value, report: ZDCMergeReport) {
    var local = base
    here(&local)
    let pending = try local.changeset()
    var cloud = base
    there(&cloud)
    cloud.clearChangeTracking()
    let before = local
    let report = try local.mergeReporting(cloudVersion: cloud, pendingChangesets: pending.map { [$0] } ?? [])
    var undone = local
    _ = try undone.undo(report.undo)
    #expect(try undone.changeset(since: before) == nil, "undoing the merge gives the local value back")
    return (local, report)
  }

  private typealias Values = ZDCDictionary<String, Int>

  // MARK: One property or key

  @Test func notChangedHere_changedThere_takesTheClouds() throws {
    let (board, report) = try merge(Board(name: "o"), here: { $0.note = "n" }, there: { $0.name = "c" })
    #expect(board.name == "c" && board.note == "n")
    #expect(report.conflicts == [])
  }

  @Test func notChangedHere_removedThere_isRemoved() throws {
    let (values, report) = try merge(Values(["k": 1]), here: { _ in }, there: { $0["k"] = nil })
    #expect(values == [:] && report.conflicts == [])
  }

  @Test func notChangedHere_addedThere_isAdded() throws {
    let (values, _) = try merge(Values([:]), here: { $0["l"] = 1 }, there: { $0["c"] = 2 })
    #expect(values == ["l": 1, "c": 2])
  }

  @Test func equalChanges_needNoMerge() throws {
    let (board, report) = try merge(Board(name: "o"), here: { $0.name = "x" }, there: { $0.name = "x" })
    #expect(board.name == "x" && report.conflicts == [] && report.undo.isEmpty && report.remaining == nil)
  }

  @Test func changedHereOnly_keepsTheLocal() throws {
    let (board, report) = try merge(Board(name: "o"), here: { $0.name = "l" }, there: { $0.note = "c" })
    #expect(board.name == "l" && board.note == "c" && report.conflicts == [])
    #expect(report.remaining != nil)
  }

  @Test func bothChangedIt_theCloudWins_andTheLoserIsReported() throws {
    let (board, report) = try merge(Board(name: "o"), here: { $0.name = "l" }, there: { $0.name = "c" })
    #expect(board.name == "c")
    let conflict = try #require(report.conflicts.first)
    #expect(report.conflicts.count == 1 && conflict.path == ["name"] && conflict.kind == .value)
    #expect(try conflict.value(\.base, as: String.self) == "o")
    #expect(try conflict.value(\.mine, as: String.self) == "l")
    #expect(try conflict.value(\.theirs, as: String.self) == "c")
    #expect(try conflict.value(\.result, as: String.self) == "c")
    #expect(throws: ZDCSyncableError(.incorrectType)) { try conflict.value(\.mine, as: Int.self) }
  }

  @Test func addedHere_absentThere_keepsTheLocal() throws {
    let (values, report) = try merge(Values(["k": 1]), here: { $0["l"] = 2 }, there: { $0["k"] = 3 })
    #expect(values == ["k": 3, "l": 2] && report.conflicts == [])
  }

  @Test func addedByBoth_theCloudWins() throws {
    let (values, report) = try merge(Values([:]), here: { $0["k"] = 1 }, there: { $0["k"] = 2 })
    #expect(values == ["k": 2])
    #expect(report.conflicts.map(\.path) == [["k"]] && report.conflicts.first?.base == nil)
  }

  @Test func changedHere_deletedThere_theDeletionWins_andTheLoserIsReported() throws {
    let (values, report) = try merge(Values(["k": 1]), here: { $0["k"] = 2 }, there: { $0["k"] = nil })
    #expect(values == [:])
    let conflict = try #require(report.conflicts.first)
    #expect(try conflict.value(\.mine, as: Int.self) == 2)
    #expect(conflict.theirs == nil && conflict.result == nil)
  }

  @Test func deletedHere_unchangedThere_staysDeleted() throws {
    let (values, report) = try merge(Values(["k": 1, "m": 1]), here: { $0["k"] = nil }, there: { $0["m"] = 2 })
    #expect(values == ["m": 2] && report.conflicts == [])
  }

  @Test func deletedHere_changedThere_comesBack_andTheDeletionIsReported() throws {
    let (values, report) = try merge(Values(["k": 1]), here: { $0["k"] = nil }, there: { $0["k"] = 2 })
    #expect(values == ["k": 2])
    #expect(report.conflicts.count == 1 && report.conflicts.first?.mine == nil)
  }

  @Test func deletedByBoth_isDeleted() throws {
    let (values, report) = try merge(Values(["k": 1]), here: { $0["k"] = nil }, there: { $0["k"] = nil })
    #expect(values == [:] && report.conflicts == [])
  }

  @Test func theOriginalIsThatOfTheOldestChangesetThatMentionsTheKey() throws {
    var local = Board(name: "o")
    var pending: [ZDCChangeset] = []
    for edit: (inout Board) -> Void in [{ $0.note = "x" }, { $0.name = "1" }, { $0.name = "2" }] {
      edit(&local)
      pending.append(try local.takenChangeset())
    }
    // The cloud has the value from before the first edit of the name: only this side changed it.
    let report = try local.mergeReporting(cloudVersion: Board(name: "o"), pendingChangesets: pending)
    #expect(local.name == "2" && local.note == "x" && report.conflicts == [])
  }

  @Test func anUploadWithoutAChangesetIsUnknown_andTheCloudWinsOverIt() throws {
    var local = Board(name: "o")
    local.name = "unknown"
    local.clearChangeTracking()
    local.note = "known"
    let pending = try local.takenChangeset()
    try local.merge(cloudVersion: Board(name: "o"), pendingChangesets: [pending])
    #expect(local.name == "o" && local.note == "known")
  }

  @Test func withoutPendingChangesTheCloudsVersionIsTaken() throws {
    var generator = SeededGenerator(seed: 5)
    var local = Board.random(&generator, edits: 60)
    let cloud = Board.random(&generator, edits: 60)
    let report = try local.mergeReporting(cloudVersion: cloud, pendingChangesets: [])
    #expect(local == cloud && report.conflicts == [] && report.remaining == nil)
  }

  // MARK: Nested values

  @Test func nestedRecord_eachPropertySeparately() throws {
    let (board, report) = try merge(
      Board(cover: Card(title: "o", points: 1)), here: { $0.cover.title = "l" }, there: { $0.cover.points = 2 })
    #expect(board.cover == Card(title: "l", points: 2) && report.conflicts == [])
  }

  @Test func recordsInDictionaries_areMergedInside() throws {
    let base = Board(archive: [7: Card(title: "o")], cards: ["x": Card(title: "o")])
    let (board, report) = try merge(
      base,
      here: {
        $0.archive[7]?.title = "l"
        $0.cards["x"]?.labels.insert("here")
      },
      there: {
        $0.archive[7]?.labels.insert("c")
        $0.cards["x"]?.labels.insert("there")
        $0.cards["x"]?.title = "c"
      })
    #expect(board.archive == [7: Card(title: "l", labels: ["c"])])
    #expect(board.cards == ["x": Card(title: "c", labels: ["here", "there"])])
    #expect(report.conflicts == [])
  }

  @Test func aNestedConflictReportsItsWholePath() throws {
    let (board, report) = try merge(
      Board(archive: [7: Card(title: "o")]), here: { $0.archive[7]?.title = "l" },
      there: { $0.archive[7]?.title = "c" })
    #expect(board.archive[7]?.title == "c")
    #expect(report.conflicts.map(\.path) == [["archive", "7", "title"]])
  }

  @Test func nestedRecordChangedHere_deletedThere_isDeletedAndWhollyReported() throws {
    let (board, report) = try merge(
      Board(archive: [7: Card(title: "o")]), here: { $0.archive[7]?.title = "l" }, there: { $0.archive[7] = nil })
    #expect(board.archive == [:])
    #expect(try report.conflicts.first?.value(\.mine, as: Card.self) == Card(title: "l"))
  }

  // MARK: Sets

  @Test func sets_additionsAndRemovalsOfBothSides() throws {
    let (members, report) = try merge(
      ZDCSet([1, 2, 3]),
      here: {
        $0.insert(4)
        $0.remove(1)
        $0.remove(3)
      },
      there: {
        $0.insert(5)
        $0.remove(2)
        $0.remove(3)
      })
    #expect(members == [4, 5] && report.conflicts == [])
  }

  // MARK: Order

  @Test func order_movedHereOnly_hasTheLocalPlace() throws {
    let (columns, report) = try merge(
      ZDCOrderedSet("abcde".map(String.init)), here: { $0.move(from: 4, to: 0) }, there: { $0.move(from: 1, to: 2) })
    #expect(columns.joined() == "eacbd" && report.conflicts == [])
  }

  @Test func order_movedThereOnly_hasTheCloudsPlace() throws {
    let (columns, _) = try merge(
      ZDCOrderedSet("abcde".map(String.init)), here: { _ in }, there: { $0.move(from: 0, to: 4) })
    #expect(columns.joined() == "bcdea")
  }

  @Test func order_movedByBoth_hasTheCloudsPlace_andIsReported() throws {
    let (columns, report) = try merge(
      ZDCOrderedSet("abcde".map(String.init)), here: { $0.move(from: 4, to: 0) }, there: { $0.move(from: 4, to: 2) })
    #expect(columns.joined() == "abecd")
    #expect(report.conflicts.map(\.kind) == [.order])
    #expect(try report.conflicts.first?.value(\.mine, as: [String].self) == ["e"])
  }

  @Test func order_movedByBothAlike_isNoConflict() throws {
    let (columns, report) = try merge(
      ZDCOrderedSet("abcde".map(String.init)), here: { $0.move(from: 4, to: 0) },
      there: {
        $0.move(from: 4, to: 0)
        $0.append("f")
      })
    #expect(columns.joined() == "eabcdf" && report.conflicts == [])
  }

  @Test func orderedDictionary_movedHere_editedThere_isBoth() throws {
    let base: ZDCOrderedDictionary = ["a": Card(title: "1"), "b": Card(title: "2"), "c": Card(title: "3")]
    let (cards, report) = try merge(base, here: { $0.move(from: 2, to: 0) }, there: { $0["c"]?.title = "new" })
    #expect(cards.keys == ["c", "a", "b"] && cards["c"]?.title == "new" && report.conflicts == [])
  }

  @Test func orderedDictionary_removedThere_whatFollowedItStaysInPlace() throws {
    let base: ZDCOrderedDictionary = ["a": 1, "b": 2, "c": 3]
    let (values, _) = try merge(base, here: { $0.insert(4, forKey: "d", at: 2) }, there: { $0["b"] = nil })
    #expect(values == ["a": 1, "d": 4, "c": 3])
  }

  @Test func arrays_additionsAndRemovalsOfBothSides_keepTheirPlaces() throws {
    let (log, report) = try merge(
      ZDCArray([1, 2, 3, 4]),
      here: {
        $0.insert(10, at: 1)
        $0.remove(at: 4)
      },
      there: {
        $0.append(20)
        $0.remove(at: 0)
      })
    #expect(log == [10, 2, 3, 20] && report.conflicts == [])
  }

  @Test func arrays_equalElementsAreCounted() throws {
    let (log, _) = try merge(ZDCArray([1, 1]), here: { $0.append(1) }, there: { $0.remove(at: 0) })
    #expect(log == [1, 1])
  }

  // MARK: The report

  @Test func conflictsAreSortedByPath() throws {
    let (_, report) = try merge(
      Board(name: "o", settings: ["b": 1, "a": 1, "c": 1]),
      here: { board in
        board.name = "l"
        for key in ["a", "b", "c"] { board.settings[key] = 2 }
      },
      there: { board in
        board.name = "c"
        for key in ["a", "b", "c"] { board.settings[key] = 3 }
      })
    let paths = report.conflicts.map { $0.path.joined(separator: ".") }
    #expect(paths == ["name", "settings.a", "settings.b", "settings.c"])
  }

  @Test func remainingTakesThePlaceOfThePendingChangesets() throws {
    // Both sides changed the name, so the cloud's value won. If the cloud then returns to the base, someone intended
    // that. Pending changesets from before the merge would treat the value that replaced our lost edit as our own.
    var local = Board(name: "o")
    local.name = "l"
    local.note = "n"
    let pending = try local.takenChangeset()
    let report = try local.mergeReporting(cloudVersion: Board(name: "c"), pendingChangesets: [pending])
    let remaining = try #require(report.remaining)
    try local.merge(cloudVersion: Board(name: "o"), pendingChangesets: [remaining])
    #expect(local.name == "o" && local.note == "n")
  }

  @Test func aReportGoesThroughCodable() throws {
    let (_, report) = try merge(Board(name: "o"), here: { $0.name = "l" }, there: { $0.name = "c" })
    let json = try JSONEncoder().encode(report)
    #expect(try JSONDecoder().decode(ZDCMergeReport.self, from: json) == report)
  }

  /// A lost value can be restored, and nothing else with it.
  @Test func aLostChange_undoneOnTheMergedValue_isRestored() throws {
    var base = Board(name: "o", note: "o")
    base.settings = ["both": 0, "gone": 0, "theirs": 0]
    base.clearChangeTracking()
    var (merged, report) = try merge(
      base,
      here: {
        $0.name = "mine"
        $0.settings["both"] = 1
        $0.settings["gone"] = nil
        $0.settings["added"] = 1
      },
      there: {
        $0.name = "theirs"
        $0.note = "theirs"
        $0.settings["both"] = 2
        $0.settings["gone"] = 2
        $0.settings["theirs"] = 2
        $0.settings["added"] = 2
      })
    #expect(merged.settings == ["both": 2, "gone": 2, "theirs": 2, "added": 2])
    let redo = try merged.undo(try #require(report.lost))
    #expect(merged.name == "mine" && merged.note == "theirs")
    #expect(merged.settings == ["both": 1, "theirs": 2, "added": 1])
    _ = try merged.undo(redo)
    #expect(merged.name == "theirs" && merged.settings == ["both": 2, "gone": 2, "theirs": 2, "added": 2])
  }

  @Test func anOrderThatLost_isGivenBack() throws {
    let base = ZDCOrderedSet([1, 2, 3, 4])
    var mine = base
    mine.move(from: 3, to: 0)
    var theirs = base
    theirs.move(from: 3, to: 1)
    let pending = try mine.takenChangeset()
    var merged = mine
    let report = try merged.mergeReporting(cloudVersion: ZDCOrderedSet(theirs), pendingChangesets: [pending])
    #expect(Array(merged) == [1, 4, 2, 3])
    _ = try merged.undo(try #require(report.lost))
    #expect(Array(merged) == [4, 1, 2, 3])
  }

  @Test func withoutAConflict_nothingIsLost() throws {
    let (_, report) = try merge(Board(name: "o"), here: { $0.name = "l" }, there: { $0.note = "c" })
    #expect(report.lost == nil && report.conflicts == [])
  }
}
