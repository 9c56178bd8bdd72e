import Foundation
import Testing
import ZDCMerge

@Suite struct ChangeTrackingTests {
  @Test func anUntouchedValueHasNoChangeset() throws {
    var board = Board(name: "a")
    #expect(!board.hasChanges)
    #expect(try board.peakChangeset() == nil)
    let taken = try board.changeset()
    #expect(taken == nil)
  }

  @Test func peakChangesetContinuesTracking_changesetRestartsIt() throws {
    var board = Board(name: "a")
    board.name = "b"
    let peak = try #require(try board.peakChangeset())
    #expect(board.hasChanges)
    let taken = try board.changeset()
    #expect(taken == peak)
    #expect(!board.hasChanges)
    let nothing = try board.changeset()
    #expect(nothing == nil)
  }

  @Test func changedAndChangedBackIsUnchanged() throws {
    var board = Board(name: "a", members: [1], log: [1, 2])
    board.name = "b"
    board.members.insert(2)
    board.log.append(3)
    board.name = "a"
    board.members.remove(2)
    board.log.removeLast()
    #expect(!board.hasChanges)
    let taken = try board.changeset()
    #expect(taken == nil)
  }

  @Test func aChangesetHoldsTheOldValues_notTheNew() throws {
    var board = Board(name: "old value")
    board.name = "new value"
    let bytes = try board.takenChangeset().encoded
    #expect(bytes.range(of: Data("old value".utf8)) != nil)
    #expect(bytes.range(of: Data("new value".utf8)) == nil)
  }

  @Test func clearChangeTrackingForgets_rollbackReverts() {
    var board = Board(name: "a", cards: ["x": Card(title: "1")])
    let before = board
    board.name = "b"
    board.cards["x"]?.title = "2"
    board.cards["y"] = Card()
    board.rollback()
    #expect(board == before)
    #expect(!board.hasChanges)

    board.cards["x"]?.title = "3"
    board.clearChangeTracking()
    #expect(!board.hasChanges)
    #expect(board.cards["x"]?.hasChanges == false)
    #expect(board.cards["x"]?.title == "3")
  }

  @Test func clearing_clearsTheValuesInside() {
    var board = Board(archive: [7: Card()], cards: ["x": Card()])
    board.cover.title = "new"
    board.archive[7]?.title = "new"
    board.cards["x"]?.title = "new"
    #expect(board.cover.hasChanges && board.archive[7]?.hasChanges == true && board.cards["x"]?.hasChanges == true)
    board.clearChangeTracking()
    #expect(!board.cover.hasChanges && board.archive[7]?.hasChanges == false && board.cards["x"]?.hasChanges == false)
    #expect(board.archive[7]?.title == "new")
  }

  @Test func undoGivesTheRedo_andRedoTheUndo() throws {
    var board = Board(name: "a", columns: ["1", "2", "3"])
    let first = board
    board.name = "b"
    board.columns.move(from: 0, to: 2)
    let second = board
    let undo = try board.takenChangeset()
    let redo = try board.undo(undo)
    #expect(board == first)
    #expect(!board.hasChanges)
    let back = try board.undo(redo)
    #expect(back == undo)
    #expect(board == second)
  }

  @Test func performUndoLeavesTheRedoInTheTrackedChanges() throws {
    var board = Board(name: "a")
    board.name = "b"
    let undo = try board.takenChangeset()
    try board.performUndo(undo)
    #expect(board.hasChanges)
    let redo = try board.takenChangeset()
    try board.performUndo(redo)
    #expect(board.name == "b")
  }

  @Test func callsThatWouldLoseChangesThrowHasChanges() throws {
    var board = Board(name: "a")
    board.name = "b"
    let changeset = try #require(try board.peakChangeset())
    let calls: [(inout Board) throws -> Void] = [
      { _ = try $0.undo(changeset) }, { try $0.performUndo(changeset) }, { _ = try $0.mergeChangesets([changeset]) },
      { try $0.importChangesets([changeset]) }, { try $0.merge(cloudVersion: Board(), pendingChangesets: []) },
    ]
    for call in calls {
      #expect(throws: ZDCSyncableError(.hasChanges)) { try call(&board) }
      #expect(board.name == "b" && board.hasChanges)
    }
  }

  @Test func mergeChangesetsMakesOneOfMany() throws {
    var board = Board(name: "a")
    let first = board
    var changesets: [ZDCChangeset] = []
    for name in ["b", "c", "d"] {
      board.name = name
      board.log.append(board.log.count)
      changesets.append(try board.takenChangeset())
    }
    let one = try board.mergeChangesets(changesets)
    #expect(!board.hasChanges)
    _ = try board.undo(one)
    #expect(board == first)
  }

