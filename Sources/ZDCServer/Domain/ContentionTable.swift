internal import Synchronization
internal import ZDCProtocol

/// The turns of all zones of a server, and the requests that wait for theirs.
///
/// A request out of turn is held until its turn comes, for a while: its device learns of its turn at once and has
/// nothing else to do meanwhile. What is held is bounded in number and bytes.
final class ContentionTable: Sendable {
  private struct Key: Hashable {
    var zone: ZoneID
    var device: Contention.Device
  }

  private struct State {
    var contention = Contention()
    var held: [Key: (signal: Signal, bytes: Int)] = [:]
    var heldBytes = 0
    var isClosed = false

    /// Whose turn it is may go on.
    func callHolder(of zone: ZoneID) {
      guard let turn = contention.turn(in: zone) else { return }
      held[Key(zone: zone, device: turn.holder)]?.signal.open()
    }
  }

  private static let heldRequests = 1_024
  private static let heldBytes = 32 << 20
  /// For who cannot be held any longer; its place in the queue is kept.
  private static let retryMs: UInt64 = 250

  private let state = Mutex(State())
  private let clock: ServerClock
  private let hold: Duration

  init(clock: ServerClock, holdMs: UInt64) {
    self.clock = clock
    hold = .milliseconds(holdMs)
  }

  /// Returns when the device may try.
  ///
  /// - Parameter bytes: what the request keeps in memory while it waits.
  /// - Throws: `zoneBusy`; `shuttingDown`.
  func admit(_ device: Contention.Device, to zones: [ZoneID], bytes: Int) async throws {
    let end = ContinuousClock.now + hold
    for zone in zones {
      let key = Key(zone: zone, device: device)
      while let wait = waitingTime(key) {
        let rest = end - .now
        guard rest > .zero, !Task.isCancelled, let signal = try holdBack(key, bytes) else {
          throw ServerError(
            .zoneBusy, "other devices come first", retryable: true, retryAfterMs: min(wait, Self.retryMs))
        }
        await signal.wait(upTo: min(.milliseconds(wait), rest))
        letGo(key)
      }
    }
  }

  func lost(_ device: Contention.Device, in zone: ZoneID) {
    state.withLock { state in
      state.contention.lost(device, zone: zone, now: clock.elapsedMs())
      state.callHolder(of: zone)
    }
  }

  func won(_ device: Contention.Device, in zones: [ZoneID]) {
    state.withLock { state in
      for zone in zones {
        state.contention.won(device, zone: zone, now: clock.elapsedMs())
        state.callHolder(of: zone)
      }
    }
  }

  /// See ``Contention/gaveUp(_:zone:hasFailed:now:)``.
  func gaveUp(_ device: Contention.Device, in zones: [ZoneID], hasFailed: Bool) {
    state.withLock { state in
      for zone in zones {
        state.contention.gaveUp(device, zone: zone, hasFailed: hasFailed, now: clock.elapsedMs())
        state.callHolder(of: zone)
      }
    }
  }

  /// Whether who comes now may have to wait: only then it matters who it is.
  func isBusy(_ zone: ZoneID) -> Bool { state.withLock { $0.contention.isBusy(zone) } }

  /// Who waits is told so, and nobody waits any more.
  func close() {
    state.withLock { state in
      state.isClosed = true
      for held in state.held.values { held.signal.open() }
    }
  }

  var heldCount: Int { state.withLock { $0.held.count } }

  // MARK: Holding

  private func waitingTime(_ key: Key) -> UInt64? {
    state.withLock { state in
      let wait = state.contention.wait(key.device, zone: key.zone, now: clock.elapsedMs())
      state.callHolder(of: key.zone)
      return wait
    }
  }

  /// Nil if there is no room, or if another request of the device waits already.
  private func holdBack(_ key: Key, _ bytes: Int) throws -> Signal? {
    try state.withLock { state in
      guard !state.isClosed else { throw ServerError(.shuttingDown, "the server is stopping", retryable: true) }
      let hasRoom = state.held.count < Self.heldRequests && state.heldBytes + bytes <= Self.heldBytes
      guard hasRoom, state.held[key] == nil else { return nil }
      let signal = Signal()
      state.held[key] = (signal, bytes)
      state.heldBytes += bytes
      // The turn may have come between the question and this.
      state.callHolder(of: key.zone)
      return signal
    }
  }

  private func letGo(_ key: Key) {
    state.withLock { state in
      state.heldBytes -= state.held.removeValue(forKey: key)?.bytes ?? 0
    }
  }
}

/// Something that one task waits for and that happens once.
private final class Signal: Sendable {
  private struct State {
    var isOpen = false
    var waiter: CheckedContinuation<Void, Never>?
  }

  private let state = Mutex(State())

  func open() {
    let waiter = state.withLock { state in
      state.isOpen = true
      return state.waiter.take()
    }
    waiter?.resume()
  }

  func wait(upTo time: Duration) async {
    let timer = Task {
      // Cancelled once it has happened.
      do { try await Task.sleep(for: time) } catch { return }
      open()
    }
    defer { timer.cancel() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { waiter in
        let isOpen = state.withLock { state in
          if !state.isOpen { state.waiter = waiter }
          return state.isOpen
        }
        if isOpen { waiter.resume() }
      }
    } onCancel: {
      open()
    }
  }
}
