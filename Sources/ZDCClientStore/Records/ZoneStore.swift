internal import Foundation
package import GRDB
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// A zone that this device follows, and what it pinned of it.
package struct ZoneRow: Sendable {
  package var id: Int64 = 0
  package var localUser: Int64
  package var appTreeID: String
  package var trunk: Trunk
  package var zone: ZoneID
  /// The head of the verified log; nil before the first pull.
  package var head: ZoneHead?
  /// The zone's node key of the access list's generation; nil until the grant was opened.
  package var key: NodeKey?
  /// Why nothing is pulled or pushed any more (class 1 of PROTOCOL 3.7), until the user decides.
  package var frozen: ZDCSecurityError.Code?
  /// The commit that brought the access list in force; nil before the first pull.
  package var listSeq: UInt64?
  /// Why `key` is not the key of the access list in force.
  package var keyError: ZDCSecurityError.Code?
  /// Whether a member's signature proves it. Otherwise each launch tries again from the pin.
  package var isProven = false
  /// Why the server's last answer could not be followed, which froze nothing.
  package var doubt: ZDCSecurityError.Code?
  /// This device has sent lost commits again without asking the user; it does so once.
  package var hasRestored = false
  /// The owner of another user's tree; nil for the local user's own.
  package var owner: UserID?
  /// The only first commit that the zone may have; nil for a trunk, and where nothing names it.
  package var genesis: CommitHash?
  /// Whether the owner has closed their account.
  package var ownerAccount = OwnerAccount.open

  package enum OwnerAccount: Int64, Sendable {
    /// Open, as far as this device knows. Always so for the local user's own zones.
    case open = 0
    /// The owner's verified identity chain says that the account is closed. The app has not accepted it yet.
    case closed = 1
    case closedAndReported = 2
  }

  package init(
    id: Int64 = 0, localUser: Int64, appTreeID: String, trunk: Trunk, zone: ZoneID, head: ZoneHead? = nil,
    key: NodeKey? = nil, frozen: ZDCSecurityError.Code? = nil, listSeq: UInt64? = nil,
    keyError: ZDCSecurityError.Code? = nil, isProven: Bool = false, doubt: ZDCSecurityError.Code? = nil,
    hasRestored: Bool = false, owner: UserID? = nil, genesis: CommitHash? = nil
  ) {
    self.id = id
    self.localUser = localUser
    self.appTreeID = appTreeID
    self.trunk = trunk
    self.zone = zone
    self.head = head
    self.key = key
    self.frozen = frozen
    self.listSeq = listSeq
    self.keyError = keyError
    self.isProven = isProven
    self.doubt = doubt
    self.hasRestored = hasRestored
    self.owner = owner
    self.genesis = genesis
  }
}

extension ZoneRow {
  /// Whether the zone is one of the four with which a tree begins. Their roots have no name and no place.
  package var isTrunk: Bool { zone == ZoneID(trunkOf: zone.tree) }

  /// Whether the owner has ended the zone. Its row stays until the app has accepted that its nodes are gone.
  package var isClosed: Bool { head?.isClosed ?? false }

  /// Whether the user may write. Before the first pull of an own zone, the server decides.
  package func mayWrite(_ user: UserID) -> Bool {
    head == nil ? owner == nil : permissions(of: user).contains(.write)
  }

  /// The user's permissions by the access list in force; only reading once the owner has closed their account.
  package func permissions(of user: UserID) -> ZoneACL.Permissions {
    let listed = head?.acl.fields.entry(for: user)?.permissions ?? []
    return ownerAccount == .open ? listed : listed.intersection(.read)
  }
}

