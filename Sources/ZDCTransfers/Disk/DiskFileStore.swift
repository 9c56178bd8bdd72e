internal import Foundation
package import GRDB
internal import ZDCClientStore
package import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// The rows of zdc_disk_file in one transaction.
package final class DiskFileStore {
  package let db: Database
  package let sealer: TableSealer

  package init(db: Database, sealer: ValueSealer) {
    self.db = db
    self.sealer = sealer.table("zdc_disk_file")
  }

  private static let columns = """
    id, kind, owner, identity, file, isPersistent, afterUpload, lifetimeMs, expiresMs, used, sealed, leaves
    """

  // MARK: Reading

  package func row(_ owner: DiskOwner) throws -> DiskFileRow? {
    try db.firstRow(
      "SELECT \(Self.columns) FROM zdc_disk_file WHERE kind = ? AND owner = ? AND identity = ?",
      [owner.kind.rawValue, owner.id, Data(identityKey(owner.identity))], decode)
  }

  /// Returns all rows of one node or user.
  package func rows(_ kind: DiskKind, owner: String) throws -> [DiskFileRow] {
    var rows: [DiskFileRow] = []
    try db.forEachRow(
      "SELECT \(Self.columns) FROM zdc_disk_file WHERE kind = ? AND owner = ? ORDER BY id", [kind.rawValue, owner]
    ) { rows.append(try decode($0)) }
    return rows
  }

  /// Whether there is a file that has not expired. Opens no sealed value.
  package func has(_ owner: DiskOwner, nowMs: UInt64) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: """
        SELECT EXISTS (SELECT 1 FROM zdc_disk_file WHERE kind = ? AND owner = ? AND identity = ?
          AND file IS NOT NULL AND (expiresMs IS NULL OR expiresMs > ?))
        """)
    return try Bool.fetchOne(
      statement,
      arguments: [owner.kind.rawValue, owner.id, Data(identityKey(owner.identity)), nowMs.stored]) ?? false
  }

  /// - Parameter isPersistent: nil for both.
  func storageSize(_ kind: DiskKind, isPersistent: Bool?) throws -> UInt64 {
    guard let isPersistent else {
      return try storageSize(kind, isPersistent: true) + storageSize(kind, isPersistent: false)
    }
    // One condition for all three cases would read the rows of both kinds at every import.
    let statement = try db.cachedStatement(
      sql: "SELECT TOTAL(size) FROM zdc_disk_file WHERE kind = ? AND isPersistent = ?")
    return UInt64(try Double.fetchOne(statement, arguments: [kind.rawValue, isPersistent]) ?? 0)
  }

  func lastUse() throws -> UInt64 {
    try Int64.fetchOne(db, sql: "SELECT MAX(used) FROM zdc_disk_file").map { UInt64(bitPattern: $0) } ?? 0
  }

  /// Returns those of the names that are neither in a row nor in the garbage table.
  package func unknown(among names: [String]) throws -> [String] {
    let statement = try db.cachedStatement(
      sql: """
        SELECT EXISTS (SELECT 1 FROM zdc_disk_file WHERE file = ?1)
          OR EXISTS (SELECT 1 FROM zdc_disk_garbage WHERE file = ?1)
        """)
    return try names.filter { try Bool.fetchOne(statement, arguments: [$0]) != true }
  }

  // MARK: Writing

  /// Inserts the row, or replaces its owner's existing one.
  package func put(_ row: DiskFileRow, node: Int64?) throws {
    let secrets = DiskFileRow.Secrets(
      eTag: row.eTag, contentETag: row.contentETag, identity: row.owner.identity, file: row.file)
    let sealed = try sealer.seal(secrets.encoded(), row: context(row.owner))
    let leaves = row.file.flatMap { $0.leaves.isEmpty ? nil : Data($0.leaves) }
    // Not REPLACE, which deletes without running the triggers.
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_disk_file
          (kind, owner, identity, node, file, size, isPersistent, afterUpload, lifetimeMs, expiresMs, used, sealed,
            leaves)
        VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
        ON CONFLICT (kind, owner, identity) DO UPDATE SET node = excluded.node, file = excluded.file,
          size = excluded.size, isPersistent = excluded.isPersistent, afterUpload = excluded.afterUpload,
          lifetimeMs = excluded.lifetimeMs, expiresMs = excluded.expiresMs, used = excluded.used,
          sealed = excluded.sealed, leaves = excluded.leaves
        """)
    try statement.execute(arguments: [
      row.owner.kind.rawValue, row.owner.id, Data(identityKey(row.owner.identity)), node, row.file?.name,
      row.file?.size.stored ?? 0, row.isPersistent, row.afterUpload.rawValue, row.lifetimeMs?.stored,
      row.expiresMs?.stored, row.used.stored, Data(sealed), leaves,
    ])
  }

  // MARK: Files whose node has yet to be inserted

  private static let isUninserted = "node IS NULL AND kind <> \(DiskKind.userAvatar.rawValue)"

  func hasUninserted() throws -> Bool {
    let statement = try db.cachedStatement(
      sql: "SELECT EXISTS (SELECT 1 FROM zdc_disk_file WHERE \(Self.isUninserted))")
    return try Bool.fetchOne(statement) ?? false
  }

  /// Attaches the files that were imported under the uuid to the node, which is now inserted. Deleting the node deletes
  /// them.
  package func attach(toNode uuid: String) throws {
    let statement = try db.cachedStatement(
      sql: """
        UPDATE zdc_disk_file SET node = (SELECT id FROM zdc_node WHERE uuid = ?1)
        WHERE owner = ?1 AND \(Self.isUninserted)
        """)
    try statement.execute(arguments: [uuid])
  }

  /// - Returns: the number of files removed; if it is `limit`, there may be more.
  func removeUninserted(usedBefore ms: UInt64, limit: Int) throws -> Int {
    let statement = try db.cachedStatement(
      sql: """
        DELETE FROM zdc_disk_file WHERE id IN
          (SELECT id FROM zdc_disk_file WHERE \(Self.isUninserted) AND used < ? LIMIT ?)
        """)
    try statement.execute(arguments: [ms.stored, limit])
    return db.changesCount
  }

  // MARK: Changes

  /// Updates where the file is kept and for how long. The file itself does not change.
  func updatePlace(_ row: DiskFileRow) throws {
    let statement = try db.cachedStatement(
      sql: "UPDATE zdc_disk_file SET isPersistent = ?, afterUpload = ?, expiresMs = ?, used = ? WHERE id = ?")
    try statement.execute(arguments: [
      row.isPersistent, row.afterUpload.rawValue, row.expiresMs?.stored, row.used.stored, row.id,
    ])
  }

  package func delete(id: Int64) throws {
    try db.cachedStatement(sql: "DELETE FROM zdc_disk_file WHERE id = ?").execute(arguments: [id])
  }

  func setUses(_ uses: [Int64: UInt64]) throws {
    let statement = try db.cachedStatement(sql: "UPDATE zdc_disk_file SET used = ?1 WHERE id = ?2 AND used < ?1")
    for (row, used) in uses { try statement.execute(arguments: [used.stored, row]) }
  }

  // MARK: Eviction

  package struct Candidate {
    package var id: Int64
    package var kind: DiskKind
    package var owner: String
    package var size: UInt64
  }

  /// Returns cached files, the least recently used first.
  func leastUsed(_ kind: DiskKind, limit: Int) throws -> [Candidate] {
    try candidates(
      "WHERE kind = ? AND isPersistent = 0 AND file IS NOT NULL ORDER BY used, id LIMIT ?",
      [kind.rawValue, limit])
  }

  package func expired(nowMs: UInt64, limit: Int) throws -> [Candidate] {
    try candidates("WHERE expiresMs <= ? ORDER BY expiresMs LIMIT ?", [nowMs.stored, limit])
  }

  /// Returns a node's files that are stored until its uploads are finished.
  func waitingForUpload(node: Int64) throws -> [DiskFileRow] {
    var rows: [DiskFileRow] = []
    try db.forEachRow(
      "SELECT \(Self.columns) FROM zdc_disk_file WHERE node = ? AND afterUpload <> 0", [node]
    ) { rows.append(try decode($0)) }
    return rows
  }

  private func candidates(_ condition: String, _ arguments: StatementArguments) throws -> [Candidate] {
    var found: [Candidate] = []
    try db.forEachRow("SELECT id, kind, owner, size FROM zdc_disk_file \(condition)", arguments) { row in
      guard let kind = DiskKind(rawValue: row[1]) else { throw ZDCError(.corruptDatabase) }
      found.append(Candidate(id: row[0], kind: kind, owner: row[2], size: row.unsigned(3) ?? 0))
    }
    return found
  }

  // MARK: Garbage collection

  /// Returns files to delete, in the order of their names.
  package func garbage(after name: String, limit: Int) throws -> [String] {
    let statement = try db.cachedStatement(
      sql: "SELECT file FROM zdc_disk_garbage WHERE file > ? ORDER BY file LIMIT ?")
    return try String.fetchAll(statement, arguments: [name, limit])
  }

  func addGarbage(_ name: String) throws {
    try db.cachedStatement(sql: "INSERT OR IGNORE INTO zdc_disk_garbage (file) VALUES (?)").execute(arguments: [name])
  }

  func removeGarbage(_ names: [String]) throws {
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_disk_garbage WHERE file = ?")
    for name in names { try statement.execute(arguments: [name]) }
  }

  // MARK: Columns

  private func identityKey(_ identity: String?) -> [UInt8] {
    identity.map { sealer.rowKey([Array($0.utf8)]) } ?? []
  }

  private func context(_ owner: DiskOwner) -> [UInt8] {
    [UInt8(owner.kind.rawValue)] + Array(owner.id.utf8) + identityKey(owner.identity)
  }

  private func decode(_ row: RawRow) throws -> DiskFileRow {
    guard let kind = DiskKind(rawValue: row[1]), let after = DiskFileRow.AfterUpload(rawValue: row[6]) else {
      throw ZDCError(.corruptDatabase)
    }
    let owner: String = row[2]
    let identity = try row.requiredBytes(3)
    let secrets = try DiskFileRow.Secrets(
      decoding: try sealer.open(
        try row.requiredBytes(10), row: [UInt8(kind.rawValue)] + Array(owner.utf8) + identity))
    let name: String? = row[4]
    guard (name == nil) == (secrets.file == nil) else { throw ZDCError(.corruptDatabase) }
    let file = secrets.file.flatMap { file in
      name.map {
        DiskFileRow.File(name: $0, format: file.format, reference: file.reference, leaves: row.bytes(11) ?? [])
      }
    }
    return DiskFileRow(
      id: row[0], owner: DiskOwner(kind: kind, id: owner, identity: secrets.identity), file: file,
      isPersistent: (row[5] as Int64) != 0, afterUpload: after, lifetimeMs: row.unsigned(7),
      expiresMs: row.unsigned(8), used: row.unsigned(9) ?? 0, eTag: secrets.eTag,
      contentETag: secrets.contentETag)
  }
}

extension ZDCReadTransaction {
  package var diskFiles: DiskFileStore { cached { DiskFileStore(db: database, sealer: context.sealer) } }
}
