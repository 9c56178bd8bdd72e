internal import Synchronization
internal import ZDCProtocol

/// The queues of all busy zones, and the requests that wait in them.
///
/// A request out of turn is held for a while, so that the server can answer it as soon as its turn comes. Both the
/// number and the bytes of held requests are limited.
final class ZoneTurns: Sendable {
  fileprivate struct State {
    var queues: [ZoneID: ZoneQueue] = [:]
    var held: [ZoneID: [ZoneWriter: HeldRequest]] = [:]
    var heldCount = 0
    var heldBytes = 0
    var isClosed = false
  }

  fileprivate struct HeldRequest {
    var signal: Signal
    var bytes: Int
  }

  static let zones = 1_024
  private static let heldRequests = 1_024
  private static let heldBytes = 32 << 20
  /// The retry delay for a request that cannot be held any longer; its device keeps its place.
  private static let retryMs: UInt64 = 250

  private let state = Mutex(State())
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
        guard rest > .zero, !Task.isCancelled, let signal = try park(writer, in: zone, bytes) else {
          throw ServerError(
            .zoneBusy, "other devices come first", retryable: true, retryAfterMs: min(wait, Self.retryMs))
        }
        await signal.wait(upTo: min(.milliseconds(wait), rest))
        unpark(writer, in: zone)
      }
    }
  }

  func ended(_ end: ZoneTurnEnd, in zones: [ZoneID], of writer: ZoneWriter) {
    for zone in zones {
      if end == .lost { makeRoom(for: zone) }
      change(zone) { queue, now in
        switch end {
        case .committed: queue.committed(writer, now: now)
        case .lost: queue.lost(writer, now: now)
        case .failed: queue.failed(writer, now: now)
        }
      }
    }
  }

  func isBusy(_ zone: ZoneID) -> Bool { state.withLock { $0.queues[zone]?.isBusy ?? false } }

  /// Answers every held request with `shuttingDown` and holds no more.
  func close() {
    state.withLock { state in
      state.isClosed = true
      for request in state.held.values.flatMap(\.values) { request.signal.open() }
    }
  }

  var heldCount: Int { state.withLock { $0.heldCount } }

  /// The number of remembered zones, and of places, devices and users in all of them.
  var remembered: (zones: Int, others: Int) {
    state.withLock { state in (state.queues.count, state.queues.values.reduce(0) { $0 + $1.count }) }
  }

  // MARK: Queues

  /// Changes the zone's queue; returns nil if the zone has none.
  @discardableResult
  private func change<T>(_ zone: ZoneID, _ body: (inout ZoneQueue, UInt64) -> T) -> T? {
    state.withLock { state in
      guard var queue = state.queues[zone] else { return nil }
      let value = body(&queue, clock.elapsedMs())
      state.queues[zone] = queue.isForgettable ? nil : queue
      state.callNext(in: zone)
      return value
    }
  }

  /// Creates the zone's queue. If there are too many, forgets the zone with the oldest last request, so a busy zone is
  /// never forgotten for a quiet one.
  private func makeRoom(for zone: ZoneID) {
    let now = clock.elapsedMs()
    state.withLock { state in
      guard state.queues[zone] == nil else { return }
      if state.queues.count >= Self.zones,
        let quietest = state.queues.min(by: { $0.value.lastMs < $1.value.lastMs })?.key
      {
        state.queues[quietest] = nil
        state.callNext(in: quietest)
      }
      state.queues[zone] = ZoneQueue(now: now)
    }
  }

  // MARK: Parked requests

  /// Holds a request; returns nil if there is no room, or if another request of the device is already held.
  private func park(_ writer: ZoneWriter, in zone: ZoneID, _ bytes: Int) throws -> Signal? {
    try state.withLock { state in
      guard !state.isClosed else { throw ServerError(.shuttingDown, "the server is stopping", retryable: true) }
      let hasRoom = state.heldCount < Self.heldRequests && state.heldBytes + bytes <= Self.heldBytes
      guard hasRoom, state.held[zone]?[writer] == nil else { return nil }
      let signal = Signal()
      state.held[zone, default: [:]][writer] = HeldRequest(signal: signal, bytes: bytes)
      state.heldCount += 1
      state.heldBytes += bytes
      // The turn may have come since the caller asked.
      state.callNext(in: zone)
      return signal
    }
  }

  private func unpark(_ writer: ZoneWriter, in zone: ZoneID) {
    state.withLock { state in
      guard let request = state.held[zone]?.removeValue(forKey: writer) else { return }
      if state.held[zone]?.isEmpty == true { state.held[zone] = nil }
      state.heldCount -= 1
      state.heldBytes -= request.bytes
    }
  }
}

extension ZoneTurns.State {
  /// Wakes the holder of the lease, so that it asks again; without a lease, wakes every request.
  fileprivate func callNext(in zone: ZoneID) {
    guard let requests = held[zone] else { return }
    guard let lease = queues[zone]?.lease else {
      for request in requests.values { request.signal.open() }
      return
    }
    requests[lease.holder]?.signal.open()
  }
}
