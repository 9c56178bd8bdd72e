import Testing
import ZDCMerge

/// A record inside another record's collection.
struct Card: ZDCRecord, Codable, Hashable {
  @Syncable var title = ""
  @Syncable var points: Int?
  var labels: ZDCSet<String> = []

  static var syncableFields: [ZDCField<Card>] {
    [ZDCField("title", \._title), ZDCField("points", \._points), ZDCField("labels", \.labels)]
  }
}

/// A record with one property of each kind.
struct Board: ZDCRecord, Codable, Hashable {
  @Syncable var name = ""
  @Syncable var note: String?
  @Syncable var cover = Card()
  var settings: ZDCDictionary<String, Int> = [:]
  var archive: ZDCDictionary<Int, Card> = [:]
  var cards: ZDCOrderedDictionary<String, Card> = [:]
  var members: ZDCSet<Int> = []
  var columns: ZDCOrderedSet<String> = []
  var log: ZDCArray<Int> = []

  static var syncableFields: [ZDCField<Board>] {
    [
      ZDCField("name", \._name), ZDCField("note", \._note), ZDCField("cover", \._cover),
      ZDCField("settings", \.settings), ZDCField("archive", \.archive), ZDCField("cards", \.cards),
      ZDCField("members", \.members), ZDCField("columns", \.columns), ZDCField("log", \.log),
    ]
  }
}

extension Card {
  mutating func editAtRandom(_ generator: inout some RandomNumberGenerator) {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: title = String(Int.random(in: 0..<4, using: &generator))
    case 1: points = Bool.random(using: &generator) ? nil : Int.random(in: 0..<3, using: &generator)
    case 2: labels.insert(String(Int.random(in: 0..<4, using: &generator)))
    default: labels.remove(String(Int.random(in: 0..<4, using: &generator)))
    }
  }
}

extension Board {
  /// Makes one small change. Values come from a small range, so that edits of several devices often conflict.
  mutating func editAtRandom(_ generator: inout some RandomNumberGenerator) {
    let small = Int.random(in: 0..<6, using: &generator)
    switch Int.random(in: 0..<9, using: &generator) {
    case 0: name = String(small)
    case 1: note = small < 2 ? nil : String(small)
    case 2: cover.editAtRandom(&generator)
    case 3: settings[String(small)] = Bool.random(using: &generator) ? nil : small
    case 4: archive.editAtRandom(small, &generator)
    case 5: cards.editAtRandom(String(small), &generator)
    case 6: if Bool.random(using: &generator) { members.insert(small) } else { members.remove(small) }
    case 7: columns.editAtRandom(String(small), &generator)
    default: log.editAtRandom(small, &generator)
    }
  }

  static func random(_ generator: inout some RandomNumberGenerator, edits: Int) -> Board {
    var board = Board()
    for _ in 0..<edits { board.editAtRandom(&generator) }
    board.clearChangeTracking()
    return board
  }
}

extension ZDCDictionary where Key == Int, Value == Card {
  fileprivate mutating func editAtRandom(_ key: Int, _ generator: inout some RandomNumberGenerator) {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0: self[key] = nil
    case 1: self[key] = Card(title: "new")
    default: self[key]?.editAtRandom(&generator)
    }
  }
}

extension ZDCOrderedDictionary where Key == String, Value == Card {
  fileprivate mutating func editAtRandom(_ key: String, _ generator: inout some RandomNumberGenerator) {
    switch Int.random(in: 0..<5, using: &generator) {
    case 0: self[key] = nil
    case 1: insert(Card(title: "new"), forKey: key, at: Int.random(in: 0...count, using: &generator))
    case 2 where !isEmpty:
      move(from: Int.random(in: 0..<count, using: &generator), to: Int.random(in: 0..<count, using: &generator))
    default: self[key]?.editAtRandom(&generator)
    }
  }
}

extension ZDCOrderedSet<String> {
  fileprivate mutating func editAtRandom(_ member: String, _ generator: inout some RandomNumberGenerator) {
    switch Int.random(in: 0..<3, using: &generator) {
    case 0: remove(member)
    case 1 where !isEmpty:
      move(from: Int.random(in: 0..<count, using: &generator), to: Int.random(in: 0..<count, using: &generator))
    default: insert(member, at: Int.random(in: 0...count, using: &generator))
    }
  }
}

extension ZDCArray<Int> {
  fileprivate mutating func editAtRandom(_ element: Int, _ generator: inout some RandomNumberGenerator) {
    switch Int.random(in: 0..<4, using: &generator) {
    case 0 where !isEmpty: remove(at: Int.random(in: 0..<count, using: &generator))
    case 1 where !isEmpty: self[Int.random(in: 0..<count, using: &generator)] = element
    case 2 where !isEmpty:
      move(from: Int.random(in: 0..<count, using: &generator), to: Int.random(in: 0..<count, using: &generator))
    default: insert(element, at: Int.random(in: 0...count, using: &generator))
    }
  }
}

extension ZDCSyncable {
  /// Returns the changeset of a value that must have changed.
  mutating func takenChangeset() throws -> ZDCChangeset {
    let changeset = try self.changeset()
    return try #require(changeset)
  }
}
