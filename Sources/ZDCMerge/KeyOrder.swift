/// Orders of keys, each there once. Everything here takes O(n log n).
enum KeyOrder {
  /// Keys of both orders that nobody needs to have moved: the longest sequence that has the same order in both.
  static func unmoved<Key: Hashable>(from old: [Key], to new: [Key]) -> Set<Key> {
    var positions: [Key: Int] = [:]
    for (index, key) in old.enumerated() { positions[key] = index }
    let common = new.compactMap { positions[$0] }
    return Set(longestIncreasing(common).map { old[$0] })
  }

  /// The longest increasing subsequence, by the piles of patience sorting.
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

  /// `kept`, with the followers of each key behind it; those of nil come first.
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

    /// Reports that the local order of what both moved was lost, unless both moved it alike.
    func report<Value: Encodable>(
      _ sides: Sides<Key>, value: @escaping (Key) -> Value, context: inout ZDCMergeContext
    ) {
      let mine = sides.mine.filter(contested.contains)
      guard !contested.isEmpty, neighbours(sides.mine) != neighbours(sides.theirs) else { return }
      let values = { (keys: [Key]) in keys.filter(contested.contains).map(value) }
      context.report(
        .order, base: values(sides.base), mine: mine.map(value), theirs: values(sides.theirs), result: values(order))
    }

    /// What stands before each contested key.
    private func neighbours(_ keys: [Key]) -> [Key: Key?] {
      let pairs = zip(keys, [nil] + keys.map(Optional.some)).filter { contested.contains($0.0) }
      return Dictionary(pairs, uniquingKeysWith: { first, _ in first })
    }
  }

  /// Where each key is there or not; nothing is worth a conflict.
  static func mergeMembers<Key: Hashable>(_ sides: Sides<Key>, prefersLocal: Bool) -> Merged<Key> {
    let (base, mine, theirs) = (Set(sides.base), Set(sides.mine), Set(sides.theirs))
    return merge(sides, prefersLocal: prefersLocal) {
      ThreeWay.resolve(base: base.contains($0), mine: mine.contains($0), theirs: theirs.contains($0))
    }
  }

  /// The merged order of the keys that are present.
  ///
  /// Keys that the local side alone has placed (added, or moved) stand behind the key that they stand behind there;
  /// everything else has the cloud's order.
  ///
  /// - Parameter prefersLocal: Whether keys that both sides have moved have their local place.
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
