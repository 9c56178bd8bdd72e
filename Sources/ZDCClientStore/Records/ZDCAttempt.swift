public import Foundation

/// The outcome of an attempt to send an operation. Consecutive attempts with the same outcome are one value.
public struct ZDCAttempt: Sendable, Hashable, Codable {
  /// How an attempt ended.
  public enum Outcome: String, Sendable, Hashable, Codable, CaseIterable {
    /// It left this device, and no answer came: the same bytes go again.
    case noAnswer
    /// The server did not take it.
    case serverSaid
    /// There was no room in the account.
    case overQuota
    /// Another device's commit came first.
    case overtaken
    /// The app's delegate threw, its promise was rejected, or its file could not be read.
    case noDataFromApp
    /// The app's file changed while it was read.
    case sourceChanged
    /// The app's delegate threw when it was notified of the outcome.
    case appFailed
    /// The content in the cloud is another one than the edit was based on.
    case conflict
  }

  /// How the attempts ended.
  public var outcome: Outcome
  /// The server's error code, that of the network, or the type of the app's error. Never a name, a key or content.
  public var code: String?
  /// The number of consecutive attempts with this outcome.
  public var times: Int
  /// When the first of them ended.
  public var firstDate: Date
  /// When the last of them ended.
  public var date: Date
}
