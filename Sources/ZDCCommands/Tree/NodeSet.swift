internal import Foundation

/// A set of node uuids that takes a quarter of the memory of their texts.
struct NodeSet: Sendable {
  private var uuids: Set<UUID> = []
  /// The ids of trunks, which are not UUIDs.
  private var others: Set<String> = []

  init(_ texts: some Sequence<String> = EmptyCollection<String>()) {
    for text in texts { insert(text) }
  }

  var count: Int { uuids.count + others.count }
  var isEmpty: Bool { count == 0 }

  /// - Returns: Whether the id was not in the set before.
  @discardableResult
  mutating func insert(_ text: String) -> Bool {
    guard let uuid = UUID(uuidString: text) else { return others.insert(text).inserted }
    return uuids.insert(uuid).inserted
  }

  func contains(_ text: String) -> Bool {
    guard let uuid = UUID(uuidString: text) else { return others.contains(text) }
    return uuids.contains(uuid)
  }
}
