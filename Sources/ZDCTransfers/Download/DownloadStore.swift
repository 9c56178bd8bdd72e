internal import Foundation
internal import GRDB
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// The rows of zdc_download in one transaction: downloads that continue after their process has ended.
package struct DownloadStore {
  package let transaction: ZDCReadTransaction
  private var db: Database { transaction.database }
  private var sealer: TableSealer { transaction.context.sealer.table("zdc_download") }

  /// A process that waits for a download.
  package typealias Owner = Bytes16<DownloadOwnerRole>

  package struct Saved: Sendable {
    package var id: Int64
    package var key: DownloadKey
    package var options: ZDCDownloadOptions.Values
    package var createdMs: UInt64
  }

  func owners() throws -> [Owner] {
    try Row.fetchAll(db, sql: "SELECT DISTINCT owner FROM zdc_download").map { try Owner($0, 0) }
  }

  package func downloads(of owner: Owner) throws -> [Saved] {
    let query = """
      SELECT d.id, n.uuid, d.part, d.sealed, d.createdMs FROM zdc_download d JOIN zdc_node n ON n.id = d.node
      WHERE d.owner = ? ORDER BY d.id
      """
    return try Row.fetchAll(db, sql: query, arguments: [owner.data]).map { row in
      let (uuid, part): (String, Int) = (row[1], row[2])
      let sealed = try sealer.open(try row.requiredBytes(3), row: Self.context(uuid, part))
      return Saved(
        id: row[0], key: DownloadKey(nodeID: uuid, part: DownloadKey.Part(stored: part)),
        options: try ZDCDownloadOptions.Values(stored: sealed), createdMs: row.unsigned(4) ?? 0)
    }
  }

  package func insert(_ key: DownloadKey, _ options: ZDCDownloadOptions.Values, owner: Owner) throws {
    guard let node = try transaction.nodes.node(uuid: key.nodeID) else { throw ZDCError(.nodeNotFound) }
    let sealed = try sealer.seal(options.stored, row: Self.context(key.nodeID, key.part.stored))
    try db.execute(
      sql: "INSERT OR REPLACE INTO zdc_download (node, part, owner, createdMs, sealed) VALUES (?, ?, ?, ?, ?)",
      arguments: [node.id, key.part.stored, owner.data, transaction.context.clock().stored, Data(sealed)])
  }

  package func remove(_ key: DownloadKey, owner: Owner) throws {
    try db.execute(
      sql: """
        DELETE FROM zdc_download WHERE owner = ? AND part = ? AND node IN (SELECT id FROM zdc_node WHERE uuid = ?)
        """, arguments: [owner.data, key.part.stored, key.nodeID])
  }

  /// Assigns the downloads of another process, which has ended, to `owner`.
  package func adopt(from other: Owner, to owner: Owner) throws {
    try db.execute(
      sql: "UPDATE OR REPLACE zdc_download SET owner = ? WHERE owner = ?", arguments: [owner.data, other.data])
  }

  private static func context(_ nodeID: String, _ part: Int) -> [UInt8] { Array("\(nodeID)/\(part)".utf8) }
}

/// Marks the ID of a process that waits for downloads. The ID is valid for the lifetime of the process.
package enum DownloadOwnerRole {}

extension ZDCReadTransaction {
  package var downloads: DownloadStore { DownloadStore(transaction: self) }

  /// Returns the number of downloads that continue after their process has ended.
  package func savedDownloadCount() throws -> Int {
    try Int.fetchOne(database, sql: "SELECT COUNT(*) FROM zdc_download") ?? 0
  }
}

extension ZDCDownloadOptions.Values {
  /// The options that still matter once no request waits.
  fileprivate var stored: [UInt8] {
    var out = ByteWriter(capacity: 2)
    out.append(cacheToDiskManager)
    out.append(savePersistentlyToDiskManager)
    return out.bytes
  }

  fileprivate init(stored: [UInt8]) throws {
    var reader = ByteReader(stored)
    cacheToDiskManager = try reader.readBool()
    savePersistentlyToDiskManager = try reader.readBool()
    canDownloadWhileInBackground = true
    try reader.finish()
  }
}
