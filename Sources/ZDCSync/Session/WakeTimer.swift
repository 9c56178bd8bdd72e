internal import ZDCProtocol
package import ZDCSupport

/// Wakes a user's background sync: immediately, or at the end of a pause.
package final class WakeTimer: Sendable {
  private struct Timer {
    var due: ContinuousClock.Instant
    var task: Task<Void, Never>
  }

  private let time: EngineClock
  private let wake = Broadcast<Void>(limit: 1)
  /// A single timer for the earliest of all pauses. The next pause is determined after it fires.
  private let timer = Locked<Timer?>(nil)

  package init(time: EngineClock) {
    self.time = time
  }

  /// Returns a stream that combines all calls of ``signal()`` since the last element into one. A stream ends with the
  /// task that reads it, so each run needs a new one.
  func wakeups() -> AsyncStream<Void> { wake.stream() }

  /// Signals that there may be work.
  package func signal() { wake.send(()) }

  /// Signals that there may be work after the pause.
  package func signal(after pause: Duration) {
    guard pause > .zero else { return signal() }
    let due = time.now().advanced(by: pause)
    timer.withLock { timer in
      if let timer, timer.due <= due { return }
      timer?.task.cancel()
      timer = Timer(due: due, task: start(pause, due))
    }
  }

  private func start(_ pause: Duration, _ due: ContinuousClock.Instant) -> Task<Void, Never> {
    Task { [weak self, time] in
      do { try await time.sleep(pause) } catch { return }
      self?.fired(due)
    }
  }

  private func fired(_ due: ContinuousClock.Instant) {
    let isCurrent = timer.withLock { timer in
      guard timer?.due == due else { return false }
      timer = nil
      return true
    }
    if isCurrent { signal() }
  }
}
