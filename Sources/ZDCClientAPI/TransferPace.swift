internal import ZDCProtocol
internal import ZDCSupport

/// How slowly an answer may arrive. Counts only the time in which the reader waits, so a slow reader loses nothing. Pure.
package struct TransferPace: Sendable {
  /// Waiting for this long must bring ``windowBytes``.
  package static let window = Duration.seconds(60)
  static let windowBytes = 120 << 10
  /// The time limit of a whole request or a whole answer, besides one second for each ``bytesPerSecond``.
  static let allowance = Duration.seconds(120)
  static let bytesPerSecond = 2 << 10

  private let maximum: Duration
  private var total = Duration.zero
  private var inWindow = Duration.zero
  private var bytesInWindow = 0

  /// - Parameter expected: how many bytes the answer has, at most.
  package init(expected: UInt64) {
    maximum = Self.maximum(expected)
  }

  /// How long the answer's head may take, counted from the start of a request with a body of so many bytes. A server that
  /// takes them more slowly, or not at all, is given up long before: see ``SendingPace``.
  static func headDeadline(sending bytes: UInt64) -> Duration { maximum(bytes) }

  private static func maximum(_ bytes: UInt64) -> Duration {
    allowance + .seconds(Int64(clamping: bytes / UInt64(bytesPerSecond)))
  }

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
  /// The same bytes, and an error once they arrive too slowly. Silence is for the transport to end.
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
