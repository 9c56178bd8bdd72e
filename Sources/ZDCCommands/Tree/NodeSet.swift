internal import Foundation

/// The uuids of many nodes, in a quarter of the memory that their texts would take.
struct NodeSet: Sendable {
  private var uuids: Set<UUID> = []
  /// Of trunks.
  private var others: Set<String> = []

  init(_ texts: some Sequence<String> = EmptyCollection<String>()) {
    for text in texts { insert(text) }
  }

  var count: Int { uuids.count + others.count }
  var isEmpty: Bool { count == 0 }

  /// - Returns: whether it was not there before.
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
