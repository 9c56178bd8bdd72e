internal import Synchronization

/// How an image is fetched. Read once, when it is asked for.
public final class ZDCFetchOptions: Sendable {
  struct Values: Sendable {
    var downloadIfMarkedAsNeedsDownload = true
    var identityID: String?
  }

  private let state = Mutex(Values())

  public init() {}

  var values: Values { state.withLock { $0 } }

  /// Whether a thumbnail that is here is downloaded again if its node is marked as needing that. The old one is
  /// delivered first, the new one when it is there, and then the mark goes unless the node has changed again.
  public var downloadIfMarkedAsNeedsDownload: Bool {
    get { state.withLock { $0.downloadIfMarkedAsNeedsDownload } }
    set { state.withLock { $0.downloadIfMarkedAsNeedsDownload = newValue } }
  }

  /// Which of a user's avatars; nil for the main one.
  public var identityID: String? {
    get { state.withLock { $0.identityID } }
    set { state.withLock { $0.identityID = newValue } }
  }
}
