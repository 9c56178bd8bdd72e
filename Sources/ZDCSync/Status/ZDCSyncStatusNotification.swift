public import Foundation
internal import ZDCProtocol

/// The result of a pull.
public enum ZDCPullResult: Int, Sendable, Hashable {
  /// The pull reached the end of the log.
  case success = 0
  /// The pull was aborted, by ``ZDCSyncManager/abortPull(forLocalUserID:)`` or because its task was cancelled.
  case manuallyAborted = 1
  /// The cloud changed during the pull. Never happens here, because pages are consistent; kept for apps that switch
  /// over it.
  case failCloudChanged = 2
  /// The server refused the session.
  case failAuth = 3
  /// Any other failure, such as an unreachable server. ``ZDCSyncManager/statusUpdates`` has the error.
  case failOther = 4

  package init(_ error: any Error) {
    switch error {
    case is CancellationError: self = .manuallyAborted
    case let error as ServerError
    where [.unauthorized, .forbidden, .accountClosed, .accountSuspended].contains(error.code):
      self = .failAuth
    default: self = .failOther
    }
  }
}

/// The payload of a `ZDCSyncStatusChangedNotification`.
public struct ZDCSyncStatusNotificationInfo: Sendable, Hashable {
  /// What changed.
  public enum Kind: Int, Sendable, Hashable, CaseIterable {
    /// A pull has found changes. Pulls without changes are not reported.
    case pullStarted
    /// The pull has ended, with `pullResult`.
    case pullStopped
    /// Data is being sent.
    case pushStarted
    /// Nothing is being sent any more.
    case pushStopped
    /// Pushes were paused.
    case pushPaused
    /// Pushes were resumed.
    case pushResumed
    /// The result of ``ZDCSyncManager/syncingNodeIDs(forLocalUserID:)`` has changed.
    case syncingNodeIDsChanged
  }

  /// What changed.
  public let type: Kind
  /// The user whose sync it concerns.
  public let localUserID: String
  /// The app's name for the user's tree.
  public let treeID: String
  /// Set for `pullStopped`.
  public let pullResult: ZDCPullResult?

  package init(_ type: Kind, localUserID: String, treeID: String, pullResult: ZDCPullResult? = nil) {
    self.type = type
    self.localUserID = localUserID
    self.treeID = treeID
    self.pullResult = pullResult
  }
}

extension Notification.Name {
  /// Posted on any thread by the ``ZDCSyncManager``. `userInfo` has a ``ZDCSyncStatusNotificationInfo`` under
  /// ``kZDCSyncStatusNotificationInfo``.
  ///
  /// New code uses ``ZDCSyncManager/statusUpdates``.
  ///
  /// ```swift
  /// let name = Notification.Name.ZDCSyncStatusChangedNotification
  /// NotificationCenter.default.addObserver(forName: name, object: nil, queue: .main) { notification in
  ///   let info = notification.userInfo?[kZDCSyncStatusNotificationInfo] as? ZDCSyncStatusNotificationInfo
  ///   if info?.type == .pullStopped { refreshCell() }
  /// }
  /// ```
  public static let ZDCSyncStatusChangedNotification = Notification.Name("ZDCSyncStatusChangedNotification")
}

/// The key of the ``ZDCSyncStatusNotificationInfo`` in a notification's `userInfo`.
public let kZDCSyncStatusNotificationInfo = "ZDCSyncStatusNotificationInfo"
