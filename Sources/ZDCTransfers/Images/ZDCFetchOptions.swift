internal import Synchronization

/// How an image is fetched. Read once, when it is asked for.
public final class ZDCFetchOptions: Sendable {
  package struct Values: Sendable {
    package var downloadIfMarkedAsNeedsDownload = true
    package var identityID: String?
  }

  private let state = Mutex(Values())

  public init() {}

  package var values: Values { state.withLock { $0 } }

  /// Whether a thumbnail that is here is downloaded again if the node has another one by now, or is marked as needing
  /// that. The old one is delivered first, then the new one; a mark is removed unless the node has changed again. If
  /// false, the one that is here is delivered, however old.
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
