internal import Synchronization
package import ZDCProtocol

/// Commits that wait for their turn in a busy zone, so that the server can answer them as soon as it comes.
///
/// Both the number and the bytes of held requests are limited.
package final class HeldRequests: Sendable {
  private struct Request {
    var signal: Signal
    var bytes: Int
  }

  private struct State {
    var requests: [ZoneID: [ZoneWriter: Request]] = [:]
    var count = 0
    var bytes = 0
    var isClosed = false
  }

  private static let mostRequests = 1_024
  private static let mostBytes = 32 << 20

  private let state = Mutex(State())

  package init() {}

  package var count: Int { state.withLock { $0.count } }

  /// Holds a request; returns nil if there is no room, or if another request of the device is already held.
  package func park(_ writer: ZoneWriter, in zone: ZoneID, _ bytes: Int) throws -> Signal? {
    try state.withLock { state in
      guard !state.isClosed else { throw ServerError(.shuttingDown, "the server is stopping", retryable: true) }
      let hasRoom = state.count < Self.mostRequests && state.bytes + bytes <= Self.mostBytes
      guard hasRoom, state.requests[zone]?[writer] == nil else { return nil }
      let signal = Signal()
      state.requests[zone, default: [:]][writer] = Request(signal: signal, bytes: bytes)
      state.count += 1
      state.bytes += bytes
      return signal
    }
  }

  package func unpark(_ writer: ZoneWriter, in zone: ZoneID) {
    state.withLock { state in
      guard let request = state.requests[zone]?.removeValue(forKey: writer) else { return }
      if state.requests[zone]?.isEmpty == true { state.requests[zone] = nil }
      state.count -= 1
      state.bytes -= request.bytes
    }
  }

  /// Wakes the holder of the zone's lease, so that it asks again; without a lease, wakes every request.
  package func wake(in zone: ZoneID, holder: ZoneWriter?) {
    state.withLock { state in
      guard let requests = state.requests[zone] else { return }
      if let holder {
        requests[holder]?.signal.open()
      } else {
        for request in requests.values { request.signal.open() }
      }
    }
  }

  /// Answers every held request with `shuttingDown` and holds no more.
  package func close() {
    state.withLock { state in
      state.isClosed = true
      for request in state.requests.values.flatMap(\.values) { request.signal.open() }
    }
  }
}
