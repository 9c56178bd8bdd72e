package import Foundation
internal import GRDB
package import ZDCProtocol
internal import ZDCSupport

// Ids and hashes as BLOB columns.

extension Bytes16 {
  package var data: Data { Data(bytes) }

  package init(_ row: some ColumnReading, _ column: Int) throws {
    guard let value = try row.optional16(column, Role.self) else { throw ZDCError(.corruptDatabase) }
    self = value
  }
}

extension Bytes32 {
  package var data: Data { Data(bytes) }

  package init(_ row: some ColumnReading, _ column: Int) throws {
    guard let value = try row.optional32(column, Role.self) else { throw ZDCError(.corruptDatabase) }
    self = value
  }
}

/// A row in either of its forms.
package protocol ColumnReading {
  func bytes(_ column: Int) -> [UInt8]?
  func optional16<Role>(_ column: Int, _ role: Role.Type) throws -> Bytes16<Role>?
  func optional32<Role>(_ column: Int, _ role: Role.Type) throws -> Bytes32<Role>?
  func unsigned(_ column: Int) -> UInt64?
}

extension ColumnReading {
  package func requiredBytes(_ column: Int) throws -> [UInt8] {
    guard let bytes = bytes(column) else { throw ZDCError(.corruptDatabase) }
    return bytes
  }
}

extension Row: ColumnReading {
  package func bytes(_ column: Int) -> [UInt8]? {
    (self[column] as Data?).map { [UInt8]($0) }
  }

  func optional16<Role>(_ column: Int, _ role: Role.Type) throws -> Bytes16<Role>? {
    guard let data: Data = self[column] else { return nil }
    guard let value = Bytes16<Role>(data) else { throw ZDCError(.corruptDatabase) }
    return value
  }

  func optional32<Role>(_ column: Int, _ role: Role.Type) throws -> Bytes32<Role>? {
    guard let data: Data = self[column] else { return nil }
    guard let value = Bytes32<Role>(data) else { throw ZDCError(.corruptDatabase) }
    return value
  }

  package func unsigned(_ column: Int) -> UInt64? {
    (self[column] as Int64?).map { UInt64(bitPattern: $0) }
  }
}

extension UInt64 {
  /// SQLite's integers are signed; the bits stay the same.
  package var stored: Int64 { Int64(bitPattern: self) }
}
