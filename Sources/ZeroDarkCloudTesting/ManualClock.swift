public import Foundation
internal import Synchronization

/// A clock that stands still until a test moves it on. Device, server and faulty network share one, so that no test
/// ever waits for time.
///
/// ```swift
/// let clock = ManualClock()
/// clock.advance(by: .seconds(60))  // what waited for a minute goes on
/// ```
public final class ManualClock: Sendable {
  private struct Sleeper {
    var dueMs: UInt64
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var nowMs: UInt64
    var nextID = 0
    var sleepers: [Int: Sleeper] = [:]
    var cancelled: Set<Int> = []
  }

  private let state: Mutex<State>
  private let watchers = Waiters<Int>()

  /// - Parameter date: where the clock starts; 1 January 2026 unless told.
  public init(startingAt date: Date = Date(timeIntervalSince1970: 1_767_225_600)) {
    state = Mutex(State(nowMs: UInt64(max(0, date.timeIntervalSince1970 * 1_000))))
  }

  /// Milliseconds since 1970.
  public var nowMs: UInt64 { state.withLock { $0.nowMs } }

  public var now: Date { Date(timeIntervalSince1970: Double(nowMs) / 1_000) }

  /// Moves on, and wakes everybody whose time has come.
  public func advance(by duration: Duration) {
    let (seconds, attoseconds) = duration.components
    let milliseconds = UInt64(max(0, seconds * 1_000 + attoseconds / 1_000_000_000_000_000))
    let due = state.withLock { state in
      state.nowMs += milliseconds
      let due = state.sleepers.filter { $0.value.dueMs <= state.nowMs }
      for id in due.keys { state.sleepers[id] = nil }
      return due.values.map(\.continuation)
    }
    for continuation in due { continuation.resume() }
  }

  /// Sets the clock back, as its user may at any time. Sleepers stay asleep for as long as before.
  public func setBack(by duration: Duration) {
    let milliseconds = UInt64(max(0, duration.components.seconds * 1_000))
    state.withLock { state in
      state.nowMs -= min(milliseconds, state.nowMs)
      for id in state.sleepers.keys { state.sleepers[id]?.dueMs -= milliseconds }
    }
  }

  /// Suspends until ``advance(by:)`` has moved the clock that far.
  ///
  /// - Throws: `CancellationError` if the task is cancelled.
  public func sleep(for duration: Duration) async throws {
    let (seconds, attoseconds) = duration.components
    let milliseconds = UInt64(max(0, seconds * 1_000 + attoseconds / 1_000_000_000_000_000))
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { enter($0, id: id, milliseconds: milliseconds) }
    } onCancel: {
      cancel(id)
    }
  }

  /// Suspends until that many calls of ``sleep(for:)`` are waiting, or the task is cancelled: what a test does before it
  /// moves the clock.
  public func waitForSleepers(_ count: Int = 1) async {
    await watchers.wait(for: count) { state.withLock { $0.sleepers.count >= count } }
  }

  private func enter(_ continuation: CheckedContinuation<Void, any Error>, id: Int, milliseconds: UInt64) {
    let count = state.withLock { state -> Int? in
      if state.cancelled.remove(id) != nil { return nil }
      state.sleepers[id] = Sleeper(dueMs: state.nowMs + milliseconds, continuation: continuation)
      return state.sleepers.count
    }
    guard let count else { return continuation.resume(throwing: CancellationError()) }
    watchers.resume { $0 <= count }
  }

  private func cancel(_ id: Int) {
    let continuation = state.withLock { state in
      guard let sleeper = state.sleepers.removeValue(forKey: id) else {
        state.cancelled.insert(id)
        return nil as CheckedContinuation<Void, any Error>?
      }
      return sleeper.continuation
    }
    continuation?.resume(throwing: CancellationError())
  }
}
