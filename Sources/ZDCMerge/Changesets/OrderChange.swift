internal import Foundation

/// The changes in a sequence of unique keys: added, removed, moved.
///
/// A position is identified by the preceding key, never by index. A changeset may also be undone after changes of
/// others were merged below it, when indexes are no longer meaningful.
///
/// Leaves: added keys; removed or moved keys, in their old order; the length of each run of adjacent ones; the key
/// before each run. The first run may have been at the beginning: then there is one fewer preceding key.
struct OrderChange<Key: Hashable & Codable & Sendable> {
  private struct Run {
    var after: Key?
    var keys: [Key]
  }

  private var added: [Key] = []
  private var runs: [Run] = []

  // MARK: Computing the difference

  init(from old: [Key], to new: [Key]) {
    guard old != new else { return }
    let kept = KeyOrder.unmoved(from: old, to: new)
    let oldKeys = Set(old)
    added = new.filter { !oldKeys.contains($0) }
    var previous: Key?
    var isOpen = false
    for key in old {
      if kept.contains(key) {
        previous = key
        isOpen = false
      } else if isOpen {
        runs[runs.count - 1].keys.append(key)
      } else {
        runs.append(Run(after: previous, keys: [key]))
        isOpen = true
      }
    }
  }

  func tree() throws(ZDCSyncableError) -> ChangeTree? {
    guard !(added.isEmpty && runs.isEmpty) else { return nil }
    let leaves = [
      try ValueCoding.encode(added), try ValueCoding.encode(runs.flatMap(\.keys)),
      try ValueCoding.encode(runs.map(\.keys.count)), try ValueCoding.encode(runs.compactMap(\.after)),
    ]
    return ChangeTree(.order, leaves: leaves)
  }

  // MARK: Undoing

  init(_ tree: ChangeTree) throws(ZDCSyncableError) {
    try tree.expectLeaves(4)
    try tree.expectChildren(0)
    added = try tree.leaf(0)
    let keys = try tree.leaf(1, [Key].self)
    guard Set(keys).count == keys.count else { throw ZDCSyncableError(.malformedChangeset) }
    let lengths = try tree.leaf(2, [Int].self)
    let anchors = try tree.leaf(3, [Key].self)
    let atStart = lengths.count - anchors.count
    guard atStart == 0 || atStart == 1 else { throw ZDCSyncableError(.malformedChangeset) }
    var rest = keys[...]
    for (index, length) in lengths.enumerated() {
      guard length > 0, length <= rest.count else { throw ZDCSyncableError(.malformedChangeset) }
      runs.append(Run(after: index < atStart ? nil : anchors[index - atStart], keys: Array(rest.prefix(length))))
      rest = rest.dropFirst(length)
    }
    guard rest.isEmpty else { throw ZDCSyncableError(.malformedChangeset) }
  }

  func revert(_ order: inout [Key], strictly: Bool) throws(ZDCSyncableError) {
    let present = Set(order)
    guard !strictly || added.allSatisfy(present.contains) else { throw ZDCSyncableError(.mismatchedChangeset) }
    let taken = Set(added).union(runs.flatMap(\.keys))
    let kept = order.filter { !taken.contains($0) }
    var followers: [Key?: [Key]] = [:]
    let anchors = Set(kept)
    for run in runs {
      // If the preceding key was removed, the end is the best position left.
      let isLost = run.after.map { !anchors.contains($0) } ?? false
      guard !(isLost && strictly) else { throw ZDCSyncableError(.mismatchedChangeset) }
      followers[isLost ? kept.last : run.after, default: []] += run.keys
    }
    order = KeyOrder.insert(followers, into: kept)
  }
}
