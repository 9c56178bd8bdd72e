public import Foundation
internal import ZDCProtocol
public import ZDCTreesystem

// Names of the original's managers.

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

  /// Another form of ``recursiveIterateNodeIDs(withParentID:transaction:using:)``.
  public func recursiveEnumerateNodeIDs(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (
      _ nodeID: String, _ pathFromParent: [String], _ recurseInto: inout Bool, _ stop: inout Bool
    ) throws -> Void
  ) rethrows {
    try recursiveIterateNodeIDs(withParentID: parentID, transaction: transaction, using: body)
  }

  /// Another form of ``recursiveIterateNodes(withParentID:transaction:using:)``.
  public func recursiveEnumerateNodes(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (
      _ node: ZDCNode, _ pathFromParent: [ZDCNode], _ recurseInto: inout Bool, _ stop: inout Bool
    ) throws -> Void
  ) rethrows {
    try recursiveIterateNodes(withParentID: parentID, transaction: transaction, using: body)
  }
}

extension ZDCLocalUserManager {
  /// Calls `body` with each account's id, in the order in which they came, until it sets `stop`.
  public func enumerateLocalUserIDs(
    _ transaction: ZDCReadTransaction, using body: (_ localUserID: String, _ stop: inout Bool) throws -> Void
  ) rethrows {
    var stop = false
    for user in allLocalUserIDs(transaction) where !stop { try body(user, &stop) }
  }
}

extension ZDCLocalUserManager {
  /// Removes an account and everything of theirs from this device, queued changes included, in the caller's
  /// transaction. Errors poison it. `delete(_:force:)` also ends the account's session on the server.
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
  /// Fetches the avatar of an account on this device.
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
  /// Calls `block` with what is known and with each change, on the main actor, until the framework is closed.
  public func setReachabilityStatusChange(_ block: @escaping @MainActor @Sendable (_ isReachable: Bool) -> Void) {
    let changes = self.changes
    Task { for await isReachable in changes { await block(isReachable) } }
  }
}
