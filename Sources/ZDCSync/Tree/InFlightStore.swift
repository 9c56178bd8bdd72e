internal import Foundation
internal import GRDB
package import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport
package import ZDCTransfers

/// The request without a known outcome. It is stored before it is sent, so that every retry sends the same bytes.
package struct InFlightStore {
  package let transaction: ZDCReadTransaction
  private var db: Database { transaction.database }

  package init(transaction: ZDCReadTransaction) {
    self.transaction = transaction
  }

  package struct Request: Sendable {
    package var commitHash: CommitHash
    package var body: [UInt8]
    /// The request's operations, in the form that the progress manager uses.
    package var uploads: [UploadProgress.Operation]
  }

  package func request(zone: Int64) throws -> Request? {
    let stored = try db.firstRow("SELECT commitHash, request FROM zdc_in_flight WHERE zone = ?", [zone]) { row in
      (commit: try CommitHash(row, 0), body: try row.requiredBytes(1))
    }
    return try stored.map { Request(commitHash: $0.commit, body: $0.body, uploads: try uploads(zone: zone)) }
  }

  package func commitHash(zone: Int64) throws -> CommitHash? {
    try db.firstRow("SELECT commitHash FROM zdc_in_flight WHERE zone = ?", [zone]) { try CommitHash($0, 0) }
  }

  /// Returns the requests of all local users, by zone.
  package func all() throws -> [(zone: Int64, localUser: Int64, commitHash: CommitHash)] {
    let query = """
      SELECT f.zone, z.localUser, f.commitHash FROM zdc_in_flight f JOIN zdc_zone z ON z.id = f.zone ORDER BY f.createdMs
      """
    return try Row.fetchAll(db, sql: query).map { (zone: $0[0], localUser: $0[1], commitHash: try CommitHash($0, 2)) }
  }

  // MARK: Writing

  package func store(
    _ commit: CommitHash, request: [UInt8], zone: Int64, outcomes: [Outcome], rotations: [Rotation] = [], atMs: UInt64
  ) throws {
    let statement = try db.cachedStatement(
      sql: "INSERT INTO zdc_in_flight (zone, commitHash, request, createdMs) VALUES (?, ?, ?, ?)")
    try statement.execute(arguments: [zone, commit.data, Data(request), atMs.stored])
    let sealer = transaction.context.sealer.table("zdc_in_flight_put")
    let insert = try db.cachedStatement(
      sql: "INSERT INTO zdc_in_flight_put (operation, zone, node, sealed) VALUES (?, ?, ?, ?)")
    for outcome in outcomes {
      let sealed = try outcome.facts.map {
        Data(try sealer.seal($0.bytes, row: Array(String(outcome.operation).utf8)))
      }
      try insert.execute(arguments: [outcome.operation, zone, outcome.node, sealed])
    }
    for rotation in rotations { try store(rotation, zone: zone) }
    try transaction.operations.setInFlight(zone: zone)
  }

  private var rotationSealer: TableSealer { transaction.context.sealer.table("zdc_in_flight_rotation") }

  private func store(_ rotation: Rotation, zone: Int64) throws {
    let sealed = Data(try rotationSealer.seal(rotation.facts.bytes, row: Array(String(rotation.node).utf8)))
    try db.cachedStatement(sql: "INSERT INTO zdc_in_flight_rotation (node, zone, sealed) VALUES (?, ?, ?)")
      .execute(arguments: [rotation.node, zone, sealed])
  }

  /// Returns the request's puts that only serve nodes below them, in no particular order.
  package func rotations(zone: Int64) throws -> [Rotation] {
    var rotations: [Rotation] = []
    try db.forEachRow("SELECT node, sealed FROM zdc_in_flight_rotation WHERE zone = ?", [zone]) { row in
      let node: Int64 = row[0]
      let bytes = try rotationSealer.open(try row.requiredBytes(1), row: Array(String(node).utf8))
      rotations.append(Rotation(node: node, facts: try Outcome.Facts(bytes)))
    }
    return rotations
  }

  package func outcomes(zone: Int64) throws -> [Outcome] {
    let sealer = transaction.context.sealer.table("zdc_in_flight_put")
    var outcomes: [Outcome] = []
    let query = "SELECT operation, node, sealed FROM zdc_in_flight_put WHERE zone = ? ORDER BY operation"
    try db.forEachRow(query, [zone]) { row in
      let operation: Int64 = row[0]
      let facts = try row.bytes(2).map {
        try Outcome.Facts(try sealer.open($0, row: Array(String(operation).utf8)))
      }
      outcomes.append(Outcome(operation: operation, node: row[1], facts: facts))
    }
    return outcomes
  }

  /// Returns the operations of the request and their nodes, without the outcomes' facts.
  package func operations(zone: Int64) throws -> [(operation: Int64, node: Int64?)] {
    var operations: [(operation: Int64, node: Int64?)] = []
    try db.forEachRow("SELECT operation, node FROM zdc_in_flight_put WHERE zone = ?", [zone]) { row in
      operations.append((row[0], row[1]))
    }
    return operations
  }

  /// Returns the operations of the request, in the form that the progress manager uses.
  package func uploads(zone: Int64) throws -> [UploadProgress.Operation] {
    let query = """
      SELECT o.uuid, o.nodeUUID, o.kind FROM zdc_in_flight_put p JOIN zdc_operation o ON o.id = p.operation
      WHERE p.zone = ?
      """
    var operations: [UploadProgress.Operation] = []
    try db.forEachRow(query, [zone]) { row in
      operations.append(
        UploadProgress.Operation(
          uuid: row[0], nodeUUID: row[1], isData: row[2] == OperationRow.Kind.putData.rawValue))
    }
    return operations
  }

  package func remove(zone: Int64) throws {
    for table in ["zdc_in_flight", "zdc_in_flight_put", "zdc_in_flight_rotation"] {
      try db.cachedStatement(sql: "DELETE FROM \(table) WHERE zone = ?").execute(arguments: [zone])
    }
  }
}

