internal import ZDCClientAPI
internal import ZDCProtocol
internal import ZDCSupport

/// How often a transfer tries again: without end while each try brings something, a number of times while none does.
package struct Patience: Sendable {
  package struct Policy: Sendable {
    /// After a first try that brought nothing.
    var retries: Int
    /// Of the first retry; it doubles with each further one.
    var firstPauseMs: UInt64
    /// A server that asks for a longer pause than this is not waited for.
    package var longestPauseMs: UInt64
    /// Tests decide how time passes.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// For somebody who waits, and for uploads, which have a queue behind them.
    static let brief = Policy(retries: 2, firstPauseMs: 200, longestPauseMs: 1_000)

    /// For downloads: about half a minute without a network.
    package static func downloads(_ sleep: @escaping @Sendable (Duration) async throws -> Void) -> Policy {
      Policy(retries: 8, firstPauseMs: Backoff.firstMs, longestPauseMs: Backoff.ceilingMs, sleep: sleep)
    }

    /// As often and as long as ``brief``, in this one's time.
    package var shortened: Policy {
      var brief = Self.brief
      brief.sleep = sleep
      return brief
    }

    /// Full jitter below a doubling ceiling.
    package func pause(retry: Int, random: Double) -> UInt64 {
      let ceiling = min(longestPauseMs, firstPauseMs << UInt64(min(max(retry - 1, 0), 16)))
      return max(1, UInt64(Double(ceiling) * random))
    }
  }

  /// Asked at each failure: who joins a transfer may be more patient than who began it.
  package typealias Choice = @Sendable () -> Policy

  private let choice: Choice
  private var fruitless = 0

  package init(_ policy: @escaping @autoclosure Choice = .brief) {
    choice = policy
  }

  /// Returns if it is worth another try, after a pause that grows.
  ///
  /// - Throws: `error` itself if it is not.
  package mutating func tryAgain(after error: any Error, hasProgressed: Bool) async throws {
    let policy = choice()
    guard isTransient(error, policy) else { throw error }
    fruitless = hasProgressed ? 0 : fruitless + 1
    guard fruitless <= policy.retries else { throw error }
    guard fruitless > 0 else { return }
    let asked = (error as? ServerError)?.retryAfterMs ?? 0
    let pause = max(asked, policy.pause(retry: fruitless, random: .random(in: 0..<1)))
    try await policy.sleep(.milliseconds(Int64(pause)))
  }

  private func isTransient(_ error: any Error, _ policy: Policy) -> Bool {
    switch error {
    case let error as TransportError: error.isTemporary
    case let error as ServerError: error.retryable && (error.retryAfterMs ?? 0) <= policy.longestPauseMs
    default: false
    }
  }

  /// Does it until it succeeds or patience ends.
  package static func run<Value>(
    _ policy: @escaping @autoclosure Choice = .brief, _ body: () async throws -> Value
  ) async throws -> Value {
    var patience = Patience(policy())
    while true {
      do {
        return try await body()
      } catch { try await patience.tryAgain(after: error, hasProgressed: false) }
    }
  }
}
