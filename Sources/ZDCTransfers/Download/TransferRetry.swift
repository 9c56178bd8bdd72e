internal import ZDCClientAPI
internal import ZDCProtocol
internal import ZDCSupport

/// The retry limit of a transfer: none while each attempt makes progress, a number of retries while none does.
package struct TransferRetry: Sendable {
  package struct Policy: Sendable {
    /// Maximum number of retries in a row after an attempt without progress.
    var retries: Int
    /// Pause before the first retry, in milliseconds. It doubles with each further retry.
    var firstPauseMs: UInt64
    /// Maximum pause, in milliseconds. A transfer gives up if the server asks for a longer one.
    package var longestPauseMs: UInt64
    /// Replaced by tests to control time.
    package var sleep: @Sendable (Duration) async throws -> Void = { try await Task.sleep(for: $0) }

    /// For callers that wait, and for uploads, which their queue retries.
    static let brief = Policy(retries: 2, firstPauseMs: 200, longestPauseMs: 1_000)

    /// For downloads: bridges about half a minute without a network.
    package static func downloads(_ sleep: @escaping @Sendable (Duration) async throws -> Void) -> Policy {
      Policy(retries: 8, firstPauseMs: Backoff.firstMs, longestPauseMs: Backoff.ceilingMs, sleep: sleep)
    }

    /// The retries and pauses of ``brief``, with this policy's `sleep`.
    package var shortened: Policy {
      var brief = Self.brief
      brief.sleep = sleep
      return brief
    }

    /// Returns a pause with full jitter below a doubling ceiling, in milliseconds.
    package func pause(retry: Int, random: Double) -> UInt64 {
      let ceiling = min(longestPauseMs, firstPauseMs << UInt64(min(max(retry - 1, 0), 16)))
      return max(1, UInt64(Double(ceiling) * random))
    }
  }

  /// Evaluated at each failure: a request that joins a transfer may be more patient than the one that started it.
  package typealias Choice = @Sendable () -> Policy

  private let choice: Choice
  private var attemptsWithoutProgress = 0

  package init(_ policy: @escaping @autoclosure Choice = .brief) {
    choice = policy
  }

  /// Returns if another attempt is worthwhile, after a growing pause.
  ///
  /// - Throws: `error` itself if it is not.
  package mutating func tryAgain(after error: any Error, hasProgressed: Bool) async throws {
    let policy = choice()
    guard isTransient(error, policy) else { throw error }
    attemptsWithoutProgress = hasProgressed ? 0 : attemptsWithoutProgress + 1
    guard attemptsWithoutProgress <= policy.retries else { throw error }
    guard attemptsWithoutProgress > 0 else { return }
    let asked = (error as? ServerError)?.retryAfterMs ?? 0
    let pause = max(asked, policy.pause(retry: attemptsWithoutProgress, random: .random(in: 0..<1)))
    try await policy.sleep(.milliseconds(Int64(pause)))
  }

  private func isTransient(_ error: any Error, _ policy: Policy) -> Bool {
    switch error {
    case let error as TransportError: error.isTemporary
    case let error as ServerError: error.retryable && (error.retryAfterMs ?? 0) <= policy.longestPauseMs
    default: false
    }
  }

  /// Runs `body` until it succeeds or the retries are exhausted.
  package static func run<Value>(
    _ policy: @escaping @autoclosure Choice = .brief, _ body: () async throws -> Value
  ) async throws -> Value {
    var patience = TransferRetry(policy())
    while true {
      do {
        return try await body()
      } catch { try await patience.tryAgain(after: error, hasProgressed: false) }
    }
  }
}
