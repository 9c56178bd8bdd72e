internal import ZDCProtocol

/// One pass over a user's zones. What is wrong with one of them is told at the end, when the others have had their turn.
struct ZoneRound<Summary: Sendable>: Sendable {
  var summary: Summary
  private(set) var failure: (any Error)?

  init(_ summary: Summary) {
    self.summary = summary
  }

  /// Does one zone's part.
  ///
  /// - Returns: what is wrong with that zone.
  /// - Throws: what concerns all zones: no connection, a cancelled task.
  @discardableResult
  mutating func add(
    isolation: isolated (any Actor)? = #isolation, _ body: (inout ZoneRound) async throws -> Void
  ) async throws -> (any Error)? {
    do {
      try await body(&self)
      return nil
    } catch {
      if error is TransportError || error is CancellationError { throw error }
      failure = failure ?? error
      return error
    }
  }

  /// An error that others have gone on after.
  mutating func note(_ error: (any Error)?) { failure = failure ?? error }

  func get() throws -> Summary {
    if let failure { throw DelegateError.unwrap(failure) }
    return summary
  }

  /// The failure if other work can go on: a zone that was frozen, an error of the app's. Any other one is thrown.
  func deferrableError() throws -> (any Error)? {
    guard let failure else { return nil }
    guard failure is ZDCSecurityError || failure is DelegateError else { throw failure }
    return DelegateError.unwrap(failure)
  }
}

extension ZoneRound<PullSummary> {
  mutating func take(_ pulled: ZonePuller.Pulled) {
    summary += pulled.summary
    note(pulled.refusal)
  }
}

/// When a sync has come to rest. Pure.
struct QuietRule {
  /// Enough for what is queued, for conflicts that the app solves on the way and for commits of others that come first.
  /// An app that answers each push with another change would keep it busy for ever.
  private let limit: Int
  private var rounds = 0

  init(queued: Int) {
    limit = 200 + 4 * queued
  }

  var isExhausted: Bool { rounds >= limit }

  /// Whether another round has something to do: commits that were sent make others possible, and so does what the app was
  /// told, because it may have queued something.
  mutating func goesOn(after round: PushSummary, uploadsSettled: Int) -> Bool {
    rounds += 1
    return !isExhausted && (round.commits > 0 || round.calledApp || uploadsSettled > 0)
  }
}
