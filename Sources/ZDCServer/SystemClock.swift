#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

extension ServerClock {
  /// The machine's clock.
  package static let system = ServerClock { UInt64(max(0, Date().timeIntervalSince1970 * 1_000)) }
}
