import Testing
import ZDCMerge

/// Part 7.3 of the reference, written again with plain values: no changesets, no computed base, one line for each row
/// of its table. Random histories of several changesets, merged several times.
private enum Reference {
  /// The keys that a changeset mentions, with their values before it.
  typealias Mention<Key: Hashable, Value> = [Key: Value?]

  /// Returns the changes between two states, key by key.
  static func mention<Key: Hashable, Value: Equatable>(
    from old: [Key: Value], to new: [Key: Value]
  ) -> Mention<Key, Value> {
    var mention: Mention<Key, Value> = [:]
    for key in Set(old.keys).union(new.keys) where old[key] != new[key] { mention[key] = .some(old[key]) }
    return mention
  }

  struct Row<Value: Equatable>: Equatable {
    var result: Value?
    /// The local value, if it was overridden: nil inside for a deletion.
    var lost: Value??
  }

  /// Merges one key by the table. `mentions` are those of the pending changesets, oldest first.
  static func merge<Key: Hashable, Value: Equatable>(
    _ key: Key, local: [Key: Value], cloud: [Key: Value], mentions: [Mention<Key, Value>]
  ) -> Row<Value> {
    let (l, c) = (local[key], cloud[key])
    // "old value in the oldest pending changeset that mentions the key"
    guard let o = mentions.lazy.compactMap({ $0[key] }).first else {
      return Row(result: c, lost: nil)  // key not locally modified: take C (also if removed there)
    }
    if l == c { return Row(result: l, lost: nil) }  // no difference
    if c == o { return Row(result: l, lost: nil) }  // keep L: modified, added (absent in the cloud), or stays deleted
    // Both modified: C wins; deleted in the cloud: the deletion wins; locally deleted: C comes back.
    return Row(result: c, lost: l == o ? nil : .some(l))
  }

  /// "union of the two sides' additions/removals relative to O"
  static func merge(_ o: Set<Int>, local: Set<Int>, cloud: Set<Int>) -> Set<Int> {
    let added = local.subtracting(o).union(cloud.subtracting(o))
    let removed = o.subtracting(local).union(o.subtracting(cloud))
    return o.union(added).subtracting(removed)
  }
}

@Suite struct ReferenceTests {
  private static let seeds = Array(UInt64(1)...60)
  private typealias Numbers = [String: Int]

  private static func edit(_ values: Numbers, _ generator: inout SeededGenerator) -> Numbers {
    var values = values
    for _ in 0..<Int.random(in: 1...4, using: &generator) {
      let key = String(Int.random(in: 0..<7, using: &generator))
      values[key] = Int.random(in: 0..<4, using: &generator) == 0 ? nil : Int.random(in: 0..<3, using: &generator)
    }
    return values
  }

  /// Applies a state to a tracked value, key by key.
  private static func follow(_ state: Numbers, _ tracked: inout ZDCDictionary<String, Int>) {
    for key in Set(tracked.keys).union(state.keys) where tracked[key] != state[key] { tracked[key] = state[key] }
  }

  @Test("reference 7.3: values by key, over several edits, clouds and merges", arguments: seeds)
  func valuesByKey(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    var cloud = Self.edit(Self.edit([:], &generator), &generator)
    var local = cloud
    var tracked = ZDCDictionary(cloud)
    for _ in 0..<4 {
      var mentions: [Reference.Mention<String, Int>] = []
      var pending: [ZDCChangeset] = []
      for _ in 0..<Int.random(in: 0...4, using: &generator) {
        let next = Self.edit(local, &generator)
        mentions.append(Reference.mention(from: local, to: next))
        Self.follow(next, &tracked)
        pending += try tracked.changeset().map { [$0] } ?? []
        local = next
      }
      for _ in 0..<Int.random(in: 0...3, using: &generator) { cloud = Self.edit(cloud, &generator) }
      let report = try tracked.mergeReporting(cloudVersion: ZDCDictionary(cloud), pendingChangesets: pending)
      try check(report, tracked, local: local, cloud: cloud, mentions: mentions)
      // The merged state is uploaded, and the others continue from it.
      local = tracked.rawDictionary
      cloud = local
    }
  }

  private func check(
    _ report: ZDCMergeReport, _ merged: ZDCDictionary<String, Int>, local: Numbers, cloud: Numbers,
    mentions: [Reference.Mention<String, Int>]
  ) throws {
    var regained = merged
    if let lost = report.lost { _ = try regained.undo(lost) }
    for key in Set(local.keys).union(cloud.keys).sorted() {
      let row = Reference.merge(key, local: local, cloud: cloud, mentions: mentions)
      #expect(merged[key] == row.result, "\(key)")
      let conflict = report.conflicts.first { $0.path == [key] }
      #expect((conflict != nil) == (row.lost != nil), "\(key)")
      guard let lost = row.lost else {
        #expect(regained[key] == row.result, "\(key)")
        continue
      }
      #expect(try conflict?.value(\.mine, as: Int.self) == lost, "\(key)")
      #expect(regained[key] == lost, "\(key)")
    }
    #expect(report.conflicts.count == Set(report.conflicts.map(\.path)).count)
  }

