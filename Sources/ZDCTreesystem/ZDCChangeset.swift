public import Foundation

/// How one of the app's values was changed, so that the change can be undone and merged.
///
/// Kept with the queued upload until it is done; see `pendingChangesets(forNodeID:)`.
public struct ZDCChangeset: Sendable, Hashable, Codable {
  /// The encoded changes. Never sent.
  public let encoded: Data

  public init(encoded: Data) {
    self.encoded = encoded
  }
}
