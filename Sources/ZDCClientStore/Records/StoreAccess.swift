internal import GRDB
package import ZDCProtocol

// One store of a kind for the whole transaction.

extension ZDCReadTransaction {
  package var nodes: NodeStore { cached { NodeStore(db: database, context: context) } }
  package var operations: OperationStore { cached { OperationStore(db: database, sealer: context.sealer) } }
  package var users: UserStore { UserStore(db: database) }
  package var localUsers: LocalUserStore { LocalUserStore(db: database, sealer: context.sealer) }
  package var contacts: ContactStore { ContactStore(db: database, sealer: context.sealer) }
  package var identityChanges: IdentityChangeStore { IdentityChangeStore(db: database, sealer: context.sealer) }
  package var zones: ZoneStore { cached { ZoneStore(db: database, sealer: context.sealer, memory: context.zones) } }
  /// For looking up.
  package func leaves(zone: Int64) -> LogNodeStore { LogNodeStore(db: database, zone: zone) }
}

extension ZDCReadTransaction {
  /// The latest security error of a zone, and when it was found.
  package func lastSecurityEvent(zone: Int64) throws -> (code: ZDCSecurityError.Code, timeMs: UInt64)? {
    let statement = try database.cachedStatement(
      sql: "SELECT code, timeMs FROM zdc_security_event WHERE zone = ? ORDER BY id DESC LIMIT 1")
    guard let row = try Row.fetchOne(statement, arguments: [zone]),
      let code = ZDCSecurityError.Code(rawValue: row[0])
    else { return nil }
    return (code, row.unsigned(1) ?? 0)
  }

  /// The latest security error of a node among the newest thousand events: the table has no index for nodes.
  package func lastSecurityEvent(localUser: Int64, node: NodeID) throws -> (code: String, timeMs: UInt64)? {
    let statement = try database.cachedStatement(
      sql: """
        SELECT code, timeMs FROM (SELECT * FROM zdc_security_event ORDER BY id DESC LIMIT 1000)
        WHERE nodeID = ? AND localUser = ? ORDER BY id DESC LIMIT 1
        """)
    return try Row.fetchOne(statement, arguments: [node.data, localUser]).map { ($0[0], $0.unsigned(1) ?? 0) }
  }

  /// When that was last found out about a zone.
  package func lastSecurityEvent(zone: Int64, code: ZDCSecurityError.Code) throws -> UInt64? {
    let statement = try database.cachedStatement(
      sql: "SELECT timeMs FROM zdc_security_event WHERE zone = ? AND code = ? ORDER BY id DESC LIMIT 1")
    return try Row.fetchOne(statement, arguments: [zone, code.rawValue])?.unsigned(0)
  }
}

extension ZDCReadWriteTransaction {
  /// Keeps a security error in the database, where an app or a person finds it later. Equal ones are one row, which
  /// becomes the newest again, with the latest range of missing messages. The oldest rows are deleted above a limit, except the reason why a tree is frozen.
  package func record(_ error: ZDCSecurityError, localUser: Int64, zone: Int64?, atMs time: UInt64) throws {
    let same: StatementArguments = [
      localUser, error.code.rawValue, zone, error.node?.data, error.user?.data, error.device?.stored,
    ]
    let isSame = "localUser = ? AND code = ? AND zone IS ? AND nodeID IS ? AND userID IS ? AND device IS ?"
    let known = try Row.fetchOne(
      database, sql: "SELECT SUM(times), MIN(firstMs) FROM zdc_security_event WHERE \(isSame)", arguments: same)
    let times: Int = known?[0] ?? 0
    if times > 0 { try database.execute(sql: "DELETE FROM zdc_security_event WHERE \(isSame)", arguments: same) }
    try database.execute(
      sql: """
        INSERT INTO zdc_security_event
        (localUser, code, zone, nodeID, userID, device, timeMs, times, firstMs, firstMissing, lastMissing)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
      arguments: same + [
        time.stored, times + 1, times > 0 ? known?[1] as Int64? : time.stored, error.missing?.lowerBound.stored,
        error.missing?.upperBound.stored,
      ])
    try trimSecurityEvents(localUser: localUser)
  }

  private func trimSecurityEvents(localUser: Int64) throws {
    try database.execute(
      sql: """
        DELETE FROM zdc_security_event WHERE localUser = ?1 AND id <= (
          SELECT id FROM zdc_security_event WHERE localUser = ?1 ORDER BY id DESC
          LIMIT 1 OFFSET \(ZDCSecurityEvent.limit))
        AND NOT EXISTS (SELECT 1 FROM zdc_zone z WHERE z.id = zone AND z.frozen = code)
        """, arguments: [localUser])
  }
}
