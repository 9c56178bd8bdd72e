/// Operations on orders of unique keys, all in O(n log n).
enum KeyOrder {
  /// Returns the keys that keep their relative order: a longest common subsequence of both orders.
  static func unmoved<Key: Hashable>(from old: [Key], to new: [Key]) -> Set<Key> {
    var positions: [Key: Int] = [:]
    for (index, key) in old.enumerated() { positions[key] = index }
    let common = new.compactMap { positions[$0] }
    return Set(longestIncreasing(common).map { old[$0] })
  }

  /// Returns the longest increasing subsequence, found by patience sorting.
  static func longestIncreasing(_ numbers: [Int]) -> [Int] {
    var tops: [Int] = []  // index of the smallest number that ends a sequence of each length
    var previous = [Int](repeating: -1, count: numbers.count)
    for (index, number) in numbers.enumerated() {
      var low = 0
      var high = tops.count
      while low < high {
        let middle = (low + high) / 2
        if numbers[tops[middle]] < number { low = middle + 1 } else { high = middle }
      }
      if low > 0 { previous[index] = tops[low - 1] }
      if low == tops.count { tops.append(index) } else { tops[low] = index }
    }
    var result: [Int] = []
    var index = tops.last ?? -1
    while index >= 0 {
      result.append(numbers[index])
      index = previous[index]
    }
    return result.reversed()
  }

  /// Returns `kept` with each key's followers after it; the followers of nil come first.
  static func insert<Key: Hashable>(_ followers: [Key?: [Key]], into kept: [Key]) -> [Key] {
    var result = followers[nil] ?? []
    for key in kept {
      result.append(key)
      result += followers[key] ?? []
    }
    return result
  }

  /// The three sides of a merge.
  struct Sides<Key: Hashable> {
    var base: [Key]
    var mine: [Key]
    var theirs: [Key]
  }

  /// A merged order, and the keys that both sides moved.
  struct Merged<Key: Hashable> {
    var order: [Key]
    var contested: Set<Key>

    /// Reports that the local order of the contested keys was lost, unless both sides moved them alike.
    func report<Value: Encodable>(
      _ sides: Sides<Key>, value: @escaping (Key) -> Value, context: inout ZDCMergeContext
    ) {
      let mine = sides.mine.filter(contested.contains)
      guard !contested.isEmpty, neighbours(sides.mine) != neighbours(sides.theirs) else { return }
      let values = { (keys: [Key]) in keys.filter(contested.contains).map(value) }
      context.report(
        .order, base: values(sides.base), mine: mine.map(value), theirs: values(sides.theirs), result: values(order))
    }

    /// Returns the predecessor of each contested key.
    private func neighbours(_ keys: [Key]) -> [Key: Key?] {
      let pairs = zip(keys, [nil] + keys.map(Optional.some)).filter { contested.contains($0.0) }
      return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
    }
  }

  /// Merges orders in which a key is either present or absent; presence never conflicts.
  static func mergeMembers<Key: Hashable>(_ sides: Sides<Key>, prefersLocal: Bool) -> Merged<Key> {
    let (base, mine, theirs) = (Set(sides.base), Set(sides.mine), Set(sides.theirs))
    return merge(sides, prefersLocal: prefersLocal) {
      ThreeWay.resolve(base: base.contains($0), mine: mine.contains($0), theirs: theirs.contains($0))
    }
  }

  /// Returns the merged order of the keys that are present.
  ///
  /// Keys that only the local side placed (added or moved) follow the same key as in the local order. All other keys
  /// have the cloud's order.
  ///
  /// - Parameter prefersLocal: Whether keys that both sides moved take their local position.
  static func merge<Key: Hashable>(
    _ sides: Sides<Key>, prefersLocal: Bool, isPresent: (Key) -> Bool
  ) -> Merged<Key> {
    let inCloud = Set(sides.theirs)
    let inBase = Set(sides.base)
    let stillHere = unmoved(from: sides.base, to: sides.mine)
    let stillThere = unmoved(from: sides.base, to: sides.theirs)
    let movedHere = { (key: Key) in inBase.contains(key) && !stillHere.contains(key) }
    let movedThere = { (key: Key) in inBase.contains(key) && !stillThere.contains(key) }

    var followers: [Key?: [Key]] = [:]
    var placedHere: Set<Key> = []
    var contested: Set<Key> = []
    var anchor: Key?
    for key in sides.mine where isPresent(key) {
      if inCloud.contains(key), !movedHere(key) || (movedThere(key) && !prefersLocal) {
        anchor = key
        if movedHere(key) { contested.insert(key) }
      } else {
        followers[anchor, default: []].append(key)
        placedHere.insert(key)
      }
    }
    let kept = sides.theirs.filter { isPresent($0) && !placedHere.contains($0) }
    return Merged(order: insert(followers, into: kept), contested: contested)
  }
}
