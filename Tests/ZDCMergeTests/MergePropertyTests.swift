import Testing
import ZDCMerge

/// Random histories. Each seed is a separate test, so that a failure names it.
@Suite struct MergePropertyTests {
  private static let seeds = Array(UInt64(1)...40)

  @Test(arguments: seeds)
  func undoTakesEachEditBack_redoDoesItAgain(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var board = Board.random(&generator, edits: 30)
    var states: [Board] = [board]
    var undos: [ZDCChangeset] = []
    for _ in 0..<40 {
      for _ in 0..<Int.random(in: 1...4, using: &generator) { board.editAtRandom(&generator) }
      guard let changeset = try board.changeset() else { continue }
      undos.append(ZDCChangeset(encoded: changeset.encoded))
      states.append(board)
    }
    var redos: [ZDCChangeset] = []
    for (index, changeset) in undos.enumerated().reversed() {
      redos.append(try board.undo(changeset))
      #expect(board == states[index])
    }
    for (index, changeset) in redos.reversed().enumerated() {
      let back = try board.undo(changeset)
      #expect(back == undos[index])
      #expect(board == states[index + 1])
    }
  }

  @Test(arguments: seeds)
  func rollbackAndImportAreEachOthersInverse(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let first = Board.random(&generator, edits: 30)
    var board = first
    var changesets: [ZDCChangeset] = []
    for _ in 0..<5 {
      for _ in 0..<4 { board.editAtRandom(&generator) }
      changesets += try board.changeset().map { [$0] } ?? []
    }
    let last = board
    let one = try board.mergeChangesets(changesets)
    try board.importChangesets(changesets)
    #expect(board == last)
    #expect(try (board.peakChangeset() ?? .empty) == one)
    board.rollback()
    #expect(board == first)
  }

  @Test(arguments: seeds)
  func trackedChangesAreTheDifference(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let first = Board.random(&generator, edits: 30)
    var board = first
    for _ in 0..<12 { board.editAtRandom(&generator) }
    #expect(board.original == first)
    #expect(try board.peakChangeset() == board.changeset(since: first))
    #expect(board.hasChanges == (board != first))
  }

  @Test(arguments: seeds)
  func mergeWithWhatWeBeganWithIsOurs_mergeOfNothingIsTheirs_mergeWithOursIsOurs(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let base = Board.random(&generator, edits: 40)
    var mine = base
    for _ in 0..<15 { mine.editAtRandom(&generator) }
    let pending = try mine.changeset().map { [$0] } ?? []
    for cloud in [base, mine] {
      var merged = mine
      let report = try merged.mergeReporting(cloudVersion: cloud, pendingChangesets: pending)
      #expect(merged == mine && report.conflicts == [] && report.undo.isEmpty)
    }
    var theirs = base
    for _ in 0..<15 { theirs.editAtRandom(&generator) }
    theirs.clearChangeTracking()
    var merged = base
    try merged.merge(cloudVersion: theirs, pendingChangesets: [])
    #expect(merged == theirs)
  }

  @Test(arguments: seeds)
  func mergingTwiceIsMergingOnce(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let base = Board.random(&generator, edits: 40)
    var mine = base
    var theirs = base
    for _ in 0..<15 {
      mine.editAtRandom(&generator)
      theirs.editAtRandom(&generator)
    }
    theirs.clearChangeTracking()
    let pending = try mine.changeset().map { [$0] } ?? []
    let before = mine
    let report = try mine.mergeReporting(cloudVersion: theirs, pendingChangesets: pending)
    var again = mine
    let second = try again.mergeReporting(
      cloudVersion: theirs, pendingChangesets: report.remaining.map { [$0] } ?? [])
    #expect(again == mine && second.conflicts == [] && second.remaining == report.remaining)
    _ = try mine.undo(report.undo)
    #expect(mine == before)
  }

  /// Applies the table's rules to each single key, and compares the result with the merge of everything.
  @Test(arguments: seeds)
  func everyKeyFollowsTheTable(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let base = Board.random(&generator, edits: 50)
    var mine = base
    var theirs = base
    for _ in 0..<25 {
      mine.editAtRandom(&generator)
      theirs.editAtRandom(&generator)
    }
    theirs.clearChangeTracking()
    let pending = try mine.changeset().map { [$0] } ?? []
    let local = mine
    let report = try mine.mergeReporting(cloudVersion: theirs, pendingChangesets: pending)
    let reported = Set(report.conflicts.map(\.path))

    func check<Value: Equatable>(_ path: [String], _ value: (Board) -> Value) {
      let (o, l, c) = (value(base), value(local), value(theirs))
      let isConflict = l != o && c != o && l != c
      #expect(value(mine) == (l == o || isConflict ? c : l), "\(path)")
      #expect(reported.contains(path) == isConflict, "\(path)")
    }
    check(["name"]) { $0.name }
    check(["note"]) { $0.note }
    check(["cover", "title"]) { $0.cover.title }
    check(["cover", "points"]) { $0.cover.points }
    for key in 0..<6 {
      check(["settings", "\(key)"]) { $0.settings["\(key)"] }
      check(["members", "\(key)"]) { $0.members.contains(key) }
      check(["columns", "\(key)"]) { $0.columns.contains("\(key)") }
      let inAll = [base, local, theirs].allSatisfy { $0.archive[key] != nil }
      if inAll {
        check(["archive", "\(key)", "title"]) { $0.archive[key]?.title }
        check(["archive", "\(key)", "points"]) { $0.archive[key]?.points }
      } else {
        check(["archive", "\(key)"]) { $0.archive[key] }
      }
    }
  }

  /// Elements that only one side touched keep the order of that side.
  @Test(arguments: seeds)
  func orderOfOneSideIsKept(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let base = ZDCOrderedSet(0..<20)
    var mine = base
    var theirs = base
    // The first half is moved only locally, the second only in the cloud, each within itself.
    for _ in 0..<6 {
      mine.move(from: Int.random(in: 0..<10, using: &generator), to: Int.random(in: 0..<10, using: &generator))
      theirs.move(from: Int.random(in: 10..<20, using: &generator), to: Int.random(in: 10..<20, using: &generator))
    }
    theirs.clearChangeTracking()
    let expected = Array(mine.prefix(10)) + Array(theirs.suffix(10))
    let pending = try mine.changeset().map { [$0] } ?? []
    let report = try mine.mergeReporting(cloudVersion: theirs, pendingChangesets: pending)
    #expect(Array(mine) == expected)
    #expect(report.conflicts == [])
  }

  @Test func aHundredThousandElementsAreMergedInOneGo() throws {
    // Reversed on one side, rotated on the other: a quadratic algorithm would not finish.
    let numbers = Array(0..<100_000)
    let base = ZDCOrderedSet(numbers)
    let mine = ZDCOrderedSet(numbers.reversed())
    let theirs = ZDCOrderedSet(numbers[50_000...] + numbers[..<50_000])
    var merged = mine
    let pending = try #require(try merged.changeset(since: base))
    try merged.merge(cloudVersion: theirs, pendingChangesets: [pending])
    #expect(merged.count == 100_000)
    _ = try merged.undo(try #require(try merged.changeset(since: base)))
    let isBase = merged == base  // separate from #expect, which would print both
    #expect(isBase)
  }
}
