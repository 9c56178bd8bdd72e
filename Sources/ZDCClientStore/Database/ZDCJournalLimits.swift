public import Foundation

/// The limits of the merge journal. A new entry evicts what exceeds them, oldest first.
///
/// ```swift
/// var config = try ZDCConfig(primaryTreeID: "com.example.todo", server: "https://sync.example.com")
/// config.journalLimits.maxAge = 30 * 86_400  // seconds
/// ```
public struct ZDCJournalLimits: Sendable, Hashable {
  /// Maximum number of entries for one local user's tree.
  public var maxEntries = 1_000
  /// Maximum age of an entry in seconds; 90 days by default.
  public var maxAge: TimeInterval = 90 * 86_400
  /// Maximum size of an entry as JSON, in bytes. A larger entry first loses the base, cloud and result values, then the
  /// data that restores the whole local value, and finally what lost the merge.
  public var maxEntryBytes = 64 << 10

  /// Creates the default limits: 1,000 entries, 90 days, 64 KiB for each entry.
  public init() {}
}
