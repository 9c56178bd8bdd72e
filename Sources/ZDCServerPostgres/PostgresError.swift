/// A failure of PostgreSQL or of the connection to it.
package struct PostgresError: Error, Hashable, CustomStringConvertible {
  package enum Kind: Sendable, Hashable {
    /// libpq is not installed.
    case missingLibrary
    /// No connection, or it was lost; nothing was changed.
    case connection
    /// The connection was lost while COMMIT ran: the changes were made completely or not at all.
    case unknownOutcome
    /// The server refused a statement, with this SQLSTATE.
    case statement(String)
    /// A row does not have the form that this program writes.
    case damaged
  }

  package let kind: Kind
  /// May contain values of rows: for the log's debug level, never for clients.
  package let message: String

  init(_ kind: Kind, _ message: String) {
    (self.kind, self.message) = (kind, message)
  }

  static let damaged = PostgresError(.damaged, "a stored row is damaged")

  /// The five characters of the SQL standard, such as `23505` for a name that is taken.
  package var state: String? { if case .statement(let state) = kind { state } else { nil } }

  /// Whether the same transaction may end otherwise when it runs again: a lock was not free in time, two transactions
  /// waited for each other, another process has inserted the same row at the same moment, or a statement took too long.
  package var isContention: Bool { ["40001", "40P01", "55P03", "23505", "57014"].contains(state) }

  /// Whether the database has no room left.
  package var isFull: Bool { state == "53100" }

  /// Whether PostgreSQL is not reachable, is starting or stopping, has no connection left, or takes no writes: it is a
  /// standby now, and the next connection leads to the new primary.
  package var isUnavailable: Bool {
    guard let state else { return kind == .connection || kind == .unknownOutcome }
    return state.hasPrefix("57P") || state.hasPrefix("08") || ["53300", "25006"].contains(state)
  }

  package var description: String { state.map { "\(message) (SQLSTATE \($0))" } ?? message }
}
