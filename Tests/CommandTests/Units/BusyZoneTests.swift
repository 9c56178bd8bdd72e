import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCCommands

/// How long one run of `zdc` waits while the server gives other devices precedence in a zone.
struct BusyZoneTests {
  /// The pauses of a run, and the number of its attempts.
  private final class Run: Sendable {
    let pauses = Mutex<[UInt64]>([])
    let attempts = Mutex(0)

    /// Tries until the server takes the request after `busyAnswers`.
    func perform(busyAnswers: Int, retryAfterMs: UInt64?) async throws {
      try await Engine.waitingForTurn(pause: { length in self.pauses.withLock { $0.append(length) } }) {
        let attempt = self.attempts.withLock { attempts in
          attempts += 1
          return attempts
        }
        guard attempt > busyAnswers else {
          throw ServerError(.zoneBusy, "by script", retryable: true, retryAfterMs: retryAfterMs)
        }
        return attempt
      }
    }
  }

  @Test("F4: the pauses of one run have a total, and the attempts an end", arguments: [7_000, 40_000, 1] as [UInt64])
  func pausesOfOneRunAreBounded(retryAfterMs: UInt64) async throws {
    let run = Run()
    let error = await #expect(throws: ServerError.self) {
      try await run.perform(busyAnswers: .max, retryAfterMs: retryAfterMs)
    }
    #expect(error?.code == .zoneBusy)
    let expected: [UInt64: [UInt64]] = [
      7_000: Array(repeating: 7_000, count: 4), 40_000: [], 1: Array(repeating: 100, count: 9),
    ]
    #expect(run.pauses.withLock { $0 } == expected[retryAfterMs])
    #expect(run.attempts.withLock { $0 } == run.pauses.withLock(\.count) + 1)
  }

  @Test func aRunThatGetsItsTurn_ends() async throws {
    let run = Run()
    try await run.perform(busyAnswers: 2, retryAfterMs: nil)
    #expect(run.pauses.withLock { $0 } == [500, 500] && run.attempts.withLock { $0 } == 3)
  }
}
