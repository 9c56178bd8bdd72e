internal import Foundation
internal import ZDCProtocol

/// Runs one engine in the background: events of the server bring changes in, hints of the database bring them out.
///
/// Ends when its task is cancelled. Every failure is reported and tried again after a pause; nothing here loses
/// anything, because everything that is to
/// be done stands in the tables.
struct SyncLoop: Sendable {
  let engine: SyncEngine
  let changes: ChangeSignals
  let reachability: ZDCReachability

  func run() async {
    let hints = changes.listen([.queue(localUser: engine.session.localUser)]) { [engine] _ in engine.signal() }
    defer { changes.end(hints) }
    await withTaskGroup(of: Void.self) { group in
      group.addTask { await listen() }
      group.addTask { await work() }
      await group.waitForAll()
    }
    await engine.cancelUploads()
  }

  // MARK: Out

  /// Pushes whenever there may be something. Waits for the first pull: before it, nobody knows what is new.
  private func work() async {
    var backoff = Backoff()
    engine.signal()
    for await _ in engine.wakeups {
      if Task.isCancelled { return }
      do {
        guard await engine.hasPulled else { continue }
        try await engine.pullDue()
        try await engine.pushUntilDrained()
        backoff.reset()
      } catch {
        guard await pause(after: error, &backoff) else { return }
        engine.signal()
      }
    }
  }

  // MARK: In

  /// Keeps the event stream open. Its first event tells which zones have moved, so nothing is asked twice.
  private func listen() async {
    var backoff = Backoff()
    while !Task.isCancelled {
      do {
        try await listenOnce { backoff.reset() }
      } catch {
        if error is TransportError {
          reachability.lost()
          engine.session.events.post { .offline(localUserID: $0) }
        }
        guard await pause(after: error, &backoff) else { return }
      }
    }
  }

  private func listenOnce(connected: () -> Void) async throws {
    for try await event in engine.session.api.events(since: nil) {
      switch event {
      case .zones(let list):
        _ = try await pulled { try await engine.follow(list) }
        connected()
        engine.session.events.post { .online(localUserID: $0) }
        if reachability.reached() { tellOfReconnection() }
        engine.signal()
      case .head(let head):
        let summary = try await pulled { try await engine.take(head) }
        // What was queued may be possible now.
        if summary.commits > 0, await !engine.isDrained { engine.signal() }
      }
    }
    // In good order or not, nobody hears of the server any more: it restarts, or a proxy ends what lasts too long.
    if !Task.isCancelled { throw TransportError(.cut, origin: engine.session.api.connection.origin) }
  }

  /// The stream stays open, whatever is wrong with one tree, and whatever the app says: both are told, and tried again
  /// by themselves. An app that aborts a pull does not want the next one at once: the engine waits a minute.
  private func pulled(_ round: () async throws -> ZoneRound<PullSummary>) async throws -> PullSummary {
    do { return try await round().summary } catch is CancellationError where !Task.isCancelled { return PullSummary() }
  }

  private func tellOfReconnection() {
    changes.send([.network])
    engine.session.delegate().didReconnectToInternet()
  }

  // MARK: Waiting

  /// - Returns: false if the loop is to end.
  private func pause(after error: any Error, _ backoff: inout Backoff) async -> Bool {
    if Task.isCancelled || error is CancellationError { return !Task.isCancelled }
    engine.session.events.report(error)
    let milliseconds = backoff.next(after: error, random: .random(in: 0..<1))
    do {
      try await Task.sleep(for: .milliseconds(Int64(milliseconds)))
      return true
    } catch { return false }
  }
}
