internal import Foundation

/// This device's clock, for reports.
enum WallClock {
  /// Milliseconds since 1970.
  static var milliseconds: UInt64 { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) }
}
