public import Foundation

/// How much the merge journal keeps. What is beyond it goes when something new comes, oldest first.
public struct ZDCJournalLimits: Sendable, Hashable {
  /// Entries of one local user's tree.
  public var maxEntries = 1_000
  public var maxAge: TimeInterval = 90 * 86_400
  /// Bytes of one entry, as JSON. Of a larger one the base's, the cloud's and the result's values are left out first,
  /// then the way back to the whole local value, and at last what lost.
  public var maxEntryBytes = 64 << 10

  public init() {}
}
