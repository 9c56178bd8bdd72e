internal import Synchronization

/// Limits how many calls each user, and each address without a session, runs at a time. Further calls of the same party
/// wait in order, so they do not delay the calls of others.
final class PartyTurns: Sendable {
  typealias Party = BodyBudget.Party

  private struct Line {
    var running = 0
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let limit: Int
  private let lines = Mutex<[Party: Line]>([:])

  init(limit: Int) {
    self.limit = limit
  }

  func run<T>(_ party: Party, _ body: () async throws -> T) async rethrows -> T {
    await begin(party)
    defer { end(party) }
    return try await body()
  }

  /// The number of waiting calls.
  var waiting: Int { lines.withLock { $0.values.reduce(0) { $0 + $1.waiting.count } } }

  /// Returns the number of the party's running calls.
  func running(_ party: Party) -> Int { lines.withLock { $0[party]?.running ?? 0 } }

  private func begin(_ party: Party) async {
    await withCheckedContinuation { continuation in
      let isFree = lines.withLock { lines in
        var line = lines[party] ?? Line()
        defer { lines[party] = line }
        guard line.running >= limit else {
          line.running += 1
          return true
        }
        line.waiting.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
    }
  }

  /// Hands the slot over to the call that has waited longest.
  private func end(_ party: Party) {
    let next = lines.withLock { lines -> CheckedContinuation<Void, Never>? in
      guard var line = lines[party] else { return nil }
      let next = line.waiting.isEmpty ? nil : line.waiting.removeFirst()
      if next == nil { line.running -= 1 }
      lines[party] = line.running > 0 ? line : nil
      return next
    }
    next?.resume()
  }
}
