internal import ZDCSupport

/// The opened values of rows, by the stored bytes that they were opened from. A row with the same bytes has the same value,
/// in every transaction: each sealed value has a random nonce.
///
/// Values that were not read for long are dropped.
final class RowCache<Key: Hashable & Sendable, Value: Sendable>: Sendable {
  private struct Item {
    var stored: [UInt8]
    var value: Value
  }

  private struct Items {
    var recent: [Key: Item] = [:]
    /// Those that were recent before there were too many.
    var earlier: [Key: Item] = [:]
  }

  private let items = Locked(Items())
  private let limit: Int

  /// - Parameter limit: Maximum number of values.
  init(limit: Int) { self.limit = limit }

  func value(of key: Key, stored: [UInt8], _ open: () throws -> Value) rethrows -> Value {
    if let known = known(key), known.stored == stored { return known.value }
    let value = try open()
    keep(Item(stored: stored, value: value), key)
    return value
  }

  private func known(_ key: Key) -> Item? {
    let (item, isEarlier) = items.withLock { items in
      let recent = items.recent[key]
      return (recent ?? items.earlier[key], recent == nil)
    }
    if let item, isEarlier { keep(item, key) }
    return item
  }

  private func keep(_ item: Item, _ key: Key) {
    items.withLock { items in
      items.earlier[key] = nil
      items.recent[key] = item
      guard items.recent.count >= max(limit / 2, 1) else { return }
      (items.earlier, items.recent) = (items.recent, [:])
    }
  }
}
