public import Foundation

/// What kind of transfer a ``ZDCProgressManagerChanges`` tells of.
public enum ZDCProgressType: Sendable, Hashable {
  case metaDownload
  case dataDownload
  case upload
}

/// A transfer has begun or ended: one of the lists of ``ZDCProgressManager`` is another one now (reference 3.12).
public struct ZDCProgressManagerChanges: Sendable, Hashable {
  public let progressType: ZDCProgressType
  public let localUserID: String
  public let nodeID: String
  /// What a `metaDownload` brings.
  public let metaComponents: ZDCNodeMetaComponents
  /// Set for an upload.
  public let operationUUID: String?
  /// Whether an upload sends content, and not only the node's record.
  public let isDataUpload: Bool
}

extension Notification.Name {
  /// A transfer has begun or ended. Posted on any thread, by the manager; `userInfo` has a
  /// ``ZDCProgressManagerChanges`` under ``kZDCProgressManagerChanges``.
  public static let ZDCProgressListChangedNotification = Notification.Name("ZDCProgressListChangedNotification")
}

/// The key of the ``ZDCProgressManagerChanges`` in a notification's `userInfo`.
public let kZDCProgressManagerChanges = "ZDCProgressManagerChanges"