/// The rows of zdc_zone inside one transaction.
package final class ZoneStore: TransactionCache {
  package let db: Database
  package let sealer: TableSealer
  private let memory: ZoneMemory
  /// Rows that this transaction has read or written: each is asked for again and again.
  private var known: [Int64: ZoneRow] = [:]

  package init(db: Database, sealer: ValueSealer, memory: ZoneMemory) {
    self.db = db
    self.sealer = sealer.table("zdc_zone")
    self.memory = memory
  }

  package func invalidate() { known = [:] }

  package func zone(id: Int64) throws -> ZoneRow? {
    if let row = known[id] { return row }
    return try fetchAll("WHERE id = ?", [id]).first
  }

  package func zones(localUser: Int64) throws -> [ZoneRow] {
    try fetchAll("WHERE localUser = ? ORDER BY id", [localUser])
  }

  /// The zones with something queued or in flight, or with moves out of them that have not ended, that are not frozen.
  package func withQueue(localUser: Int64, tree: String) throws -> [Int64] {
    let query = """
      SELECT z.id FROM zdc_zone z WHERE z.localUser = ? AND z.appTreeID = ? AND z.frozen IS NULL
      AND (EXISTS (SELECT 1 FROM zdc_in_flight WHERE zone = z.id)
        OR EXISTS (SELECT 1 FROM zdc_operation WHERE zone = z.id)
        OR EXISTS (SELECT 1 FROM zdc_crossing c CROSS JOIN zdc_node n ON n.id = c.node WHERE n.zone = z.id)
        OR EXISTS (SELECT 1 FROM zdc_moved WHERE zone = z.id AND isHeld = 1)) ORDER BY z.id
      """
    var zones: [Int64] = []
    try db.forEachRow(query, [localUser, tree]) { zones.append($0[0]) }
    return zones
  }

  /// Zones of owners whose account is not known to be closed, or whose closed account the app has not accepted yet, and
  /// zones that the user leaves.
  package func ofOwners(localUser: Int64) throws -> [ZoneRow] {
    let condition = """
      WHERE localUser = ? AND owner IS NOT NULL
      AND (ownerAccount <> ? OR id IN (SELECT zone FROM zdc_left_zone)) ORDER BY id
      """
    return try fetchAll(condition, [localUser, ZoneRow.OwnerAccount.closedAndReported.rawValue])
  }

  /// The user's own zones with nodes that may have keys from before a removal, with the generation of the zone's key.
  package func raisedKeys(localUser: Int64, tree: String) throws -> [Int64: UInt32] {
    let query = """
      SELECT z.id, MIN(r.keyGen) FROM zdc_removal r JOIN zdc_zone z ON z.id = r.zone
      WHERE z.localUser = ? AND z.appTreeID = ? AND z.owner IS NULL AND z.frozen IS NULL GROUP BY z.id
      """
    var removed: [Int64: Int64] = [:]
    try db.forEachRow(query, [localUser, tree]) { removed[$0[0]] = $0[1] }
    var raised: [Int64: UInt32] = [:]
    for (id, keyGen) in removed {
      guard let newest = try zone(id: id)?.head?.acl.fields.zoneKeyGen, newest > keyGen else { continue }
      raised[id] = newest
    }
    return raised
  }

  package func zone(localUser: Int64, _ zone: ZoneID) throws -> ZoneRow? {
    try fetchAll(
      "WHERE localUser = ? AND treeID = ? AND zoneRoot = ?", [localUser, zone.tree.data, zone.root.data]
    ).first
  }

  /// The other zone of the tree whose verified log has `node`.
  package func holder(of node: NodeID, besides row: ZoneRow) throws -> Int64? {
    let query = """
      SELECT z.id FROM zdc_zone z CROSS JOIN zdc_leaf l ON l.zone = z.id AND l.node = ?
      WHERE z.localUser = ? AND z.treeID = ? AND z.id <> ? ORDER BY z.id LIMIT 1
      """
    var holder: Int64?
    try db.forEachRow(query, [node.data, row.localUser, row.zone.tree.data, row.id]) { holder = $0[0] }
    return holder
  }

  package func trunk(_ trunk: Trunk, localUser: Int64, appTreeID: String) throws -> ZoneRow? {
    let zones = try fetchAll(
      "WHERE localUser = ? AND appTreeID = ? AND trunk = ? AND owner IS NULL ORDER BY id",
      [localUser, appTreeID, trunk.rawValue])
    return zones.first { $0.zone == ZoneID(trunkOf: $0.zone.tree) }
  }

  private static let nextNumber = """
    1 + max((SELECT last FROM zdc_zone_number), coalesce((SELECT max(id) FROM zdc_zone), 0))
    """

  package func insert(_ row: inout ZoneRow) throws {
    try db.execute(
      sql: """
        INSERT INTO zdc_zone
        (localUser, appTreeID, trunk, treeID, zoneRoot, headSeq, headHash, acl, retired, sealedKey, frozen, listSeq,
        keyError, isProven, doubt, hasRestored, owner, genesis, ownerAccount, id)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, \(Self.nextNumber))
        """, arguments: try arguments(row))
    row.id = db.lastInsertedRowID
  }

  package func update(_ row: ZoneRow) throws {
    known[row.id] = nil
    let statement = try db.cachedStatement(
      sql: """
        UPDATE zdc_zone SET localUser = ?, appTreeID = ?, trunk = ?, treeID = ?, zoneRoot = ?, headSeq = ?,
        headHash = ?, acl = ?, retired = ?, sealedKey = ?, frozen = ?, listSeq = ?, keyError = ?, isProven = ?,
        doubt = ?, hasRestored = ?, owner = ?, genesis = ?, ownerAccount = ? WHERE id = ?
        """)
    try statement.execute(arguments: try arguments(row) + [row.id])
    known[row.id] = row
  }

  /// Removes the zone and everything that belongs to it.
  package func delete(_ row: ZoneRow) throws {
    known[row.id] = nil
    try db.execute(sql: "DELETE FROM zdc_zone WHERE id = ?", arguments: [row.id])
  }

  /// Whether the verified log has the zone's root. A log without it has ended (PROTOCOL 3.7).
  private static let hasRoot =
    "EXISTS (SELECT 1 FROM zdc_leaf WHERE zdc_leaf.zone = zdc_zone.id AND zdc_leaf.node = zoneRoot)"

  private func fetchAll(_ condition: String, _ arguments: StatementArguments) throws -> [ZoneRow] {
    var rows: [ZoneRow] = []
    let query = """
      SELECT id, localUser, appTreeID, trunk, treeID, zoneRoot, headSeq, headHash, acl, retired, sealedKey, frozen,
      listSeq, keyError, isProven, doubt, hasRestored, owner, genesis, \(Self.hasRoot), ownerAccount FROM zdc_zone \(condition)
      """
    try db.forEachRow(query, arguments) { rows.append(try decode($0)) }
    for row in rows { known[row.id] = row }
    return rows
  }

  private func arguments(_ row: ZoneRow) throws -> StatementArguments {
    let sealedKey = try row.key.map { key in
      Data(
        try memory.sealed(key, of: row.zone)
          ?? sealer.seal(key.exportBytes(), row: row.zone.tree.bytes + row.zone.root.bytes))
    }
    return [
      row.localUser, row.appTreeID, row.trunk.rawValue, row.zone.tree.data, row.zone.root.data,
      row.head?.seq.stored, row.head?.hash.data, row.head.map { Data($0.acl.bytes) },
      row.head.map { Data(encode($0.retiredBelow)) }, sealedKey, row.frozen?.rawValue,
      row.listSeq?.stored, row.keyError?.rawValue,
      row.isProven, row.doubt?.rawValue, row.hasRestored, row.owner?.data, row.genesis?.data,
      row.ownerAccount.rawValue,
    ]
  }

  private func decode(_ row: RawRow) throws -> ZoneRow {
    guard let number = UInt8(exactly: row[3] as Int64), let trunk = Trunk(rawValue: number) else {
      throw ZDCError(.corruptDatabase)
    }
    let zone = ZoneID(tree: try TreeID(row, 4), root: try NodeID(row, 5))
    var result = ZoneRow(localUser: row[1], appTreeID: row[2], trunk: trunk, zone: zone)
    result.id = row[0]
    if let seq = row.unsigned(6) {
      let acl = try memory.acl(of: zone, try row.requiredBytes(8)) { try ZoneACL($0) }
      var head = ZoneHead(
        zone: zone, seq: seq, hash: try CommitHash(row, 7), acl: acl,
        retiredBelow: try decodeRetired(row.bytes(9) ?? []))
      head.isClosed = !result.isTrunk && row[19] as Int64 == 0
      result.head = head
    }
    result.key = try row.bytes(10).flatMap { sealed in
      try memory.key(of: zone, sealed) { NodeKey(try sealer.open($0, row: zone.tree.bytes + zone.root.bytes)) }
    }
    result.frozen = (row[11] as String?).flatMap(ZDCSecurityError.Code.init(rawValue:))
    result.listSeq = row.unsigned(12)
    result.keyError = (row[13] as String?).flatMap(ZDCSecurityError.Code.init(rawValue:))
    result.isProven = (row[14] as Int64) != 0
    result.doubt = (row[15] as String?).flatMap(ZDCSecurityError.Code.init(rawValue:))
    result.hasRestored = (row[16] as Int64) != 0
    result.owner = try row.optional32(17, UserRole.self)
    result.genesis = try row.optional32(18, CommitHashRole.self)
    guard let account = ZoneRow.OwnerAccount(rawValue: row[20]) else { throw ZDCError(.corruptDatabase) }
    result.ownerAccount = account
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
