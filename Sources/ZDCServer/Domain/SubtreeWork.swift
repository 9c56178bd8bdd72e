internal import ZDCProtocol

/// Counts the nodes that one request makes the store's only writer visit below deleted and moved ones.
final class SubtreeWork {
  private let limit: Int
  private(set) var nodes = 0

  init(limit: Int) {
    self.limit = limit
  }

  var rest: Int { max(0, limit - nodes) }

  /// - Throws: `limitExceeded`.
  func add(_ count: Int) throws {
    nodes += count
    guard nodes <= limit else {
      throw ServerError(
        .limitExceeded, "one request may move or delete branches of at most \(limit) nodes: send several requests")
    }
  }
}
