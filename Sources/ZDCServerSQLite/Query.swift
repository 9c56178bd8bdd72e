internal import GRDB
internal import GRDBSQLite
internal import ZDCProtocol

/// A value to bind to a statement.
enum SQLValue {
  case null
  case int(Int64)
  case bytes([UInt8])
  case slice(ArraySlice<UInt8>)
  case text(String)

  static func ms(_ value: UInt64) -> SQLValue { .int(Int64(clamping: value)) }
  static func optionalMs(_ value: UInt64?) -> SQLValue { value.map { .ms($0) } ?? .null }
  static func optional(_ value: Int64?) -> SQLValue { value.map { .int($0) } ?? .null }
  static func id<Role>(_ value: Bytes16<Role>) -> SQLValue { .bytes(value.bytes) }
  static func id<Role>(_ value: Bytes32<Role>) -> SQLValue { .bytes(value.bytes) }
}

/// The current row of a statement. Columns are counted from zero.
struct SQLRow {
  fileprivate let handle: OpaquePointer

  func isNull(_ column: Int32) -> Bool { sqlite3_column_type(handle, column) == SQLITE_NULL }
  func int(_ column: Int32) -> Int64 { sqlite3_column_int64(handle, column) }
  func unsigned(_ column: Int32) -> UInt64 { UInt64(clamping: int(column)) }
  func optionalInt(_ column: Int32) -> Int64? { isNull(column) ? nil : int(column) }

  func bytes(_ column: Int32) -> [UInt8] {
    let count = Int(sqlite3_column_bytes(handle, column))
    guard count > 0, let start = sqlite3_column_blob(handle, column) else { return [] }
    return [UInt8](UnsafeRawBufferPointer(start: start, count: count))
  }

  func text(_ column: Int32) -> String { String(decoding: bytes(column), as: UTF8.self) }

  func id<Role>(_ column: Int32) throws -> Bytes16<Role> {
    guard let id = Bytes16<Role>(bytes(column)) else { throw StoreError.damaged }
    return id
  }

  func id<Role>(_ column: Int32) throws -> Bytes32<Role> {
    guard let id = Bytes32<Role>(bytes(column)) else { throw StoreError.damaged }
    return id
  }
}

/// The store's own errors; `RenderErrors` turns them into responses.
enum StoreError: Error {
  /// A row does not have the form that this program writes.
  case damaged
  /// A uniqueness constraint of the schema was violated; callers that expect it catch it.
  case constraint
}

/// A compiled statement, run by direct SQLite calls. GRDB prepares and caches it, but its row decoding is too slow for
/// a thousand puts per commit.
///
/// Code that runs a statement once per node fetches it once, outside the loop. GRDB finds a statement by hashing its
/// text, which takes as long as running it.
struct SQLStatement {
  fileprivate let db: Database
  fileprivate let statement: Statement

  func run(_ values: SQLValue...) throws { try run(values) }

  func run(_ values: [SQLValue]) throws {
    try each(values) { _ in false }
  }

  func first<T>(_ values: SQLValue..., row read: (SQLRow) throws -> T) throws -> T? {
    try first(values, row: read)
  }

  func first<T>(_ values: [SQLValue], row read: (SQLRow) throws -> T) throws -> T? {
    var result: T?
    try each(values) { row in
      result = try read(row)
      return false
    }
    return result
  }

  func all<T>(_ values: SQLValue..., row read: (SQLRow) throws -> T) throws -> [T] {
    var result: [T] = []
    try each(values) { row in
      result.append(try read(row))
      return true
    }
    return result
  }

  /// Steps through the rows until there are no more or `body` returns false.
  fileprivate func each(_ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
    // GRDB's cache may drop the statement while `body` runs, and the handle would be freed with it.
    try withExtendedLifetime(statement) { try each(statement.sqliteStatement, values, body) }
  }

  private func each(_ handle: OpaquePointer, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
    defer {
      sqlite3_reset(handle)
      sqlite3_clear_bindings(handle)
    }
    for (index, value) in values.enumerated() { try bind(value, at: Int32(index + 1), to: handle) }
    while true {
      let code = sqlite3_step(handle)
      if code == SQLITE_DONE { return }
      guard code == SQLITE_ROW else { throw error(code) }
      guard try body(SQLRow(handle: handle)) else { return }
    }
  }

  private func bind(_ value: SQLValue, at index: Int32, to handle: OpaquePointer) throws {
    let code =
      switch value {
      case .null: sqlite3_bind_null(handle, index)
      case .int(let number): sqlite3_bind_int64(handle, index, number)
      case .bytes(let bytes): bytes.withUnsafeBytes { bind($0, at: index, to: handle) }
      case .slice(let bytes): bytes.withUnsafeBytes { bind($0, at: index, to: handle) }
      case .text(let text): sqlite3_bind_text(handle, index, text, -1, transient)
      }
    guard code == SQLITE_OK else { throw error(code) }
  }

  private func bind(_ bytes: UnsafeRawBufferPointer, at index: Int32, to handle: OpaquePointer) -> Int32 {
    guard bytes.count > 0 else { return sqlite3_bind_zeroblob(handle, index, 0) }
    return sqlite3_bind_blob(handle, index, bytes.baseAddress, Int32(bytes.count), transient)
  }

  private func error(_ code: Int32) -> any Error {
    if code & 0xff == SQLITE_CONSTRAINT { return StoreError.constraint }
    let message = String(cString: sqlite3_errmsg(db.sqliteConnection))
    return DatabaseError(resultCode: ResultCode(rawValue: code), message: message)
  }
}

// Statements that run once.
extension Database {
  func prepared(_ sql: String) throws -> SQLStatement {
    SQLStatement(db: self, statement: try cachedStatement(sql: sql))
  }

  func run(_ sql: String, _ values: SQLValue...) throws {
    try prepared(sql).each(values) { _ in false }
  }

  func first<T>(_ sql: String, _ values: SQLValue..., row read: (SQLRow) throws -> T) throws -> T? {
    try prepared(sql).first(values, row: read)
  }

  func all<T>(_ sql: String, _ values: SQLValue..., row read: (SQLRow) throws -> T) throws -> [T] {
    var result: [T] = []
    try each(sql, values) { row in
      result.append(try read(row))
      return true
    }
    return result
  }

  /// Steps through the rows until there are no more or `body` returns false.
  func each(_ sql: String, _ values: [SQLValue], _ body: (SQLRow) throws -> Bool) throws {
    try prepared(sql).each(values, body)
  }
}

/// SQLite copies bound values, because the arrays do not outlive the call. The C macro is a cast that Swift does not
/// import.
private let transient = unsafeBitCast(-1, to: sqlite3_destructor_type.self)
