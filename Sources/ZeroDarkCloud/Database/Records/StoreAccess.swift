internal import GRDB
internal import ZDCProtocol

// One store of a kind for the whole transaction.

extension ZDCReadTransaction {
  var nodes: NodeStore { cached { NodeStore(db: database, sealer: context.sealer) } }
  var operations: OperationStore { cached { OperationStore(db: database, sealer: context.sealer) } }
  var zones: ZoneStore { cached { ZoneStore(db: database, sealer: context.sealer) } }
}

extension ZDCReadWriteTransaction {
  /// Keeps a security error in the database, where an app or a person finds it later.
  func record(_ error: ZDCSecurityError, localUser: Int64, zone: Int64, atMs time: UInt64) throws {
    try database.execute(
      sql: """
        INSERT INTO zdc_security_event (timeMs, code, localUser, zone, nodeID, userID) VALUES (?, ?, ?, ?, ?, ?)
        """,
      arguments: [time.stored, error.code.rawValue, localUser, zone, error.node?.data, error.user?.data])
  }
}
