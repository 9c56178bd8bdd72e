internal import Synchronization
package import ZDCProtocol

/// The queues of all busy zones of a single-process server.
final class ZoneTurns: Sendable {
  static let zones = 1_024

  private let queues = Mutex<[ZoneID: ZoneQueue]>([:])
  private let held = HeldRequests()
  private let clock: ServerClock
  private let hold: Duration

  init(clock: ServerClock, holdMs: UInt64) {
    self.clock = clock
    hold = .milliseconds(holdMs)
  }

  /// Waits until the device may commit.
  ///
  /// - Throws: `zoneBusy`; `shuttingDown`.
  func enter(_ zones: [ZoneID], as writer: ZoneWriter, bytes: Int) async throws {
    let end = ContinuousClock.now + hold
    for zone in zones {
      while let wait = change(zone, { $0.ask(writer, now: $1) }) ?? nil {
        let rest = end - .now
        guard rest > .zero, !Task.isCancelled, let signal = try held.park(writer, in: zone, bytes) else {
          throw ServerError.outOfTurn(waitMs: wait)
        }
        // The turn may have come since the device asked.
        callNext(in: zone)
        await signal.wait(upTo: min(.milliseconds(wait), rest))
        held.unpark(writer, in: zone)
      }
    }
  }

  func ended(_ end: ZoneTurnEnd, in zones: [ZoneID], of writer: ZoneWriter) {
    for zone in zones {
      if end == .lost { makeRoom(for: zone) }
      change(zone) { $0.ended(end, writer, now: $1) }
    }
  }

  func isBusy(_ zone: ZoneID) -> Bool { queues.withLock { $0[zone]?.isBusy ?? false } }

  /// Answers every held request with `shuttingDown` and holds no more.
  func close() { held.close() }

  var heldCount: Int { held.count }

  /// The number of remembered zones, and of places, devices and users in all of them.
  var remembered: (zones: Int, others: Int) {
    queues.withLock { queues in (queues.count, queues.values.reduce(0) { $0 + $1.count }) }
  }

  /// Changes the zone's queue; returns nil if the zone has none.
  @discardableResult
  private func change<T>(_ zone: ZoneID, _ body: (inout ZoneQueue, UInt64) -> T) -> T? {
    let value: T? = queues.withLock { queues in
      guard var queue = queues[zone] else { return nil }
      let value = body(&queue, clock.elapsedMs())
      queues[zone] = queue.isForgettable ? nil : queue
      return value
    }
    if value != nil { callNext(in: zone) }
    return value
  }

  private func callNext(in zone: ZoneID) {
    let holder = queues.withLock { $0[zone]?.lease?.holder }
    held.wake(in: zone, holder: holder)
  }

  /// Creates the zone's queue. If there are too many, forgets the zone with the oldest last request, so a busy zone is
  /// never forgotten for a quiet one.
  private func makeRoom(for zone: ZoneID) {
    let now = clock.elapsedMs()
    let forgotten: ZoneID? = queues.withLock { queues in
      guard queues[zone] == nil else { return nil }
      let quietest = queues.count >= Self.zones ? queues.min { $0.value.lastMs < $1.value.lastMs }?.key : nil
      if let quietest { queues[quietest] = nil }
      queues[zone] = ZoneQueue(now: now)
      return quietest
    }
    if let forgotten { callNext(in: forgotten) }
  }
}

extension ServerError {
  /// The answer to a request that cannot be held any longer; its device keeps its place.
  package static func outOfTurn(waitMs: UInt64) -> ServerError {
    ServerError(.zoneBusy, "other devices come first", retryable: true, retryAfterMs: min(waitMs, 250))
  }
}