  @Test("reference 7.3: properties, and values inside of values", arguments: seeds)
  func nested(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    func random(_ board: Board, _ generator: inout SeededGenerator) -> Board {
      var board = board
      for _ in 0..<Int.random(in: 1...4, using: &generator) {
        let text = String(Int.random(in: 0..<3, using: &generator))
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: board.name = text
        case 1: board.cover.title = text
        case 2: board.cards["1"]?.title = text
        default: board.cards["2"]?.points = Int(text)
        }
      }
      return board
    }
    /// Returns every property by its path, as one flat dictionary.
    func flat(_ board: Board) -> [String: String] {
      [
        "name": board.name, "cover/title": board.cover.title, "cards/1/title": board.cards["1"]?.title ?? "none",
        "cards/2/points": board.cards["2"]?.points.map(String.init) ?? "nil",
      ]
    }
    let base = Board(cards: ["1": Card(), "2": Card()])
    var local = base
    var mentions: [Reference.Mention<String, String>] = []
    var pending: [ZDCChangeset] = []
    for _ in 0..<4 {
      let before = flat(local)
      local = random(local, &generator)
      mentions.append(Reference.mention(from: before, to: flat(local)))
      pending += try local.changeset().map { [$0] } ?? []
    }
    var cloud = random(random(base, &generator), &generator)
    cloud.clearChangeTracking()
    let before = flat(local)
    let report = try local.mergeReporting(cloudVersion: cloud, pendingChangesets: pending)
    for key in before.keys.sorted() {
      let row = Reference.merge(key, local: before, cloud: flat(cloud), mentions: mentions)
      #expect(flat(local)[key] == row.result, "\(key)")
      let isReported = report.conflicts.contains { $0.path.joined(separator: "/") == key }
      #expect(isReported == (row.lost != nil), "\(key)")
    }
  }

  @Test("reference 7.3: sets are the union of both sides' additions and removals", arguments: seeds)
  func sets(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let base = Set((0..<6).map { _ in Int.random(in: 0..<10, using: &generator) })
    var local = ZDCSet(base)
    var pending: [ZDCChangeset] = []
    for _ in 0..<5 {
      for _ in 0..<3 {
        let member = Int.random(in: 0..<10, using: &generator)
        if Bool.random(using: &generator) { local.insert(member) } else { local.remove(member) }
      }
      pending += try local.changeset().map { [$0] } ?? []
    }
    let cloud = Set((0..<6).map { _ in Int.random(in: 0..<10, using: &generator) })
    let expected = Reference.merge(base, local: local.rawSet, cloud: cloud)
    try local.merge(cloudVersion: ZDCSet(cloud), pendingChangesets: pending)
    #expect(local.rawSet == expected)
  }

  // MARK: Order

  enum Side: CaseIterable { case local, cloud }

  /// The moving side shuffles, adds and removes; the other side adds and removes at the end.
  @Test("reference 7.3: an order that one side moved is that side's", arguments: Side.allCases, seeds)
  func oneSideMoves(side: Side, seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let base = Array(0..<10)
    var moved = base.shuffled(using: &generator)
    moved.removeAll { $0 % 5 == Int.random(in: 0..<5, using: &generator) }
    moved.insert(100, at: Int.random(in: 0...moved.count, using: &generator))
    let still = base.filter { $0 != Int.random(in: 0..<10, using: &generator) } + [200]
    let (mine, theirs) = side == .local ? (moved, still) : (still, moved)
    let merged = try Self.merge(base: base, mine: mine, theirs: theirs)
    let shared = Set(merged)
    #expect(merged.filter(Set(moved).contains) == moved.filter(shared.contains))
    #expect(shared == Reference.merge(Set(base), local: Set(mine), cloud: Set(theirs)))
  }

  @Test("reference 7.3: an element that both sides moved is where the cloud has it", arguments: seeds)
  func bothSidesMove(seed: UInt64) throws {
    var generator = SeededGenerator(seed: seed)
    let base = Array(0..<8)
    let element = Int.random(in: 1..<7, using: &generator)
    func moved(to index: Int) -> [Int] {
      var order = base.filter { $0 != element }
      order.insert(element, at: index)
      return order
    }
    // At least two places away, so that the move has only one description.
    let places = Array(0..<8).filter { abs($0 - element) >= 2 }
    let mine = moved(to: places[Int.random(in: 0..<places.count, using: &generator)])
    let theirs = moved(to: places[Int.random(in: 0..<places.count, using: &generator)])
    #expect(try Self.merge(base: base, mine: mine, theirs: theirs) == theirs)
  }

  /// Merges with every ordered collection, which must agree, and returns the common result.
  private static func merge(base: [Int], mine: [Int], theirs: [Int]) throws -> [Int] {
    var set = ZDCOrderedSet(mine)
    let ofSet = try set.changeset(since: ZDCOrderedSet(base))
    try set.merge(cloudVersion: ZDCOrderedSet(theirs), pendingChangesets: ofSet.map { [$0] } ?? [])
    var array = ZDCArray(mine)
    let ofArray = try array.changeset(since: ZDCArray(base))
    try array.merge(cloudVersion: ZDCArray(theirs), pendingChangesets: ofArray.map { [$0] } ?? [])
    func dictionary(_ keys: [Int]) -> ZDCOrderedDictionary<Int, Int> { ZDCOrderedDictionary(keys.map { ($0, 0) }) }
    var keyed = dictionary(mine)
    let ofKeyed = try keyed.changeset(since: dictionary(base))
    try keyed.merge(cloudVersion: dictionary(theirs), pendingChangesets: ofKeyed.map { [$0] } ?? [])
    #expect(Array(set) == array.rawArray && Array(set) == keyed.keys)
    return Array(set)
  }
}
