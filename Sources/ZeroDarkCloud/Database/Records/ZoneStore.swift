internal import Foundation
internal import GRDB
internal import ZDCCrypto
internal import ZDCProtocol

/// A zone that this device follows, and what it pinned of it.
struct ZoneRow: Sendable {
  var id: Int64 = 0
  var localUser: Int64
  var appTreeID: String
  var trunk: Trunk
  var zone: ZoneID
  /// Where the verified log stands; nil before the first pull.
  var head: ZoneHead?
  /// The zone's node key of the access list's generation; nil until the grant was opened.
  var key: NodeKey?
  /// Why nothing is pulled or pushed any more (class 1 of PROTOCOL 3.7), until the user decides.
  var frozen: ZDCSecurityError.Code?
}

/// The rows of zdc_zone inside one transaction.
final class ZoneStore {
  let db: Database
  let sealer: TableSealer

  init(db: Database, sealer: ValueSealer) {
    self.db = db
    self.sealer = sealer.table("zdc_zone")
  }

  func zone(id: Int64) throws -> ZoneRow? {
    try fetchAll("WHERE id = ?", [id]).first
  }

  func zones(localUser: Int64) throws -> [ZoneRow] {
    try fetchAll("WHERE localUser = ? ORDER BY id", [localUser])
  }

  func zone(localUser: Int64, _ zone: ZoneID) throws -> ZoneRow? {
    try fetchAll(
      "WHERE localUser = ? AND treeID = ? AND zoneRoot = ?", [localUser, zone.tree.data, zone.root.data]
    ).first
  }

  func trunk(_ trunk: Trunk, localUser: Int64, appTreeID: String) throws -> ZoneRow? {
    let zones = try fetchAll(
      "WHERE localUser = ? AND appTreeID = ? AND trunk = ? ORDER BY id", [localUser, appTreeID, trunk.rawValue])
    return zones.first { $0.zone == ZoneID(trunkOf: $0.zone.tree) }
  }

  func insert(_ row: inout ZoneRow) throws {
    try db.execute(
      sql: """
        INSERT INTO zdc_zone
        (localUser, appTreeID, trunk, treeID, zoneRoot, headSeq, headHash, acl, retired, sealedKey, frozen)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        """, arguments: try arguments(row))
    row.id = db.lastInsertedRowID
  }

  func update(_ row: ZoneRow) throws {
    let statement = try db.cachedStatement(
      sql: """
        UPDATE zdc_zone SET localUser = ?, appTreeID = ?, trunk = ?, treeID = ?, zoneRoot = ?, headSeq = ?,
        headHash = ?, acl = ?, retired = ?, sealedKey = ?, frozen = ? WHERE id = ?
        """)
    try statement.execute(arguments: try arguments(row) + [row.id])
  }

  private func fetchAll(_ condition: String, _ arguments: StatementArguments) throws -> [ZoneRow] {
    let statement = try db.cachedStatement(
      sql: """
        SELECT id, localUser, appTreeID, trunk, treeID, zoneRoot, headSeq, headHash, acl, retired, sealedKey, frozen
        FROM zdc_zone \(condition)
        """)
    return try Row.fetchAll(statement, arguments: arguments).map(decode)
  }

  private func arguments(_ row: ZoneRow) throws -> StatementArguments {
    let sealedKey = try row.key.map {
      Data(try sealer.seal($0.exportBytes(), row: row.zone.tree.bytes + row.zone.root.bytes))
    }
    return [
      row.localUser, row.appTreeID, row.trunk.rawValue, row.zone.tree.data, row.zone.root.data,
      row.head?.seq.stored, row.head?.hash.data, row.head.map { Data($0.acl.bytes) },
      row.head.map { Data(encode($0.retiredBelow)) }, sealedKey, row.frozen?.rawValue,
    ]
  }

  private func decode(_ row: Row) throws -> ZoneRow {
    guard let trunk = Trunk(rawValue: row[3]) else { throw ZDCError(.corruptDatabase) }
    let zone = ZoneID(tree: try TreeID(row, 4), root: try NodeID(row, 5))
    var result = ZoneRow(localUser: row[1], appTreeID: row[2], trunk: trunk, zone: zone)
    result.id = row[0]
    if let seq = row.unsigned(6) {
      result.head = ZoneHead(
        zone: zone, seq: seq, hash: try CommitHash(row, 7), acl: try ZoneACL(try row.requiredBytes(8)),
        retiredBelow: try decodeRetired(row.bytes(9) ?? []))
    }
    result.key = try row.bytes(10).flatMap {
      NodeKey(try sealer.open($0, row: zone.tree.bytes + zone.root.bytes))
    }
    result.frozen = (row[11] as String?).flatMap(ZDCSecurityError.Code.init(rawValue:))
    return result
  }

  private func encode(_ retired: [UserID: UInt32]) -> [UInt8] {
    var out = ByteWriter()
    for (user, generation) in retired.sorted(by: { $0.key < $1.key }) {
      out.append(user)
      out.append(generation)
    }
    return out.bytes
  }

  private func decodeRetired(_ bytes: [UInt8]) throws -> [UserID: UInt32] {
    var reader = ByteReader(bytes)
    var retired: [UserID: UInt32] = [:]
    while reader.remaining > 0 { retired[try reader.read32()] = try reader.readUInt32() }
    return retired
  }
}