  @Test func importChangesetsMakesThemTrackedChangesAgain() throws {
    var board = Board(name: "a")
    let first = board
    board.name = "b"
    let changeset = try board.takenChangeset()
    try board.importChangesets([changeset])
    #expect(board.hasChanges)
    #expect(try board.peakChangeset() == changeset)
    board.rollback()
    #expect(board == first)
  }

  @Test func aValueIsEncodedWithoutItsTracking() throws {
    var board = Board(name: "a", cards: ["x": Card(title: "1", points: 3)], members: [1], log: [1, 1])
    let untouched = board
    board.name = "b"
    board.name = "a"
    let json = try JSONEncoder().encode(board)
    let read = try JSONDecoder().decode(Board.self, from: json)
    #expect(read == untouched)
    #expect(!read.hasChanges)
    #expect(!String(decoding: json, as: UTF8.self).contains("before"))
  }

  @Test func anOptionalPropertyMayBeMissing() throws {
    let card = try JSONDecoder().decode(Card.self, from: Data(#"{"title":"t","labels":["x"]}"#.utf8))
    #expect(card == Card(title: "t", points: nil, labels: ["x"]))
    let json = String(decoding: try JSONEncoder().encode(card), as: UTF8.self)
    #expect(!json.contains("points"))
  }

  @Test func aKeyThatIsThereTwiceIsRefused() {
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(ZDCOrderedSet<Int>.self, from: Data("[1,2,1]".utf8))
    }
    #expect(throws: DecodingError.self) {
      try JSONDecoder().decode(ZDCOrderedDictionary<String, Int>.self, from: Data(#"["a",1,"a",2]"#.utf8))
    }
  }

  @Test func notANumberIsNotAChange() throws {
    struct Sample: ZDCRecord {
      @Syncable var value = 0.0
      var byKey: ZDCDictionary<String, Double> = [:]
      static var syncableFields: [ZDCField<Sample>] { [ZDCField("value", \._value), ZDCField("byKey", \.byKey)] }
    }
    var sample = Sample()
    sample.value = .nan
    sample.byKey["x"] = .infinity
    let changeset = try sample.takenChangeset()
    #expect(!sample.hasChanges)
    try sample.merge(cloudVersion: sample, pendingChangesets: [changeset])
    #expect(sample.value.isNaN)
    let redo = try sample.undo(changeset)
    #expect(sample.value == 0)
    _ = try sample.undo(redo)
    #expect(sample.value.isNaN && sample.byKey["x"] == .infinity)
  }

  @Test func aForgottenFieldIsFound() {
    struct TransactionCache: ZDCRecord {
      @Syncable var listed = 0
      @Syncable var forgotten = 0
      var alsoForgotten: ZDCSet<Int> = []
      var plain = 0
      static var syncableFields: [ZDCField<TransactionCache>] {
        [ZDCField("listed", \._listed), ZDCField("listed", \._listed)]
      }
    }
    #expect(TransactionCache.unlistedFields(of: TransactionCache()) == ["alsoForgotten", "forgotten", "listed"])
    #expect(Board.unlistedFields(of: Board()) == [])
    #expect(Card.unlistedFields(of: Card()) == [])
  }

  @Test func aChangesetGoesThroughCodableAndBytes() throws {
    var board = Board(name: "a")
    board.name = "b"
    board.log.append(1)
    let changeset = try board.takenChangeset()
    #expect(ZDCChangeset(encoded: changeset.encoded) == changeset)
    let json = try JSONEncoder().encode(changeset)
    #expect(try JSONDecoder().decode(ZDCChangeset.self, from: json) == changeset)
    #expect(ZDCChangeset.empty.isEmpty && !changeset.isEmpty)
    _ = try board.undo(.empty)
    #expect(board.name == "b")
  }

  @Test func theSameChangeIsTheSameBytesInEveryRun() throws {
    var dictionary = ZDCDictionary<String, Int>(["c": 1, "a": 2, "b": 3])
    dictionary.removeAll()
    let text = String(decoding: try dictionary.takenChangeset().encoded, as: UTF8.self)
    #expect(text.contains(#"["a","b","c"]"#) && text.contains("[2,3,1]"))
  }

  @Test func aCopyIsItsOwn() {
    let card = Card(title: "a")
    var copy = card.copy()
    copy.title = "b"
    #expect(card.title == "a" && !card.hasChanges && copy.hasChanges)
  }
}
