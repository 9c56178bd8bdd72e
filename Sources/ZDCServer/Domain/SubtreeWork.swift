internal import Synchronization
internal import ZDCProtocol

/// How many nodes one request makes the store's only writer visit below deleted and moved ones.
final class SubtreeWork: Sendable {
  private let limit: Int
  private let visited = Mutex(0)

  init(limit: Int) {
    self.limit = limit
  }

  var nodes: Int { visited.withLock { $0 } }
  var rest: Int { max(0, limit - nodes) }

  /// - Throws: `limitExceeded`.
  func add(_ count: Int) throws {
    let total = visited.withLock { visited in
      visited += count
      return visited
    }
    guard total <= limit else {
      throw ServerError(
        .limitExceeded, "branches of more than \(limit) nodes are moved and deleted in several requests")
    }
  }
}
