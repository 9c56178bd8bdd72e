internal import Crypto
internal import Foundation
internal import Synchronization
internal import ZDCProtocol

/// Seals values of the local database: AES-256-GCM with a random nonce and one key per table.
///
/// A value opens only in the table, row and column that it was sealed for.
package struct ValueSealer: Sendable {
  private let key: DatabaseKey
  /// Cached, because deriving a table's keys costs more than sealing a small value.
  private let tables = TableSealers()

  package init(key: DatabaseKey) {
    self.key = key
  }

  /// Returns the sealer of one table.
  package func table(_ name: String) -> TableSealer {
    tables.sealer(name) {
      TableSealer(
        name: Array(name.utf8), valueKey: derive("db-value", name), rowKey: derive("db-row-key", name))
    }
  }

  /// Seals one value. For many values, use ``table(_:)``.
  package func seal(_ value: [UInt8], table: String, row: some Collection<UInt8>) throws(CryptoFailure) -> [UInt8] {
    try self.table(table).seal(value, row: row)
  }

  /// Opens one value.
  package func open(
    _ sealed: some Collection<UInt8>, table: String, row: some Collection<UInt8>
  ) throws(CryptoFailure) -> [UInt8] {
    try self.table(table).open(sealed, row: row)
  }

  /// Returns a keyed hash that replaces secret parts, such as collection and key, in an index.
  package func rowKey(table: String, _ parts: [UInt8]...) -> [UInt8] {
    self.table(table).rowKey(parts)
  }

  private func derive(_ label: StaticString, _ table: String) -> SymmetricKey {
    KeyDerivation.expand256(key.symmetric, info: labelPrefix(label) + Array(table.utf8), count: 32)
  }
}

/// The sealers created so far, by table.
private final class TableSealers: Sendable {
  private let known = Mutex<[String: TableSealer]>([:])

  func sealer(_ name: String, _ make: () -> TableSealer) -> TableSealer {
    known.withLock { known in
      if let sealer = known[name] { return sealer }
      let sealer = make()
      known[name] = sealer
      return sealer
    }
  }
}

/// The sealer of one table.
package struct TableSealer: Sendable {
  private let name: [UInt8]
  private let valueKey: SymmetricKey
  private let rowKey: SymmetricKey

  fileprivate init(name: [UInt8], valueKey: SymmetricKey, rowKey: SymmetricKey) {
    self.name = name
    self.valueKey = valueKey
    self.rowKey = rowKey
  }

  /// The bytes that sealing adds: a nonce and a tag.
  package static let overhead = AuthenticatedCipher.overhead

  /// Seals a value for one row, and for one column if the row has several sealed columns.
  package func seal(
    _ value: [UInt8], row: some Collection<UInt8>, column: StaticString = ""
  ) throws(CryptoFailure) -> [UInt8] {
    let context = context(row: row, column: column)
    return Array(try AuthenticatedCipher.seal(value, key: valueKey, nonce: nil, aad: context))
  }

  /// Opens a value.
  ///
  /// - Throws: `CryptoFailure.authenticationFailure` for a wrong key, table, row or column, and for altered bytes.
  package func open(
    _ sealed: some Collection<UInt8>, row: some Collection<UInt8>, column: StaticString = ""
  ) throws(CryptoFailure) -> [UInt8] {
    let context = context(row: row, column: column)
    return Array(try AuthenticatedCipher.open(Data(sealed), key: valueKey, aad: context))
  }

  /// Returns `HMAC(row key of the table, v32 part…)`, 32 bytes.
  package func rowKey(_ parts: [[UInt8]]) -> [UInt8] {
    var message = ByteWriter(capacity: 64)
    for part in parts { message.append32(part) }
    return KeyDerivation.authenticate(rowKey, message.bytes)
  }

  private func context(row: some Collection<UInt8>, column: StaticString) -> [UInt8] {
    var context = ByteWriter(capacity: 64)
    context.append16(name)
    context.append32(row)
    column.withUTF8Buffer { context.append16($0) }
    return context.bytes
  }
}
