internal import ZDCProtocol

/// One pass over a user's zones. What is wrong with one of them is told at the end, when the others have had their turn.
struct ZoneRound<Summary: Sendable>: Sendable {
  var summary: Summary
  private(set) var failure: (any Error)?
  /// Zones that are left alone in further rounds of the same sync.
  var failedZones: Set<Int64> = []
  private var unanswered = 0

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
      if error is CancellationError || concernsAll(error) { throw error }
      failure = failure ?? error
      return error
    }
  }

  /// A request of one zone that gets no answer may be that zone's. A second one is not asked for a third time.
  private mutating func concernsAll(_ error: any Error) -> Bool {
    guard let error = error as? TransportError else { return false }
    guard [.timeout, .tooSlow, .cut].contains(error.code) else { return error.isOfConnection }
    unanswered += 1
    return unanswered > 1
  }

  /// An error that others have gone on after.
  mutating func note(_ error: (any Error)?) { failure = failure ?? error }

  func get() throws -> Summary {
    if let failure { throw DelegateError.unwrap(failure) }
    return summary
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
    return !isExhausted && (round.hasNext || round.calledApp || uploadsSettled > 0)
  }
}
