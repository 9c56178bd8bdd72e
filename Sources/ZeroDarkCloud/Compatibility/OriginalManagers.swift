public import Foundation
public import ZDCAccounts
public import ZDCClientStore
internal import ZDCProtocol
public import ZDCSync
public import ZDCTransfers
public import ZDCTreesystem

// Names from the original framework's managers.

extension Notification.Name {
  /// The Swift name of `ZDCSyncStatusChangedNotification`.
  public static let ZDCSyncStatusChanged = Notification.Name.ZDCSyncStatusChangedNotification
  /// The Swift name of `ZDCProgressListChangedNotification`.
  public static let ZDCProgressListChanged = Notification.Name.ZDCProgressListChangedNotification
}

extension ZDCNodeManager {
  /// Whether the node has children.
  public func hasChildren(_ node: ZDCNode, transaction: ZDCReadTransaction) -> Bool {
    hasChildren(node.uuid, transaction: transaction)
  }
}

extension ZDCLocalUserManager {
  /// Calls `body` with the id of each account until it sets `stop`, in the order in which the accounts were added to
  /// this device. Database errors poison the transaction.
  public func enumerateLocalUserIDs(
    _ transaction: ZDCReadTransaction, using body: (_ localUserID: String, _ stop: inout Bool) throws -> Void
  ) rethrows {
    var stop = false
    for user in allLocalUserIDs(transaction) where !stop { try body(user, &stop) }
  }

  /// Removes an account and all of its data from this device, including queued changes, in the caller's transaction.
  /// Does nothing if the account is not on this device. Errors poison the transaction.
  ///
  /// The session on the server expires on its own; ``delete(_:force:)-(String,_)`` ends it.
  public func deleteLocalUser(_ localUserID: String, transaction: ZDCReadWriteTransaction) {
    transaction.poisoning {
      guard let userID = UserID(text: localUserID), let row = try transaction.localUsers.user(userID) else { return }
      try transaction.localUsers.delete(id: row.id)
      transaction.signal(.localUsers)
      transaction.afterCommit { self.forget(userID) }
    }
  }
}

extension ZDCImageLoader {
  /// Fetches the avatar of a local user.
  @discardableResult
  public func fetchUserAvatar(
    _ localUser: ZDCLocalUser, with options: ZDCFetchOptions? = nil,
    preFetch: (_ image: Image?, _ willFetch: Bool) -> Void,
    postFetch: @escaping @MainActor @Sendable (_ image: Image?, _ error: (any Error)?) -> Void
  ) -> ZDCDownloadTicket? {
    fetchUserAvatar(ZDCUser(localUser), with: options, preFetch: preFetch, postFetch: postFetch)
  }
}

extension ZDCReachability {
  /// Calls `block` with the last known state and with each change, on the main actor, until the framework is closed.
  /// Each call adds a block; blocks are never removed.
  public func setReachabilityStatusChange(_ block: @escaping @MainActor @Sendable (_ isReachable: Bool) -> Void) {
    let changes = self.changes
    Task { for await isReachable in changes { await block(isReachable) } }
  }
}
