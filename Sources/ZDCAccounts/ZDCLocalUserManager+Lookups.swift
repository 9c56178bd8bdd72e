public import ZDCClientStore
internal import ZDCProtocol

// Lookups inside a transaction. They omit accounts whose creation or login has not finished. Database errors poison the
// transaction.

extension ZDCLocalUserManager {
  /// Returns the account; nil if it is not on this device.
  ///
  /// ```swift
  /// let user = session.localUserManager.localUser(id: node.localUserID, transaction)
  /// ```
  public func localUser(id localUserID: String, _ transaction: ZDCReadTransaction) -> ZDCLocalUser? {
    transaction.localUser(id: localUserID)
  }

  /// Returns the account that was added to this device first. For apps with at most one account.
  ///
  /// ```swift
  /// let user = try await connection.read { session.localUserManager.anyLocalUser($0) }
  /// ```
  public func anyLocalUser(_ transaction: ZDCReadTransaction) -> ZDCLocalUser? {
    allLocalUsers(transaction).first
  }

  /// Returns the accounts on this device, in the order in which they were added.
  ///
  /// ```swift
  /// let users = session.localUserManager.allLocalUsers(transaction)
  /// show(users.map(\.displayName))
  /// ```
  public func allLocalUsers(_ transaction: ZDCReadTransaction) -> [ZDCLocalUser] {
    transaction.poisoning {
      try transaction.localUsers.readyIDs().compactMap { transaction.localUser(id: $0.text) }
    } ?? []
  }

  /// Returns the IDs of the accounts on this device, in the order in which they were added.
  public func allLocalUserIDs(_ transaction: ZDCReadTransaction) -> [String] {
    transaction.poisoning { try transaction.localUsers.readyIDs().map(\.text) } ?? []
  }

  /// Calls `body` with each account, in the order in which they were added, until it sets `stop`.
  ///
  /// ```swift
  /// session.localUserManager.enumerateLocalUsers(transaction) { localUser, stop in
  ///   stop = localUser.uuid == node.localUserID
  /// }
  /// ```
  public func enumerateLocalUsers(
    _ transaction: ZDCReadTransaction, using body: (_ localUser: ZDCLocalUser, _ stop: inout Bool) throws -> Void
  ) rethrows {
    var stop = false
    for user in allLocalUsers(transaction) where !stop { try body(user, &stop) }
  }
}
