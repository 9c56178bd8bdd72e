internal import GRDB
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Returns the error that an app receives.
///
/// Failures of the database file and of local secrets become ``ZDCError``. Errors caused by an app's own statements,
/// such as a constraint violation, stay GRDB's `DatabaseError`.
package func translated(_ error: any Error) -> any Error {
  switch error {
  case let error as DatabaseError: translated(error)
  case let error as CryptoFailure: ZDCError(error)
  default: error
  }
}

private func translated(_ failure: DatabaseError) -> any Error {
  switch failure.resultCode {
  case .SQLITE_CORRUPT, .SQLITE_NOTADB: return ZDCError(.corruptDatabase, underlying: failure)
  case .SQLITE_READONLY, .SQLITE_CANTOPEN, .SQLITE_PERM: return ZDCError(.databaseNotWritable, underlying: failure)
  case .SQLITE_FULL: return ZDCError(.diskFull, detail: "no room for the database", underlying: failure)
  case .SQLITE_BUSY, .SQLITE_LOCKED, .SQLITE_PROTOCOL: return ZDCError(.databaseBusy, underlying: failure)
  // The disk has no room for the index of the write-ahead log, which even a reader needs.
  case .SQLITE_IOERR where failure.extendedResultCode == .SQLITE_IOERR_SHMSIZE:
    return ZDCError(.diskFull, detail: "no room for the database", underlying: failure)
  // SQLite maps only ENOSPC to SQLITE_FULL; an exceeded quota or file-size limit of the process ends up here.
  case .SQLITE_IOERR where failure.extendedResultCode == .SQLITE_IOERR_WRITE:
    return ZDCError(.diskFull, detail: "or over a quota or limit: the database cannot grow", underlying: failure)
  case .SQLITE_MISUSE where failure.isOfClosedConnection: return ZDCError(.databaseLocked, underlying: failure)
  case .SQLITE_IOERR: return ZDCError(.databaseFailure, detail: failure.loggable, underlying: failure)
  default: return failure
  }
}

extension ZDCError {
  fileprivate init(_ failure: CryptoFailure) {
    switch failure {
    // A value of the database does not open with the database's key, which was checked when it was unlocked.
    case .authenticationFailure, .malformed: self.init(.corruptDatabase, underlying: failure)
    case .sourceChanged: self.init(.fileModifiedDuringRead, underlying: failure)
    case .invalidParameter: self.init(.invalidParameter, underlying: failure)
    case .platformFailure: self.init(.cryptographyFailure, underlying: failure)
    }
  }
}

extension DatabaseError {
  /// Whether the framework was closed. GRDB has no symbol for it: a read gets GRDB's message, a write cannot begin.
  fileprivate var isOfClosedConnection: Bool {
    message == "Connection is closed" || sql?.hasPrefix("BEGIN") == true
  }
}

package func translating<T>(_ body: () throws -> T) throws -> T {
  do { return try body() } catch { throw translated(error) }
}

package func translating<T: Sendable>(_ body: @Sendable () async throws -> T) async throws -> T {
  do { return try await body() } catch { throw translated(error) }
}

/// Returns the part of an error that may be logged. SQLite's messages can quote an app's statement.
func loggable(_ error: any Error) -> String {
  switch error {
  case let error as ZDCSecurityError: error.code.rawValue
  case let error as DatabaseError: error.loggable
  case let error as any CustomStringConvertible & LoggableError: error.description
  default: "\(type(of: error))"
  }
}

extension CryptoFailure: LoggableError {}

extension DatabaseError {
  fileprivate var loggable: String { "SQLite \(extendedResultCode.rawValue)" }
}
