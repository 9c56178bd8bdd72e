internal import Synchronization
internal import ZDCProtocol

/// Access lists in force that were decoded lately. A list of 1,000 members has 70 KB; to decode and hash it for each
/// commit would hold the store's only writer.
final class ListCache: Sendable {
  private struct State {
    var lists: [ACLHash: ZoneACL] = [:]
    var bytes = 0
    var decoded = 0

    mutating func insert(_ list: ZoneACL, limit: Int) {
      decoded += 1
      if bytes + list.bytes.count > limit { (lists, bytes) = ([:], 0) }
      guard lists.updateValue(list, forKey: list.hash) == nil else { return }
      bytes += list.bytes.count
    }
  }

  private static let limit = 16 << 20
  private let state = Mutex(State())

  /// The number of lists that were decoded.
  var decoded: Int { state.withLock { $0.decoded } }
  var bytes: Int { state.withLock { $0.bytes } }

  /// Decodes a stored list.
  ///
  /// - Parameter hash: the hash that a client states. Whether it is the list's is compared, by its bytes.
  func list(_ bytes: [UInt8], named hash: ACLHash) throws -> ZoneACL {
    if let known = state.withLock({ $0.lists[hash] }), known.bytes == bytes { return known }
    let list = try ZoneACL(bytes)
    state.withLock { $0.insert(list, limit: Self.limit) }
    return list
  }
}
