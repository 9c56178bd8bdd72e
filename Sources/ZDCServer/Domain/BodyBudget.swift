internal import Synchronization
internal import ZDCProtocol

/// How much of request bodies is in memory, all requests together: each alone is bounded by its route, and thousands
/// of them at once by this.
final class BodyBudget: Sendable {
  private let limit: Int
  private let taken = Mutex(0)

  init(limit: Int) {
    self.limit = limit
  }

  var bytes: Int { taken.withLock { $0 } }

  fileprivate func take(_ count: Int) -> Bool {
    taken.withLock { taken in
      guard taken + count <= limit else { return false }
      taken += count
      return true
    }
  }

  fileprivate func giveBack(_ count: Int) { taken.withLock { $0 -= count } }
}

/// One request's share, given back when the request is over.
final class BodyShare: Sendable {
  private let budget: BodyBudget
  private let taken = Mutex(0)

  init(_ budget: BodyBudget) {
    self.budget = budget
  }

  deinit { budget.giveBack(taken.withLock { $0 }) }

  /// - Throws: `tooManyRequests` if there is no room.
  func take(_ count: Int) throws {
    guard budget.take(count) else {
      throw ServerError(.tooManyRequests, "too much is being received", retryable: true, retryAfterMs: 1_000)
    }
    taken.withLock { $0 += count }
  }
}
