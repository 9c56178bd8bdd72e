internal import Foundation
package import GRDB
package import ZDCProtocol

/// The rows of zdc_user inside one transaction: other users' identity chains, pinned as they were verified
/// (PROTOCOL 3.2).
package struct UserStore {
  package let db: Database

  package func all() throws -> [UserID] {
    try Row.fetchAll(db, sql: "SELECT userID FROM zdc_user ORDER BY userID").map { try UserID($0, 0) }
  }

  package func chain(of user: UserID) throws -> [UInt8]? {
    let statement = try db.cachedStatement(sql: "SELECT chain FROM zdc_user WHERE userID = ?")
    return try Row.fetchOne(statement, arguments: [user.data])?.requiredBytes(0)
  }

  /// The users among these whose chain was not asked for since a time.
  package func due(_ users: Set<UserID>, since time: UInt64) throws -> [UserID] {
    let statement = try db.cachedStatement(sql: "SELECT 1 FROM zdc_user WHERE userID = ? AND refreshedMs > ?")
    return try users.filter { try Row.fetchOne(statement, arguments: [$0.data, time.stored]) == nil }.sorted()
  }

  /// Notes that the server was asked for new links of these users' chains.
  package func noteRefreshed(_ users: [UserID], atMs time: UInt64) throws {
    let statement = try db.cachedStatement(sql: "UPDATE zdc_user SET refreshedMs = ? WHERE userID = ?")
    for user in users { try statement.execute(arguments: [time.stored, user.data]) }
  }

  /// Returns the users whose pinned chains claim a handle. There is more than one only if chains are outdated.
  package func holders(of handle: Handle) throws -> [UserID] {
    let statement = try db.cachedStatement(sql: "SELECT userID FROM zdc_user WHERE handle = ? ORDER BY userID")
    return try Row.fetchAll(statement, arguments: [handle.text]).map { try UserID($0, 0) }
  }

  /// Pins a chain that was verified, and that continues the one that is pinned.
  ///
  /// - Parameter handle: What the chain claims.
  package func pin(_ chain: [UInt8], handle: Handle?, of user: UserID, atMs time: UInt64) throws {
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_user (userID, chain, handle, refreshedMs) VALUES (?, ?, ?, ?)
        ON CONFLICT (userID) DO UPDATE
          SET chain = excluded.chain, handle = excluded.handle, refreshedMs = excluded.refreshedMs
        """)
    try statement.execute(arguments: [user.data, Data(chain), handle?.text, time.stored])
  }
}
