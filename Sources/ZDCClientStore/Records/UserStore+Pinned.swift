internal import GRDB
package import ZDCProtocol

extension UserStore {
  /// All users whose identity chain is pinned.
  package func pinnedIDs() throws -> [UserID] {
    var users: [UserID] = []
    try db.forEachRow("SELECT userID FROM zdc_user", []) { users.append(try UserID($0, 0)) }
    return users
  }
}
