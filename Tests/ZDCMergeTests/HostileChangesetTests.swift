import Foundation
import Testing
import ZDCMerge

/// Changesets stay in a database for years and may come from another version of the app. Whatever they hold, the result
/// is a typed error or a value, never a trap. An error leaves the value unchanged.
@Suite struct HostileChangesetTests {
  private func use(_ changeset: ZDCChangeset, on board: Board) throws {
    var copy = board
    do throws(ZDCSyncableError) {
      let redo = try copy.undo(changeset)
      _ = try copy.undo(redo)
      #expect(copy == board)
    } catch {
      #expect(copy == board, "\(error)")
    }
    copy = board
    do throws(ZDCSyncableError) {
      try copy.merge(cloudVersion: Board(name: "cloud"), pendingChangesets: [changeset, changeset])
    } catch {
      #expect(copy == board, "\(error)")
    }
    // An inconsistent dictionary would trap here.
    #expect(copy.cards.map(\.key) == copy.cards.keys)
    #expect(copy.cards.values.count == copy.cards.count)
    #expect(Set(copy.columns).count == copy.columns.count)
  }

  @Test(arguments: [
    "", "Z", "ZCS1", "ZCS2\0\0\0\0\0\0\0\0\0", "ZCS1\u{1}\u{7f}\u{7f}\u{7f}\u{7f}", "ZCS1\u{9}\0\0\0\0\0\0\0\0",
    "ZCS1\0\0\0\0\0\0\0\0\0more", "ZCS1\0\0\0\0\u{1}\0\0\0\0\0\0\0\0", "{\"values\":{}}",
  ])
  func invalidChangesetsAreMalformed_andKeptByteByByte(text: String) {
    let changeset = ZDCChangeset(encoded: Data(text.utf8))
    #expect(changeset.encoded == Data(text.utf8))
    #expect(!changeset.isEmpty)
    var board = Board(name: "a")
    #expect(throws: ZDCSyncableError(.malformedChangeset)) { _ = try board.undo(changeset) }
    #expect(throws: ZDCSyncableError(.malformedChangeset)) {
      try board.merge(cloudVersion: Board(), pendingChangesets: [changeset])
    }
    #expect(board == Board(name: "a"))
  }

  /// The leaves of a changed order: added, removed or moved elements, lengths of the runs, the elements before them.
  @Test(arguments: [
    ["[]", #"["x","x"]"#, "[2]", "[]"],  // a key twice
    ["[]", #"["x"]"#, "[2]", "[]"], ["[]", #"["x"]"#, "[0]", "[]"], ["[]", #"["x"]"#, "[-1]", "[]"],
    ["[]", #"["x"]"#, "[9223372036854775807]", "[]"], ["[]", #"["x"]"#, "[]", "[]"],
    ["[]", #"["x","y","z"]"#, "[1,1,1]", #"["a"]"#],  // two runs at the beginning
    ["[]", #"["x"]"#, "[1]", #"["a","b"]"#], ["[]", "[]", "[]"], ["[]", #"["x"]"#, "[1]", "[]", "[]"],
    ["", "", "", ""],
    ["[]", #"["x"]"#, "[1]", "["],
  ])
  func anOrderThatContradictsItselfIsMalformed(leaves: [String]) {
    var columns: ZDCOrderedSet = ["a", "b"]
    let changeset = Self.changeset(kind: 6, leaves: leaves)
    #expect(throws: ZDCSyncableError(.malformedChangeset)) { _ = try columns.undo(changeset) }
    #expect(columns == ["a", "b"])
  }

  @Test func aWellFormedOrderOfOurOwnMakingIsUndone() throws {
    var columns: ZDCOrderedSet = ["a", "b", "new"]
    _ = try columns.undo(Self.changeset(kind: 6, leaves: [#"["new"]"#, #"["x","y"]"#, "[1,1]", #"["a"]"#]))
    #expect(columns == ["x", "a", "y", "b"])
  }

  /// Returns a changeset without parts, built byte by byte.
  private static func changeset(kind: UInt8, leaves: [String]) -> ZDCChangeset {
    func count(_ number: Int) -> [UInt8] { [0, 0, UInt8(number / 256), UInt8(number % 256)] }
    var bytes = Array("ZCS1".utf8) + [kind] + count(leaves.count)
    for leaf in leaves { bytes += count(leaf.utf8.count) + Array(leaf.utf8) }
    return ZDCChangeset(encoded: Data(bytes + count(0)))
  }

  @Test func endlessNestingIsMalformed() {
    var bytes = [UInt8]("ZCS1".utf8)
    for _ in 0..<1_000_000 { bytes += [2, 0, 0, 0, 0, 0, 0, 0, 1] }
    var board = Board()
    #expect(throws: ZDCSyncableError(.malformedChangeset)) { _ = try board.undo(ZDCChangeset(encoded: Data(bytes))) }
  }

  @Test func randomBytesNeverTrap() throws {
    var generator = SeededGenerator(seed: 1)
    let board = Board.random(&generator, edits: 40)
    for _ in 0..<500 {
      let count = Int.random(in: 0..<60, using: &generator)
      let bytes = (0..<count).map { _ in UInt8.random(in: 0...8, using: &generator) }
      try use(ZDCChangeset(encoded: Data("ZCS1".utf8) + Data(bytes)), on: board)
    }
  }

  @Test func damagedChangesetsNeverTrap() throws {
    var generator = SeededGenerator(seed: 2)
    for _ in 0..<600 {
      var board = Board.random(&generator, edits: 30)
      for _ in 0..<6 { board.editAtRandom(&generator) }
      guard var bytes = try board.changeset()?.encoded else { continue }
      for _ in 0..<Int.random(in: 1...3, using: &generator) {
        let index = Int.random(in: 0..<bytes.count, using: &generator)
        // Digits and structure change the meaning of JSON without breaking it.
        bytes[index] = Array("0123456789[],\"".utf8).randomElement(using: &generator) ?? 0
      }
      try use(ZDCChangeset(encoded: bytes), on: board)
    }
  }

  @Test func changesetsOfOtherValuesNeverTrap() throws {
    var generator = SeededGenerator(seed: 3)
    for _ in 0..<300 {
      var other = Board.random(&generator, edits: 30)
      for _ in 0..<6 { other.editAtRandom(&generator) }
      guard let changeset = try other.changeset() else { continue }
      try use(changeset, on: Board.random(&generator, edits: 30))
    }
  }

  @Test func anotherKindOfValueIsMismatched() throws {
    var members: ZDCSet = [1]
    members.insert(2)
    let ofASet = try members.takenChangeset()
    var log: ZDCArray = [1]
    #expect(throws: ZDCSyncableError(.mismatchedChangeset)) { _ = try log.undo(ofASet) }
  }

  @Test func anotherTypeOfValueIsIncorrect() throws {
    struct Old: ZDCRecord {
      @Syncable var name = 1
      static var syncableFields: [ZDCField<Old>] { [ZDCField("name", \._name)] }
    }
    var old = Old()
    old.name = 2
    let changeset = try old.takenChangeset()
    var board = Board(name: "a")
    #expect(throws: ZDCSyncableError(.incorrectType)) { _ = try board.undo(changeset) }
  }

  @Test func aPropertyThatIsGoneIsMismatched_andIgnoredInAMerge() throws {
    struct Newer: ZDCRecord {
      @Syncable var name = "a"
      @Syncable var gone = 1
      static var syncableFields: [ZDCField<Newer>] { [ZDCField("name", \._name), ZDCField("gone", \._gone)] }
    }
    var newer = Newer()
    newer.gone = 2
    newer.name = "b"
    let changeset = try newer.takenChangeset()
    var board = Board(name: "b")
    #expect(throws: ZDCSyncableError(.mismatchedChangeset)) { _ = try board.undo(changeset) }
    try board.merge(cloudVersion: Board(name: "a"), pendingChangesets: [changeset])
    #expect(board.name == "b")
  }

  @Test func aKeyThatIsNotThereIsMismatched() throws {
    var settings: ZDCDictionary = ["a": 1]
    settings["b"] = 2
    let changeset = try settings.takenChangeset()
    var other: ZDCDictionary = ["a": 1]
    #expect(throws: ZDCSyncableError(.mismatchedChangeset)) { _ = try other.undo(changeset) }
  }

  @Test func aValueWithoutAPlaceIsMismatched_andGetsNoneInAMerge() throws {
    var values: ZDCOrderedDictionary = ["a": 1]
    values["a"] = 2
    let changeset = try values.takenChangeset()
    // An edit that no changeset contains has removed the key.
    var other: ZDCOrderedDictionary = ["b": 1]
    #expect(throws: ZDCSyncableError(.mismatchedChangeset)) { _ = try other.undo(changeset) }
    #expect(other == ["b": 1] && other.rawDictionary == ["b": 1])
    try other.merge(cloudVersion: ["a": 1, "b": 1], pendingChangesets: [changeset])
    #expect(other.keys.sorted() == other.rawDictionary.keys.sorted())
  }

}

/// A value that refuses to be encoded: the error is reported where it happens, and nothing is lost.
@Suite struct StubbornValueTests {
  struct Stubborn: Codable, Hashable, Sendable {
    var number: Int
    init(number: Int) { self.number = number }
    init(from decoder: any Decoder) throws { number = 0 }
    func encode(to encoder: any Encoder) throws {
      throw EncodingError.invalidValue(self, .init(codingPath: [], debugDescription: "never"))
    }
  }

  @Test func itsChangesetIsNotMade_andItsChangesStayTracked() throws {
    var property = Syncable(wrappedValue: Stubborn(number: 1))
    property.wrappedValue.number = 2
    #expect(throws: ZDCSyncableError(.notEncodable)) { _ = try property.changeset() }
    #expect(property.hasChanges && property.original.wrappedValue.number == 1)
    property.rollback()
    #expect(property.wrappedValue.number == 1)
  }

  @Test func noCollectionMakesAChangesetOfIt() {
    var dictionary: ZDCDictionary<String, Stubborn> = ["a": Stubborn(number: 1)]
    dictionary["a"] = nil
    #expect(throws: ZDCSyncableError(.notEncodable)) { _ = try dictionary.changeset() }
    var keys: ZDCDictionary<Stubborn, Int> = [Stubborn(number: 1): 1]
    keys[Stubborn(number: 1)] = nil
    #expect(throws: ZDCSyncableError(.notEncodable)) { _ = try keys.changeset() }
    var set: ZDCSet = [Stubborn(number: 1)]
    set.remove(Stubborn(number: 1))
    #expect(throws: ZDCSyncableError(.notEncodable)) { _ = try set.changeset() }
    var array: ZDCArray = [Stubborn(number: 1)]
    array.removeAll()
    #expect(throws: ZDCSyncableError(.notEncodable)) { _ = try array.changeset() }
    #expect(dictionary.hasChanges && keys.hasChanges && set.hasChanges && array.hasChanges)
  }

  /// A key that the pending changesets do not mention has the local value as its base; a key that both sides added has
  /// none.
  @Test func aMergeThatCannotTellWhatWasLost_changesNothing() throws {
    var local: ZDCDictionary<String, Stubborn> = [:]
    local["new"] = Stubborn(number: 1)
    let pending = try local.takenChangeset()
    let before = local
    let cloud: ZDCDictionary = ["new": Stubborn(number: 2)]
    #expect(throws: ZDCSyncableError(.notEncodable)) {
      try local.merge(cloudVersion: cloud, pendingChangesets: [pending])
    }
    #expect(local == before && !local.hasChanges)
  }
}

/// Nested values.
@Suite struct NestingTests {
  struct Tree: ZDCRecord, Codable, Equatable {
    @Syncable var name = ""
    var children: ZDCDictionary<String, Tree> = [:]

    static var syncableFields: [ZDCField<Tree>] { [ZDCField("name", \._name), ZDCField("children", \.children)] }

    /// Returns a chain of trees in which the innermost one has the name.
    static func chain(_ depth: Int, name: String) -> Tree {
      (1..<depth).reduce(Tree(name: name)) { tree, _ in Tree(children: ["child": tree]) }
    }
  }

  @Test func fiftyDeepIsRead_fiftyOneDeepIsMalformed() throws {
    for (depth, isRead) in [(50, true), (51, false)] {
      var tree = Tree.chain(depth, name: "new")
      let old = Tree.chain(depth, name: "old")
      let stored = ZDCChangeset(encoded: try #require(try tree.changeset(since: old)).encoded)
      if isRead {
        _ = try tree.undo(stored)
        #expect(tree == old)
      } else {
        #expect(throws: ZDCSyncableError(.malformedChangeset)) { _ = try tree.undo(stored) }
      }
    }
  }
}
