internal import GRDB
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// An attempt to upload content, with all data that a later process needs to resume it.
struct UploadAttempt: Sendable {
  package let blobID: BlobID
  package let key: ContentKey
  package let salt: [UInt8]
  /// A fingerprint of the app's source, made without reading its data.
  package let fingerprint: [UInt8]
  /// The hash of each part that may have left the device. A part with a different hash must not be sent after it
  /// (SECURITY B9).
  package var parts: [Int: [UInt8]] = [:]

  /// Whether an earlier process or attempt began the upload.
  package var isContinued: Bool { !parts.isEmpty }
}

/// Access to the rows of zdc_upload and zdc_upload_part inside one transaction.
struct UploadStore {
  package let transaction: ZDCReadTransaction
  private var db: Database { transaction.database }
  private var sealer: TableSealer { transaction.context.sealer.table("zdc_upload") }

  package func attempts(localUser: Int64, tree: TreeID, node: NodeID) throws -> [UploadAttempt] {
    let rows = try Row.fetchAll(
      db, sql: "SELECT blobID, sealed FROM zdc_upload WHERE localUser = ? AND treeID = ? AND nodeID = ?",
      arguments: [localUser, tree.data, node.data])
    return try rows.map { row in
      let blob = try BlobID(row, 0)
      var secrets = ByteReader(try sealer.open(try row.requiredBytes(1), row: blob.bytes))
      guard let key = ContentKey(try secrets.read(count: 32)) else { throw ZDCError(.corruptDatabase) }
      let salt = Array(try secrets.read(count: 24))
      return UploadAttempt(
        blobID: blob, key: key, salt: salt, fingerprint: Array(try secrets.read(count: 32)), parts: try parts(blob))
    }
  }

  private func parts(_ blob: BlobID) throws -> [Int: [UInt8]] {
    var parts: [Int: [UInt8]] = [:]
    let rows = try Row.fetchAll(
      db, sql: "SELECT idx, sha256 FROM zdc_upload_part WHERE blobID = ?", arguments: [blob.data])
    for row in rows { parts[row[0]] = try row.requiredBytes(1) }
    return parts
  }

  /// Returns attempts for which no upload is queued any more.
  package func forgotten(localUser: Int64) throws -> [BlobID] {
    let rows = try Row.fetchAll(
      db,
      sql: """
        SELECT blobID FROM zdc_upload u WHERE localUser = ? AND NOT EXISTS (
          SELECT 1 FROM zdc_zone z CROSS JOIN zdc_node n ON n.zone = z.id AND n.nodeID = u.nodeID
          CROSS JOIN zdc_operation o ON o.node = n.id
          WHERE z.treeID = u.treeID AND z.localUser = u.localUser AND o.kind = ?)
        """, arguments: [localUser, OperationRow.Kind.putData.rawValue])
    return try rows.map { try BlobID($0, 0) }
  }

  // MARK: Writing

  package func insert(_ attempt: UploadAttempt, localUser: Int64, tree: TreeID, node: NodeID, atMs: UInt64) throws {
    let secrets = attempt.key.exportBytes() + attempt.salt + attempt.fingerprint
    try db.execute(
      sql: """
        INSERT INTO zdc_upload (blobID, localUser, treeID, nodeID, sealed, createdMs) VALUES (?, ?, ?, ?, ?, ?)
        """,
      arguments: [
        attempt.blobID.data, localUser, tree.data, node.data,
        Data(try sealer.seal(secrets, row: attempt.blobID.bytes)), atMs.stored,
      ])
  }

  /// Stores a part's hash. Fails if the attempt was given up in the meantime.
  ///
  /// - Returns: False if the part is already stored with a different hash.
  package func insert(part index: Int, hash: [UInt8], of blob: BlobID) throws -> Bool {
    try db.execute(
      sql: "INSERT INTO zdc_upload_part (blobID, idx, sha256) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
      arguments: [blob.data, index, Data(hash)])
    return try parts(blob)[index] == hash
  }

  package func remove(_ blob: BlobID) throws {
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_upload WHERE blobID = ?")
    try statement.execute(arguments: [blob.data])
  }
}
