extension SyncEngine {
  /// Signals after a pause. An engine has one timer, for the earliest of its pauses.
  func scheduleWake(in pause: Duration) {
    let due = session.time.now().advanced(by: pause)
    if let timer, timer.due <= due { return }
    timer?.task.cancel()
    let task = Task { [weak self, time = session.time] in
      do { try await time.sleep(pause) } catch { return }
      await self?.timerFired(due)
    }
    timer = (task, due)
  }

  private func timerFired(_ due: ContinuousClock.Instant) {
    guard timer?.due == due else { return }
    timer = nil
    signal()
    // The pauses of operations are found by the next push.
    let now = session.time.now()
    let next = [pullPauses, pushPauses, eventPauses].compactMap { $0.next(after: now) }.min()
    if let next { scheduleWake(in: now.duration(to: next)) }
  }
}
