#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

extension ServerClock {
  /// The machine's clocks.
  package static let system = ServerClock(
    nowMs: { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) },
    elapsedMs: { UInt64(max(0, (ContinuousClock.now - start) / .milliseconds(1))) })

  private static let start = ContinuousClock.now
}
