internal import Synchronization
package import ZDCServer

/// All rows of a database as they were at one moment. A server may use the database meanwhile.
package final class PostgresSnapshot: RowSource {
  private let pool: ConnectionPool

  /// Connects with the first read.
  package init(url: String) {
    let isOpened = Mutex(false)
    pool = ConnectionPool(count: 1) {
      // Another connection would see another moment.
      let isFirst = isOpened.withLock { opened in
        defer { opened = true }
        return !opened
      }
      guard isFirst else { throw PostgresError(.connection, "the connection was lost") }
      return try Self.open(url)
    }
  }

  private static func open(_ url: String) throws -> PostgresConnection {
    let connection = try PostgresConnection(url, settings: ["SET enable_seqscan = off", "SET jit = off"])
    guard try !PostgresRows.isBeingFilled(connection) else { throw IncompleteDatabase() }
    try PostgresSchema.check(connection)
    try connection.run("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    return connection
  }

  package func readRows<T: Sendable>(
    _ body: @escaping @Sendable (any StoredRowReader) throws -> T
  ) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      pool.run { connection in
        let result = Result { try body(PostgresRows(PostgresTransaction(try connection.get()))) }
        continuation.resume(with: result.mapError { PostgresOpenError($0) })
      }
    }
  }

  /// Ends the transaction; blocks until it has ended.
  package func close() { pool.close() }
}
