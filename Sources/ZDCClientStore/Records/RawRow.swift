internal import Foundation
package import GRDB
internal import GRDBSQLite
package import ZDCProtocol
internal import ZDCSupport

/// The current row of a statement, valid until its next step; for tables of which thousands of rows are read together.
///
/// GRDB's `Row` names its columns in a dictionary each time, which costs more than reading them. As a column value it
/// takes part in everything else that GRDB does, such as observation. The first column must not be NULL.
package struct RawRow: DatabaseValueConvertible, StatementColumnConvertible {
  private let handle: SQLiteStatement

  package init(sqliteStatement: SQLiteStatement, index: CInt) {
    handle = sqliteStatement
  }

  package func isNull(_ column: Int) -> Bool { sqlite3_column_type(handle, Int32(column)) == SQLITE_NULL }
  private func integer(_ column: Int) -> Int64 { sqlite3_column_int64(handle, Int32(column)) }
  private func text(_ column: Int) -> String { String(decoding: blob(column), as: UTF8.self) }

  package subscript(_ column: Int) -> Int64 { integer(column) }
  package subscript(_ column: Int) -> Int64? { isNull(column) ? nil : integer(column) }
  package subscript(_ column: Int) -> Int { Int(integer(column)) }
  package subscript(_ column: Int) -> Int32 { Int32(truncatingIfNeeded: integer(column)) }
  package subscript(_ column: Int) -> String { text(column) }
  package subscript(_ column: Int) -> String? { isNull(column) ? nil : text(column) }

  /// The value's bytes in SQLite's memory.
  private func blob(_ column: Int) -> UnsafeRawBufferPointer {
    let count = Int(sqlite3_column_bytes(handle, Int32(column)))
    return UnsafeRawBufferPointer(start: sqlite3_column_blob(handle, Int32(column)), count: count)
  }

  // A row is never written as a value, nor made from one.
  package var databaseValue: DatabaseValue { .null }
  package static func fromDatabaseValue(_ value: DatabaseValue) -> RawRow? { nil }
}

extension RawRow: ColumnReading {
  package func bytes(_ column: Int) -> [UInt8]? { isNull(column) ? nil : [UInt8](blob(column)) }
  package func unsigned(_ column: Int) -> UInt64? { (self[column] as Int64?).map { UInt64(bitPattern: $0) } }

  package func optional16<Role>(_ column: Int, _ role: Role.Type) throws -> Bytes16<Role>? {
    guard !isNull(column) else { return nil }
    guard let value = Bytes16<Role>(blob(column)) else { throw ZDCError(.corruptDatabase) }
    return value
  }

  package func optional32<Role>(_ column: Int, _ role: Role.Type) throws -> Bytes32<Role>? {
    guard !isNull(column) else { return nil }
    guard let value = Bytes32<Role>(blob(column)) else { throw ZDCError(.corruptDatabase) }
    return value
  }
}

// A transaction runs some tens of these for one change, so they call SQLite themselves: GRDB prepares, caches and binds the
// statement, but its cursors take as long again as the statement.
extension Database {
  /// Calls `body` for each row of a query.
  package func forEachRow(_ sql: String, _ arguments: StatementArguments, _ body: (RawRow) throws -> Void) throws {
    try eachRow(sql, arguments) { row in
      try body(row)
      return true
    }
  }

  /// Returns the result of `read` for the first row; nil without one.
  package func firstRow<Result>(
    _ sql: String, _ arguments: StatementArguments, _ read: (RawRow) throws -> Result
  ) throws -> Result? {
    var result: Result?
    try eachRow(sql, arguments) { row in
      result = try read(row)
      return false
    }
    return result
  }

  /// Returns whether a query has a row.
  package func hasRow(_ sql: String, _ arguments: StatementArguments) throws -> Bool {
    try firstRow(sql, arguments) { _ in true } ?? false
  }

  /// Steps through the rows until there are no more or `body` returns false.
  private func eachRow(_ sql: String, _ arguments: StatementArguments, _ body: (RawRow) throws -> Bool) throws {
    let statement = try cachedStatement(sql: sql)
    // For observations of what the app reads.
    try registerAccess(to: statement.databaseRegion)
    statement.setUncheckedArguments(arguments)
    let handle = statement.sqliteStatement
    defer { withExtendedLifetime(statement) { _ = sqlite3_reset(handle) } }
    while true {
      let code = sqlite3_step(handle)
      if code == SQLITE_DONE { return }
      guard code == SQLITE_ROW else { throw failure(code) }
      guard try body(RawRow(sqliteStatement: handle, index: 0)) else { return }
    }
  }

  private func failure(_ code: Int32) -> any Error {
    // GRDB interrupts the statements of a task that was cancelled.
    if code & 0xff == SQLITE_INTERRUPT, Task.isCancelled { return CancellationError() }
    let message = String(cString: sqlite3_errmsg(sqliteConnection))
    return DatabaseError(resultCode: ResultCode(rawValue: code), message: message)
  }
}
