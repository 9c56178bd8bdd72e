internal import Synchronization

/// The time of the database, which all processes of a server use: the clocks of their machines may differ.
///
/// Each read of the feed, at least twice a second, brings a new value. In between, and while the database cannot be reached,
/// this process's monotonic clock counts on from the last one.
final class SharedTime: Sendable {
  /// The database's clock when the statement runs, in milliseconds since 1970.
  static let sql = "(extract(epoch FROM clock_timestamp()) * 1000)::int8"

  private let reading: Mutex<(ms: UInt64, at: ContinuousClock.Instant)>

  init(ms: UInt64) { reading = Mutex((ms, .now)) }

  func set(ms: UInt64) { reading.withLock { $0 = (ms, .now) } }

  var nowMs: UInt64 {
    let (ms, at) = reading.withLock { $0 }
    return ms + UInt64(max(0, at.duration(to: .now) / .milliseconds(1)))
  }
}
