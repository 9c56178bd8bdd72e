import ZeroDarkCloudTesting

/// A random number generator that repeats its numbers for the same seed (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
  private var state: UInt64

  /// The seed is mixed first: `next()` adds a constant to the state, so a state that grows with the seed by the same
  /// constant would make each seed's numbers those of the seed before, without the first one.
  init(seed: UInt64) { state = Self.mix(seed &+ 0x1234_5678_9ABC_DEF1) }

  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    return Self.mix(state)
  }

  private static func mix(_ number: UInt64) -> UInt64 {
    var value = number
    value = (value ^ (value >> 30)) &* 0xBF58_476D_1CE4_E5B9
    value = (value ^ (value >> 27)) &* 0x94D0_49BB_1331_11EB
    return value ^ (value >> 31)
  }
}

/// The texts that a history must not lose: every text that was written, unless a device deleted its node or a node that
/// contained it.
struct HistoryModel {
  private var nodes: [String: Set<String>] = [:]
  private var deleted: Set<String> = []
  private var parents: [String: Set<String>] = [:]
  private var given: Set<String> = []

  var tokens: [String] { nodes.keys.sorted() }

  /// Records that a text was written into a node.
  mutating func wrote(_ token: String, cloudID: String) { nodes[token, default: []].insert(cloudID) }

  /// Records that a node was put below another.
  mutating func placed(_ cloudID: String, below parent: String) { parents[cloudID, default: []].insert(parent) }

  /// Records the deletion of a node and of its subtree on that device, with their texts.
  mutating func delete(_ cloudIDs: [String], texts: [String]) {
    deleted.formUnion(cloudIDs)
    given.formUnion(texts)
  }

  /// Returns whether the text may be gone.
  func mayBeGone(_ token: String) -> Bool {
    given.contains(token) || (nodes[token] ?? []).contains { isDeleted($0, seen: []) }
  }

  private func isDeleted(_ cloudID: String, seen: Set<String>) -> Bool {
    if deleted.contains(cloudID) { return true }
    let next = seen.union([cloudID])
    return (parents[cloudID] ?? []).subtracting(next).contains { isDeleted($0, seen: next) }
  }
}
