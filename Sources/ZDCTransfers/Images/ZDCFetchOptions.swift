internal import Synchronization

/// Options for fetching an image. Read once, when the image is requested.
///
/// ```swift
/// let options = ZDCFetchOptions()
/// options.downloadIfMarkedAsNeedsDownload = false  // the stored thumbnail will do, however old
/// session.imageManager.fetchNodeThumbnail(node, with: options) { image, _ in
///   cell.thumbnail.image = image
/// } postFetch: { image, _ in
///   cell.thumbnail.image = image
/// }
/// ```
public final class ZDCFetchOptions: Sendable {
  package struct Values: Sendable {
    package var downloadIfMarkedAsNeedsDownload = true
    package var identityID: String?
  }

  private let state = Mutex(Values())

  /// Creates the default options.
  public init() {}

  package var values: Values { state.withLock { $0 } }

  /// Whether a stored thumbnail is downloaded again if the node has a different one by now, or is marked as needing a
  /// download. The stored one is delivered first, then the new one. The mark is then removed unless the node has
  /// changed again. If false, the stored one is delivered, however old.
  ///
  /// ```swift
  /// let options = ZDCFetchOptions()
  /// options.downloadIfMarkedAsNeedsDownload = true
  /// ```
  public var downloadIfMarkedAsNeedsDownload: Bool {
    get { state.withLock { $0.downloadIfMarkedAsNeedsDownload } }
    set { state.withLock { $0.downloadIfMarkedAsNeedsDownload = newValue } }
  }

  /// The identity of the avatar; nil for the user's main one.
  ///
  /// ```swift
  /// let options = ZDCFetchOptions()
  /// options.identityID = "work"
  /// ```
  public var identityID: String? {
    get { state.withLock { $0.identityID } }
    set { state.withLock { $0.identityID = newValue } }
  }
}
