internal import Foundation
package import GRDB
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// A row of zdc_local_user.
package struct LocalUserRow: Sendable {
  package enum State: Int64, Sendable {
    /// The account's secrets are safe here; whether the server has the account is not yet known.
    case creating = 0
    case ready = 1
    /// The account exists; whether the server has the app's tree is not yet known.
    case addingTree = 2
  }

  package var id: Int64 = 0
  package var userID: UserID
  package var state: State
  /// The user's own identity chain, a bundle.
  package var chain: [UInt8]
  package var secrets: LocalUserSecrets
  package var createdMs: UInt64
  /// Created on this device, and its words were never shown.
  package var isNew = false

  package init(
    id: Int64 = 0, userID: UserID, state: State, chain: [UInt8], secrets: LocalUserSecrets, createdMs: UInt64,
    isNew: Bool = false
  ) {
    self.id = id
    self.userID = userID
    self.state = state
    self.chain = chain
    self.secrets = secrets
    self.createdMs = createdMs
    self.isNew = isNew
  }
}

/// The rows of zdc_local_user inside one transaction.
package struct LocalUserStore {
  package let db: Database
  package let sealer: TableSealer

  package init(db: Database, sealer: ValueSealer) {
    self.db = db
    self.sealer = sealer.table("zdc_local_user")
  }

  package func all() throws -> [LocalUserRow] {
    try fetch("ORDER BY id", [])
  }

  /// The account whose creation was begun and not finished, if there is one for this server and tree.
  package func unfinished(origin: String, appTreeID: String) throws -> LocalUserRow? {
    try fetch("WHERE state = ? ORDER BY id", [LocalUserRow.State.creating.rawValue]).first {
      $0.secrets.origin == origin && $0.secrets.appTreeID == appTreeID
    }
  }

  /// An account that was created here and never used: its words were not requested, and its trees are empty.
  package func unseen(origin: String, appTreeID: String) throws -> LocalUserRow? {
    try fetch(
      """
      WHERE state = ? AND isNew = 1 AND NOT EXISTS (
        SELECT 1 FROM zdc_zone z JOIN zdc_node n ON n.zone = z.id
        WHERE z.localUser = zdc_local_user.id AND n.parent IS NOT NULL)
      ORDER BY id
      """, [LocalUserRow.State.ready.rawValue]
    ).first { $0.secrets.origin == origin && $0.secrets.appTreeID == appTreeID }
  }

  package func setSeen(_ userID: UserID) throws {
    try db.execute(sql: "UPDATE zdc_local_user SET isNew = 0 WHERE userID = ?", arguments: [userID.data])
  }

  package func user(_ userID: UserID) throws -> LocalUserRow? {
    try fetch("WHERE userID = ?", [userID.data]).first
  }

  package func user(id: Int64) throws -> LocalUserRow? {
    try fetch("WHERE id = ?", [id]).first
  }

  /// The ready ones, without opening what is sealed.
  package func readyIDs() throws -> [UserID] {
    let statement = try db.cachedStatement(sql: "SELECT userID FROM zdc_local_user WHERE state = 1 ORDER BY id")
    return try Row.fetchAll(statement).map { try UserID($0, 0) }
  }

  package func insert(_ row: inout LocalUserRow) throws {
    // Engines of this process and of others know a user by this number, so a later user never gets it.
    try db.execute(
      sql: """
        INSERT INTO zdc_local_user (id, userID, state, chain, sealed, createdMs, isNew) VALUES (
          1 + max((SELECT last FROM zdc_local_user_number), coalesce((SELECT max(id) FROM zdc_local_user), 0)),
          ?, ?, ?, ?, ?, ?)
        """,
      arguments: try arguments(row))
    row.id = db.lastInsertedRowID
  }

  package func update(_ row: LocalUserRow) throws {
    try db.execute(
      sql: """
        UPDATE zdc_local_user SET userID = ?, state = ?, chain = ?, sealed = ?, createdMs = ?, isNew = ? WHERE id = ?
        """,
      arguments: try arguments(row) + [row.id])
  }

  /// Deletes the user and all their data on this device.
  package func delete(id: Int64) throws {
    try db.execute(sql: "DELETE FROM zdc_security_event WHERE localUser = ?", arguments: [id])
    try db.execute(sql: "DELETE FROM zdc_link WHERE localUser = ?", arguments: [id])
    try db.execute(
      sql: "DELETE FROM zdc_meta WHERE key IN (?, ?)", arguments: [PushPause.key(id), LastSynced.key(id)])
    try db.execute(sql: "DELETE FROM zdc_local_user WHERE id = ?", arguments: [id])
  }

  package func hasQueuedChanges(id: Int64) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: """
        SELECT EXISTS (SELECT 1 FROM zdc_operation o JOIN zdc_zone z ON o.zone = z.id WHERE z.localUser = ?)
        """)
    return try Bool.fetchOne(statement, arguments: [id]) ?? false
  }

  // MARK: Sessions

  /// The token of the user's last session; nil if there is none, or it does not open any more.
  package func sessionToken(of userID: UserID) throws -> [UInt8]? {
    let statement = try db.cachedStatement(sql: "SELECT session FROM zdc_local_user WHERE userID = ?")
    guard let sealed = try Row.fetchOne(statement, arguments: [userID.data])?.bytes(0) else { return nil }
    return try? sealer.open(sealed, row: userID.bytes, column: "session")
  }

  package func setSessionToken(_ token: [UInt8]?, of userID: UserID) throws {
    let sealed = try token.map { Data(try sealer.seal($0, row: userID.bytes, column: "session")) }
    try db.execute(
      sql: "UPDATE zdc_local_user SET session = ? WHERE userID = ?", arguments: [sealed, userID.data])
  }

  private func fetch(_ condition: String, _ arguments: StatementArguments) throws -> [LocalUserRow] {
    let statement = try db.cachedStatement(
      sql: "SELECT id, userID, state, chain, sealed, createdMs, isNew FROM zdc_local_user \(condition)")
    return try Row.fetchAll(statement, arguments: arguments).map(decode)
  }

  private func arguments(_ row: LocalUserRow) throws -> StatementArguments {
    let sealed = try sealer.seal(row.secrets.bytes, row: row.userID.bytes)
    return [row.userID.data, row.state.rawValue, Data(row.chain), Data(sealed), row.createdMs.stored, row.isNew]
  }

  private func decode(_ row: Row) throws -> LocalUserRow {
    let userID = try UserID(row, 1)
    guard let state = LocalUserRow.State(rawValue: row[2]) else { throw ZDCError(.corruptDatabase) }
    return LocalUserRow(
      id: row[0], userID: userID, state: state, chain: try row.requiredBytes(3),
      secrets: try LocalUserSecrets(try sealer.open(try row.requiredBytes(4), row: userID.bytes)),
      createdMs: row.unsigned(5) ?? 0, isNew: row[6])
  }
}

extension LocalUserRow {
  /// The API's value of an account whose profile is not known.
  package var localUser: ZDCLocalUser { localUser(name: nil) }

  func localUser(name: String?) -> ZDCLocalUser {
    ZDCLocalUser(
      uuid: userID.text, serverOrigin: secrets.origin, treeID: secrets.appTreeID,
      addedDate: Date(timeIntervalSince1970: Double(createdMs) / 1_000), name: name)
  }
}
