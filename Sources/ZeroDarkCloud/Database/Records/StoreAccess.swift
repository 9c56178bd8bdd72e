internal import GRDB
internal import ZDCProtocol

// One store of a kind for the whole transaction.

extension ZDCReadTransaction {
  var nodes: NodeStore { cached { NodeStore(db: database, sealer: context.sealer) } }
  var operations: OperationStore { cached { OperationStore(db: database, sealer: context.sealer) } }
  var zones: ZoneStore { cached { ZoneStore(db: database, sealer: context.sealer, memory: context.zones) } }
  /// For looking up.
  func leaves(zone: Int64) -> LeafStore { LeafStore(db: database, zone: zone) }
}

extension ZDCReadTransaction {
  /// What was last found out about a zone, and when.
  func lastSecurityEvent(zone: Int64) throws -> (code: ZDCSecurityError.Code, timeMs: UInt64)? {
    let statement = try database.cachedStatement(
      sql: "SELECT code, timeMs FROM zdc_security_event WHERE zone = ? ORDER BY id DESC LIMIT 1")
    guard let row = try Row.fetchOne(statement, arguments: [zone]),
      let code = ZDCSecurityError.Code(rawValue: row[0])
    else { return nil }
    return (code, row.unsigned(1) ?? 0)
  }

  /// When that was last found out about a zone.
  func lastSecurityEvent(zone: Int64, code: ZDCSecurityError.Code) throws -> UInt64? {
    let statement = try database.cachedStatement(
      sql: "SELECT timeMs FROM zdc_security_event WHERE zone = ? AND code = ? ORDER BY id DESC LIMIT 1")
    return try Row.fetchOne(statement, arguments: [zone, code.rawValue])?.unsigned(0)
  }
}

extension ZDCReadWriteTransaction {
  /// Keeps a security error in the database, where an app or a person finds it later.
  func record(_ error: ZDCSecurityError, localUser: Int64, zone: Int64?, atMs time: UInt64) throws {
    try database.execute(
      sql: """
        INSERT INTO zdc_security_event (timeMs, code, localUser, zone, nodeID, userID) VALUES (?, ?, ?, ?, ?, ?)
        """,
      arguments: [time.stored, error.code.rawValue, localUser, zone, error.node?.data, error.user?.data])
  }
}
