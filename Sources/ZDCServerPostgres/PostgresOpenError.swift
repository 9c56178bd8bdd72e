/// The reason why a database cannot be used.
package struct PostgresOpenError: Error, CustomStringConvertible {
  package enum Reason: Sendable, Hashable {
    /// libpq is not installed.
    case missingLibrary
    /// In use by another server.
    case inUse
    /// Changed by a newer server.
    case newer
    /// Used by no server so far.
    case missing
    /// PostgreSQL does not answer, or refuses the user.
    case unavailable
    /// The user may not create tables.
    case denied
    case other
  }

  package let reason: Reason
  package let description: String

  init(_ error: any Error) {
    switch error {
    case is DatabaseInUse: (reason, description) = (.inUse, "the database is in use by another server")
    case is NewerSchema:
      (reason, description) = (
        .newer, "the database was changed by a newer version of this server; nothing was changed"
      )
    case is OlderSchema:
      (reason, description) = (
        .other, "the database was last used by an older version of this server; start this version once"
      )
    case is MissingSchema: (reason, description) = (.missing, "the database has no tables of this server")
    case is IncompleteDatabase:
      (reason, description) = (.other, "the database is not complete; run zdc-server migrate again")
    case let error as PostgresError where error.kind == .missingLibrary:
      (reason, description) = (.missingLibrary, error.message)
    case let error as PostgresError where error.isUnavailable:
      (reason, description) = (.unavailable, "cannot connect to the database: \(error.message)")
    case let error as PostgresError where error.state == "42501":
      (reason, description) = (.denied, "cannot open the database: \(error.message)")
    default: (reason, description) = (.other, "cannot open the database: \(error)")
    }
  }
}

/// A copy of another store into the database has not ended.
struct IncompleteDatabase: Error {}
