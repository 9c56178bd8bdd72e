// Look-ups inside a transaction (reference 3.17).

extension ZDCLocalUserManager {
  public func localUser(id localUserID: String, _ transaction: ZDCReadTransaction) -> ZDCLocalUser? {
    transaction.localUser(id: localUserID)
  }

  /// The first account that came to this device; for apps that have one at most.
  public func anyLocalUser(_ transaction: ZDCReadTransaction) -> ZDCLocalUser? {
    allLocalUsers(transaction).first
  }

  /// The same as ``allLocalUsers()`` inside a transaction. Errors poison it.
  public func allLocalUsers(_ transaction: ZDCReadTransaction) -> [ZDCLocalUser] {
    transaction.poisoning { try transaction.localUsers.all().filter { $0.state == .ready }.map(\.localUser) } ?? []
  }

  public func allLocalUserIDs(_ transaction: ZDCReadTransaction) -> [String] {
    transaction.poisoning { try transaction.localUsers.readyIDs().map(\.text) } ?? []
  }

  /// Calls `body` with each account, in the order in which they came, until it sets `stop`.
  public func enumerateLocalUsers(
    _ transaction: ZDCReadTransaction, using body: (_ localUser: ZDCLocalUser, _ stop: inout Bool) throws -> Void
  ) rethrows {
    var stop = false
    for user in allLocalUsers(transaction) where !stop { try body(user, &stop) }
  }
}
