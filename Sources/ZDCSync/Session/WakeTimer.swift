internal import ZDCProtocol
package import ZDCSupport

/// Wakes a user's background sync: immediately, or at the end of a pause.
package final class WakeTimer: Sendable {
  private struct Timer {
    var due: ContinuousClock.Instant
    var task: Task<Void, Never>
  }

  /// The part of the engine that may have work to do.
  enum Due: Sendable, Equatable {
    case everything
    /// The queues of these zones.
    case queues(Set<Int64>)
  }

  private let time: EngineClock
  private let wake = Broadcast<Void>(limit: 1)
  /// A single timer for the earliest of all pauses. The next pause is determined after it fires.
  private let timer = Locked<Timer?>(nil)
  private let due = Locked(Due.everything)

  package init(time: EngineClock) {
    self.time = time
  }

  /// Returns a stream that combines all calls of ``signal()`` since the last element into one. A stream ends with the
  /// task that reads it, so each run needs a new one.
  func wakeups() -> AsyncStream<Void> { wake.stream() }

  /// Returns what has been signaled since the last call.
  func takeDue() -> Due {
    due.withLock { due in
      defer { due = .queues([]) }
      return due
    }
  }

  /// Signals that there may be work.
  package func signal() {
    due.withLock { $0 = .everything }
    wake.send(())
  }

  /// Signals that a zone may have something to send.
  func signal(queueOf zone: Int64) {
    due.withLock { due in
      guard case .queues(let zones) = due else { return }
      due = .queues(zones.union([zone]))
    }
    wake.send(())
  }

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