extension InFlightStore {
  /// The result of one operation once the request is accepted: the operation is done, and the cloud has this version of
  /// its node.
  package struct Outcome: Sendable {
    package var operation: Int64
    /// The node's row, or nil for a delete.
    package var node: Int64?
    /// Set in the first outcome of a node.
    package var facts: Facts?

    package struct Facts: Sendable {
      package var recordVersion: UInt64
      package var recordHash: RecordHash
      package var parent: NodeID
      package var nameTag: NameTag
      package var name: [UInt8]
      package var keyGen: UInt32
      package var burnMs: UInt64?
      /// The fresh key and the sealed older ones, if the put rotates the node.
      var rekeyed: (key: NodeKey, historyWrap: [UInt8])?
      package var content: (public: NodeRecord.Content, secrets: ContentSecrets, timeMs: UInt64)?
    }
  }
}

extension InFlightStore {
  /// A put of a node that no operation requested, because a node below it needs it.
  package struct Rotation: Sendable {
    package var node: Int64
    package var facts: Outcome.Facts
  }
}

extension InFlightStore.Outcome.Facts {
  /// Notes that the put names other content than the row: content that the log has, and that this device cannot open.
  mutating func carry(_ newest: NodeRow.RemoteContent?, insteadOf known: NodeRow.RemoteContent?) {
    guard let newest, newest.content != known?.content else { return }
    content = (newest.content, newest.secrets, newest.timeMs)
  }

  package var bytes: [UInt8] {
    var out = ByteWriter(capacity: 280 + name.count)
    out.append(recordVersion)
    out.append(recordHash)
    out.append(parent)
    out.append(nameTag)
    out.append16(name)
    out.append(keyGen)
    out.append(rekeyed != nil)
    if let rekeyed {
      out.append(contentsOf: rekeyed.key.exportBytes())
      out.append16(rekeyed.historyWrap)
    }
    out.append(content != nil)
    if let content {
      out.append(content.public)
      out.append(content.secrets)
      out.append(content.timeMs)
    }
    if let burnMs { out.append(burnMs) }
    return out.bytes
  }

  package init(_ bytes: [UInt8]) throws {
    var reader = ByteReader(bytes)
    recordVersion = try reader.readUInt64()
    recordHash = try reader.read32()
    parent = try reader.read16()
    nameTag = try reader.read16()
    name = Array(try reader.readVariable16())
    keyGen = try reader.readUInt32()
    if try reader.readBool() {
      guard let key = NodeKey(try reader.read(count: 32)) else { throw ZDCError(.corruptDatabase) }
      rekeyed = (key, Array(try reader.readVariable16()))
    }
    if try reader.readBool() {
      content = (try reader.readContent(), try reader.readContentSecrets(), try reader.readUInt64())
    }
    if reader.remaining > 0 { burnMs = try reader.readUInt64() }
  }
}
