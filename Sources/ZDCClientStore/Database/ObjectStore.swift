internal import Foundation
package import GRDB
package import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// The rows of zdc_object inside one transaction.
///
/// A row's key is a keyed hash of collection and key. The sealed value holds both, so that a collection can be listed.
package final class ObjectStore {
  private let db: Database
  private let sealer: TableSealer

  /// A row as it is stored.
  struct SealedRow {
    var rowKey: [UInt8]
    var sealed: [UInt8]
  }

  /// A decrypted row.
  package struct Entry {
    package var collection: String
    package var key: String
    package var json: [UInt8]
  }

  /// Cached keyed hashes; an app has few collections and many objects.
  private var collectionKeys: [String: [UInt8]] = [:]

  package init(db: Database, sealer: TableSealer) {
    self.db = db
    self.sealer = sealer
  }

  // MARK: Keys

  package func rowKey(forKey key: String, inCollection collection: String) -> [UInt8] {
    sealer.rowKey([Array(collection.utf8), Array(key.utf8)])
  }

  private func collectionKey(_ collection: String) -> [UInt8] {
    if let known = collectionKeys[collection] { return known }
    let key = sealer.rowKey([Array(collection.utf8)])
    collectionKeys[collection] = key
    return key
  }

  // MARK: Reading

  package func entry(forKey key: String, inCollection collection: String) throws -> Entry? {
    try row(forKey: key, inCollection: collection).map(open)
  }

  func row(forKey key: String, inCollection collection: String) throws -> SealedRow? {
    try row(rowKey(forKey: key, inCollection: collection), collectionKey: collectionKey(collection))
  }

  package func contains(key: String, inCollection collection: String) throws -> Bool {
    let statement = try db.cachedStatement(
      sql: "SELECT EXISTS (SELECT 1 FROM zdc_object WHERE collection = ? AND rowKey = ?)")
    let rowKey = rowKey(forKey: key, inCollection: collection)
    return try Bool.fetchOne(statement, arguments: [Data(collectionKey(collection)), Data(rowKey)]) ?? false
  }

  package func count(inCollection collection: String) throws -> Int {
    let statement = try db.cachedStatement(sql: "SELECT COUNT(*) FROM zdc_object WHERE collection = ?")
    return try Int.fetchOne(statement, arguments: [Data(collectionKey(collection))]) ?? 0
  }

  /// Returns the keys, sorted. The rows themselves are in the order of their hashes.
  package func keys(inCollection collection: String) throws -> [String] {
    var keys: [String] = []
    try forEach(inCollection: collection) { entry in
      keys.append(entry.key)
      return true
    }
    return keys.sorted()
  }

  /// Calls `body` for each row until it returns false. `body` may change the rows; rows that are gone are skipped.
  package func forEach(inCollection collection: String, _ body: (Entry) throws -> Bool) throws {
    try forEachRow(inCollection: collection) { try body(open($0)) }
  }

  /// Like ``forEach(inCollection:_:)``, without opening the rows.
  func forEachRow(inCollection collection: String, _ body: (SealedRow) throws -> Bool) throws {
    let collectionKey = collectionKey(collection)
    let rowKeys = try Data.fetchAll(
      try db.cachedStatement(sql: "SELECT rowKey FROM zdc_object WHERE collection = ? ORDER BY rowKey"),
      arguments: [Data(collectionKey)])
    for rowKey in rowKeys {
      guard let row = try row([UInt8](rowKey), collectionKey: collectionKey) else { continue }
      guard try body(row) else { return }
    }
  }

  private func row(_ rowKey: [UInt8], collectionKey: [UInt8]) throws -> SealedRow? {
    let query = "SELECT value FROM zdc_object WHERE collection = ? AND rowKey = ?"
    return try db.firstRow(query, [Data(collectionKey), Data(rowKey)]) { row in
      SealedRow(rowKey: rowKey, sealed: try row.requiredBytes(0))
    }
  }

  func open(_ row: SealedRow) throws -> Entry {
    do { return try decode(try sealer.open(row.sealed, row: row.rowKey)) } catch {
      throw ZDCError(.corruptDatabase, detail: "an object does not open", underlying: error)
    }
  }

  // MARK: Writing

  package func set(_ json: [UInt8], forKey key: String, inCollection collection: String) throws {
    let rowKey = rowKey(forKey: key, inCollection: collection)
    let sealed = try sealer.seal(encode(Entry(collection: collection, key: key, json: json)), row: rowKey)
    let statement = try db.cachedStatement(
      sql: """
        INSERT INTO zdc_object (collection, rowKey, value) VALUES (?, ?, ?)
        ON CONFLICT (collection, rowKey) DO UPDATE SET value = excluded.value
        """)
    try statement.execute(arguments: [Data(collectionKey(collection)), Data(rowKey), Data(sealed)])
  }

  /// - Returns: The key of the removed row; nil if there was none.
  package func remove(key: String, inCollection collection: String) throws -> [UInt8]? {
    let rowKey = rowKey(forKey: key, inCollection: collection)
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_object WHERE collection = ? AND rowKey = ?")
    try statement.execute(arguments: [Data(collectionKey(collection)), Data(rowKey)])
    return db.changesCount > 0 ? rowKey : nil
  }

  // MARK: Bytes

  private func encode(_ entry: Entry) -> [UInt8] {
    var out = ByteWriter(capacity: entry.json.count + 64)
    out.append32(Array(entry.collection.utf8))
    out.append32(Array(entry.key.utf8))
    out.append32(entry.json)
    return out.bytes
  }

  private func decode(_ bytes: [UInt8]) throws -> Entry {
    var reader = ByteReader(bytes)
    let fields = try (0..<3).map { _ in try reader.readVariable32(limit: bytes.count) }
    try reader.finish()
    return Entry(
      collection: String(decoding: fields[0], as: UTF8.self), key: String(decoding: fields[1], as: UTF8.self),
      json: Array(fields[2]))
  }
}
