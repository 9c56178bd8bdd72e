internal import ZDCProtocol

// Look-ups inside a transaction (reference 3.17).

extension ZDCLocalUserManager {
  public func localUser(id localUserID: String, _ transaction: ZDCReadTransaction) throws -> ZDCLocalUser? {
    guard let userID = UserID(text: localUserID), let row = try transaction.localUsers.user(userID),
      row.state == .ready
    else { return nil }
    return row.localUser
  }

  /// The first account that came to this device; for apps that have one at most.
  public func anyLocalUser(_ transaction: ZDCReadTransaction) throws -> ZDCLocalUser? {
    try allLocalUsers(transaction).first
  }

  public func allLocalUserIDs(_ transaction: ZDCReadTransaction) throws -> [String] {
    try transaction.localUsers.readyIDs().map(\.text)
  }

  /// Calls `body` with each account, in the order in which they came, until it sets `stop`.
  public func enumerateLocalUsers(
    _ transaction: ZDCReadTransaction, using body: (_ localUser: ZDCLocalUser, _ stop: inout Bool) throws -> Void
  ) throws {
    var stop = false
    for user in try allLocalUsers(transaction) where !stop { try body(user, &stop) }
  }
}
