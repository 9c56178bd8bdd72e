internal import Foundation
package import GRDB
package import ZDCCrypto
internal import ZDCProtocol

/// The rows of zdc_tag inside one transaction. Identifier and value are sealed together; the identifier's keyed hash is
/// the key.
package final class TagStore {
  package let db: Database
  package let sealer: TableSealer

  package init(db: Database, sealer: ValueSealer) {
    self.db = db
    self.sealer = sealer.table("zdc_tag")
  }

  package func value(node: Int64, identifier: String) throws -> [UInt8]? {
    let key = key(identifier)
    let statement = try db.cachedStatement(sql: "SELECT sealed FROM zdc_tag WHERE node = ? AND identifier = ?")
    guard let row = try Row.fetchOne(statement, arguments: [node, Data(key)]) else { return nil }
    return try open(try row.requiredBytes(0), node: node, key: key).value
  }

  /// All tags of a node, by identifier.
  package func values(node: Int64) throws -> [(identifier: String, value: [UInt8])] {
    let statement = try db.cachedStatement(sql: "SELECT identifier, sealed FROM zdc_tag WHERE node = ?")
    return try Row.fetchAll(statement, arguments: [node])
      .map { try open(try $0.requiredBytes(1), node: node, key: try $0.requiredBytes(0)) }
      .sorted { $0.identifier < $1.identifier }
  }

  package func set(_ value: [UInt8], node: Int64, identifier: String) throws {
    let key = key(identifier)
    var out = ByteWriter(capacity: value.count + 32)
    out.append32(Array(identifier.utf8))
    out.append32(value)
    let sealed = Data(try sealer.seal(out.bytes, row: context(node, key)))
    let statement = try db.cachedStatement(sql: "INSERT OR REPLACE INTO zdc_tag VALUES (?, ?, ?)")
    try statement.execute(arguments: [node, Data(key), sealed])
  }

  package func remove(node: Int64, identifier: String) throws {
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_tag WHERE node = ? AND identifier = ?")
    try statement.execute(arguments: [node, Data(key(identifier))])
  }

  package func removeAll(node: Int64) throws {
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_tag WHERE node = ?")
    try statement.execute(arguments: [node])
  }

  private func key(_ identifier: String) -> [UInt8] { sealer.rowKey([Array(identifier.utf8)]) }

  private func context(_ node: Int64, _ key: [UInt8]) -> [UInt8] { Array(String(node).utf8) + key }

  private func open(_ sealed: [UInt8], node: Int64, key: [UInt8]) throws -> (identifier: String, value: [UInt8]) {
    var reader = ByteReader(try sealer.open(sealed, row: context(node, key)))
    let identifier = try reader.readVariable32(limit: sealed.count)
    return (String(decoding: identifier, as: UTF8.self), Array(try reader.readVariable32(limit: sealed.count)))
  }
}

extension ZDCReadTransaction {
  package var tags: TagStore { cached { TagStore(db: database, sealer: context.sealer) } }
}
