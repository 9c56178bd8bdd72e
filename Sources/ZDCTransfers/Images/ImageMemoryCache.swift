internal import Synchronization

/// Images in memory. Evicts the least recently used ones when the total cost exceeds the limit.
///
/// Not `NSCache`: outside Apple's platforms it applies its limits in a different order, and it does not define which
/// entry it evicts when.
package final class ImageMemoryCache<Image: Sendable>: Sendable {
  package struct Key: Sendable, Hashable {
    /// The owner: a node's uuid, or a userID.
    package var owner: String
    /// The identity of a user's avatar.
    package var identity: String?
    /// The variant; nil for the original image.
    package var processingID: String?
  }

  /// A read of an owner's image that is in progress. If the image changes in the meantime, the result is not cached.
  package struct Read: Sendable {
    fileprivate let owner: String
    fileprivate let number: UInt64
  }

  /// The cached knowledge about an image.
  package struct Known: Sendable {
    /// nil if the node has none.
    package var image: Image?
    package var version: ThumbnailVersion?
  }

  private struct Entry {
    var known: Known
    var cost: Int
    /// The entries that were used just before and just after this one.
    var older: Key?
    var newer: Key?
  }

  private struct State {
    var limit: Int
    var cost = 0
    var entries: [Key: Entry] = [:]
    var keys: [String: Set<Key>] = [:]
    var oldest: Key?
    var newest: Key?
    var reads: [String: Set<UInt64>] = [:]
    var count: UInt64 = 0

    // Every operation takes constant time, however many images there are.

    mutating func insert(_ entry: Entry, _ key: Key) {
      entries[key] = entry
      keys[key.owner, default: []].insert(key)
      cost += entry.cost
      chain(key)
    }

    mutating func remove(_ key: Key) {
      guard let entry = entries.removeValue(forKey: key) else { return }
      unchain(entry)
      cost -= entry.cost
      keys[key.owner]?.remove(key)
      if keys[key.owner]?.isEmpty == true { keys[key.owner] = nil }
    }

    mutating func trim() {
      while cost > limit, let oldest { remove(oldest) }
    }

    /// Makes the entry the most recently used one.
    mutating func chain(_ key: Key) {
      entries[key]?.older = newest
      entries[key]?.newer = nil
      if let newest { entries[newest]?.newer = key } else { oldest = key }
      newest = key
    }

    mutating func unchain(_ entry: Entry) {
      if let older = entry.older { entries[older]?.newer = entry.newer } else { oldest = entry.newer }
      if let newer = entry.newer { entries[newer]?.older = entry.older } else { newest = entry.older }
    }
  }

  /// Minimum cost, also of an absent image: otherwise the cache could hold any number of them.
  private static var leastCost: Int { 64 }
  private let state: Mutex<State>

  package init(costLimit: Int) {
    state = Mutex(State(limit: costLimit))
  }

  package var costLimit: Int {
    get { state.withLock { $0.limit } }
    set {
      state.withLock { state in
        state.limit = newValue
        state.trim()
      }
    }
  }

  package var cost: Int { state.withLock { $0.cost } }
  package var count: Int { state.withLock { $0.entries.count } }

  /// - Returns: nil if nothing is known, `.some(nil)` if it is known that there is no image.
  package func image(_ key: Key) -> Image?? {
    known(key).map(\.image)
  }

  /// - Returns: nil if nothing is known.
  package func known(_ key: Key) -> Known? {
    state.withLock { state -> Known? in
      guard let entry = state.entries[key] else { return nil }
      if state.newest != key {
        state.unchain(entry)
        state.chain(key)
      }
      return entry.known
    }
  }

  // MARK: Adding images

  package func beginRead(_ owner: String) -> Read {
    state.withLock { state in
      state.count += 1
      state.reads[owner, default: []].insert(state.count)
      return Read(owner: owner, number: state.count)
    }
  }

  package func endRead(_ read: Read) {
    state.withLock { state in
      state.reads[read.owner]?.remove(read.number)
      if state.reads[read.owner]?.isEmpty == true { state.reads[read.owner] = nil }
    }
  }

  /// Caches the result of the read, unless it is outdated by now.
  package func set(_ image: Image?, _ key: Key, cost: Int, version: ThumbnailVersion? = nil, of read: Read) {
    state.withLock { state in
      guard state.reads[read.owner]?.contains(read.number) == true else { return }
      let cost = max(cost, Self.leastCost)
      state.remove(key)
      guard cost <= state.limit else { return }
      state.insert(Entry(known: Known(image: image, version: version), cost: cost), key)
      state.trim()
    }
  }

  // MARK: Removing images

  /// Drops all variants of the owners' images, and invalidates reads that are in progress.
  package func flush(_ owners: Set<String>) {
    state.withLock { state in
      for owner in owners {
        state.reads[owner] = nil
        for key in state.keys[owner] ?? [] { state.remove(key) }
      }
    }
  }

  package func flush(processingID: String) {
    state.withLock { state in
      for key in Array(state.entries.keys) where key.processingID == processingID { state.remove(key) }
    }
  }
}

/// The version of the thumbnail that an image was made from.
package struct ThumbnailVersion: Sendable {
  /// The eTag of the content that it came with.
  package var eTag: String?
  /// The hash of its bytes, as in records; nil if there is none.
  package var tag: String?
}
