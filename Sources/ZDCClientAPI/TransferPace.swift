internal import ZDCProtocol
internal import ZDCSupport

/// The minimum rate at which an answer must arrive. It counts only the time that the reader waits, so a slow reader is
/// not penalized. Pure logic without I/O.
package struct TransferPace: Sendable {
  /// In each window of waiting, at least ``windowBytes`` must arrive.
  package static let window = Duration.seconds(60)
  static let windowBytes = 120 << 10
  /// The base time limit of a whole request or answer. One second is added for each ``bytesPerSecond``.
  static let allowance = Duration.seconds(120)
  static let bytesPerSecond = 2 << 10

  private let maximum: Duration
  private var total = Duration.zero
  private var inWindow = Duration.zero
  private var bytesInWindow = 0

  /// - Parameter expected: The maximum number of bytes of the answer.
  package init(expected: UInt64) {
    maximum = Self.maximum(expected)
  }

  /// Returns how long the answer's head may take, from the start of a request with a body of `bytes` bytes. A server
  /// that accepts them more slowly, or not at all, fails long before: see ``SendingPace``.
  package static func headDeadline(sending bytes: UInt64) -> Duration { maximum(bytes) }

  private static func maximum(_ bytes: UInt64) -> Duration {
    allowance + .seconds(Int64(clamping: bytes / UInt64(bytesPerSecond)))
  }

  /// Counts bytes that arrived.
  ///
  /// - Returns: false if the answer is too slow.
  package mutating func arrived(_ bytes: Int, after waited: Duration) -> Bool {
    total += waited
    inWindow += waited
    bytesInWindow += bytes
    guard total <= maximum else { return false }
    guard inWindow >= Self.window else { return true }
    guard bytesInWindow >= Self.windowBytes else { return false }
    (inWindow, bytesInWindow) = (.zero, 0)
    return true
  }
}

extension TransportBody {
  /// Returns a body with the same bytes that throws an error if they arrive too slowly. The transport handles silence.
  func paced(
    expected: UInt64, origin: String, now: @escaping @Sendable () -> ContinuousClock.Instant
  ) -> TransportBody {
    let pace = Locked(TransferPace(expected: expected))
    return TransportBody {
      let start = now()
      guard let slice = try await next() else { return nil }
      let waited = start.duration(to: now())
      guard pace.withLock({ $0.arrived(slice.count, after: waited) }) else {
        throw TransportError(.tooSlow, origin: origin)
      }
      return slice
    }
  }
}

extension TransportRequest.Body {
  package var byteCount: UInt64 {
    switch self {
    case .none: 0
    case .bytes(let bytes): UInt64(bytes.count)
    case .stream(let length, _): length
    }
  }
}
