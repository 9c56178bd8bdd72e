public import Foundation

/// The kind of transfer that a ``ZDCProgressManagerChanges`` describes.
public enum ZDCProgressType: Sendable, Hashable {
  /// A download of metadata or a thumbnail.
  case metaDownload
  /// A download of data.
  case dataDownload
  /// An operation that is being sent, with or without content.
  case upload
}

/// A change to the lists of ``ZDCProgressManager``: a transfer has begun or ended.
///
/// ```swift
/// for await change in zdc.progressManager.changes where change.progressType == .upload && change.isDataUpload {
///   refreshRow(change.nodeID)
/// }
/// ```
public struct ZDCProgressManagerChanges: Sendable, Hashable {
  /// The kind of transfer.
  public let progressType: ZDCProgressType
  /// The user whose transfer it is.
  public let localUserID: String
  /// ``ZDCNode/uuid`` of the node.
  public let nodeID: String
  /// The components that a `metaDownload` fetches.
  public let metaComponents: ZDCNodeMetaComponents
  /// The uuid of an uploaded operation; nil for downloads.
  public let operationUUID: String?
  /// Whether an upload sends content, not only the node's record.
  public let isDataUpload: Bool
}

extension Notification.Name {
  /// Posted by the manager, on any thread, when a transfer has begun or ended. `userInfo` holds a
  /// ``ZDCProgressManagerChanges`` under ``kZDCProgressManagerChanges``.
  public static let ZDCProgressListChangedNotification = Notification.Name("ZDCProgressListChangedNotification")
}

/// The key of the ``ZDCProgressManagerChanges`` in a notification's `userInfo`.
public let kZDCProgressManagerChanges = "ZDCProgressManagerChanges"
