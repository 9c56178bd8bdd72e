internal import Dispatch
internal import GRDB
package import ZDCServer

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// The embedded metadata store: one SQLite file, WAL, `synchronous` FULL, group commit.
package final class SQLiteStore: MetadataStore {
  private let pool: DatabasePool
  private let queue: WriteQueue
  private let checkpointer: Checkpointer

  /// Opens or creates the database.
  ///
  /// - Parameter filling: whether to open a database that is not complete yet, in order to fill it.
  /// - Throws: ``StoreOpenError``; then nothing was changed.
  package init(path: String, filling: Bool = false) throws {
    let version = try Self.existingVersion(path)
    do {
      pool = try DatabasePool(path: path, configuration: Self.configuration)
      try Self.prepare(pool, version: version, filling: filling)
      checkpointer = try Checkpointer(path: path)
    } catch let error as StoreOpenError {
      throw error
    } catch StoreError.damaged {
      throw StoreOpenError(.damaged, path: path)
    } catch {
      throw StoreOpenError(error, path: path)
    }
    queue = WriteQueue(pool: pool, checkpointer: checkpointer)
  }

  private static var configuration: GRDB.Configuration {
    var configuration = GRDB.Configuration()
    configuration.label = "zdc.server"
    configuration.maximumReaderCount = 4
    configuration.foreignKeysEnabled = false
    configuration.busyMode = .timeout(5)
    return configuration
  }

  /// Returns the schema version of an existing file, without opening it for writing; 0 if there is no file.
  static func existingVersion(_ path: String) throws -> Int {
    guard FileManager.default.fileExists(atPath: path) else { return 0 }
    var configuration = GRDB.Configuration()
    configuration.readonly = true
    do {
      let queue = try DatabaseQueue(path: path, configuration: configuration)
      let (version, application) = try queue.read { db in
        let version = try Int.fetchOne(db, sql: "PRAGMA user_version") ?? 0
        return (version, try Int64.fetchOne(db, sql: "PRAGMA application_id") ?? 0)
      }
      try queue.close()
      guard application == Schema.applicationID || version == 0 && application == 0 else {
        throw StoreOpenError(.damaged, path: path)
      }
      guard version <= Schema.version else { throw StoreOpenError(.newer, path: path) }
      return version
    } catch let error as StoreOpenError {
      throw error
    } catch {
      throw StoreOpenError(error, path: path)
    }
  }

  private static func prepare(_ pool: DatabasePool, version: Int, filling: Bool) throws {
    try pool.writeWithoutTransaction { db in
      guard try filling || !SQLiteRows.isBeingFilled(db) else {
        throw StoreOpenError.incomplete(pool.path)
      }
      try Schema.migrate(db, from: version)
      // NB: a pool sets NORMAL itself while it opens. Only FULL makes acknowledged writes durable, so it is set last
      // and read back.
      try db.execute(sql: "PRAGMA synchronous = FULL; PRAGMA cache_size = -16384")
      // The limit of the write-ahead log; the checkpointer normally copies it back earlier.
      try db.execute(sql: "PRAGMA wal_autocheckpoint = 16384; PRAGMA journal_size_limit = 33554432")
      let isFull = try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2
      let isWAL = try String.fetchOne(db, sql: "PRAGMA journal_mode") == "wal"
      guard isFull, isWAL else {
        throw StoreOpenError(.other("SQLite refuses WAL or synchronous = FULL"), path: pool.path)
      }
    }
  }

  package func write<T: Sendable>(
    _ subjects: Set<WriteSubject>, _ body: @escaping @Sendable (any MetadataTransaction) throws -> T
  ) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      let job = WriteQueue.Job(
        body: { transaction in
          let value = try body(transaction)
          return { error in
            if let error { continuation.resume(throwing: error) } else { continuation.resume(returning: value) }
          }
        },
        fail: { continuation.resume(throwing: Self.translated($0)) })
      queue.enqueue(job)
    }
  }

  package func read<T: Sendable>(_ body: @escaping @Sendable (any MetadataReader) throws -> T) async throws -> T {
    do {
      return try await pool.read { db in
        let transaction = SQLiteTransaction(db)
        defer { transaction.invalidate() }
        return try body(transaction)
      }
    } catch { throw Self.translated(error) }
  }

  package func compact() async throws {
    _ = try await pool.writeWithoutTransaction { db in try db.checkpoint(.truncate) }
  }

  package func close() async throws {
    try checkpointer.close()
    try await compact()
    // Runs on a Dispatch thread: it waits for readers, whose tasks need the threads of the concurrency pool.
    try await withCheckedThrowingContinuation { continuation in
      DispatchQueue.global().async { [pool] in continuation.resume(with: Result(catching: pool.close)) }
    }
  }

  /// Returns `synchronous` and `journal_mode` as SQLite reports them on the writer.
  package func settings() async throws -> [String] {
    try await pool.writeWithoutTransaction { db in
      let synchronous = try String.fetchOne(db, sql: "PRAGMA synchronous") ?? ""
      return [synchronous, try String.fetchOne(db, sql: "PRAGMA journal_mode") ?? ""]
    }
  }

  /// Limits the size of the database, as a full disk would; nil means no limit. Never below its current size.
  package func setMaximumPages(_ count: Int?) async throws {
    try await pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA max_page_count = \(count ?? 1_073_741_823)")
    }
  }

  package var writeStatistics: WriteStatistics { queue.statistics }

  private static func translated(_ error: any Error) -> any Error {
    guard let error = error as? DatabaseError, error.resultCode == .SQLITE_FULL else { return error }
    return StorageFull()
  }
}

extension SQLiteStore: CopyableStore {
  package func readRows<T: Sendable>(
    _ body: @escaping @Sendable (any StoredRowReader) throws -> T
  ) async throws -> T {
    try await pool.read { db in
      let transaction = SQLiteTransaction(db)
      defer { transaction.invalidate() }
      return try body(SQLiteRows(transaction))
    }
  }

  package func fill<T: Sendable>(_ body: @escaping @Sendable (any StoredRowWriter) throws -> T) async throws -> T {
    do {
      return try await pool.write { db in
        let transaction = SQLiteTransaction(db)
        defer { transaction.invalidate() }
        return try body(SQLiteRows(transaction))
      }
    } catch { throw Self.translated(error) }
  }
}

/// The reason why a data folder or database cannot be opened.
package struct StoreOpenError: Error, CustomStringConvertible {
  package enum Reason: Sendable {
    /// Not a database of this server, or damaged.
    case damaged
    /// Written by a newer server.
    case newer
    /// In use by another server.
    case inUse
    case cannotCreate
    case noPermission
    /// There is no space left.
    case full
    /// Not the data folder of a server.
    case missing
    /// There is no list of deletions.
    case missingDeletions
    /// Not a list of deletions, or damaged.
    case damagedDeletions
    case other(String)
  }

  package let reason: Reason
  package let path: String

  var isFull: Bool { if case .full = reason { true } else { false } }

  package init(_ reason: Reason, path: String) {
    self.reason = reason
    self.path = path
  }

  init(_ error: any Error, path: String) {
    self.path = path
    guard let error = error as? DatabaseError else {
      reason = .other("\(error)")
      return
    }
    switch error.resultCode {
    case .SQLITE_NOTADB, .SQLITE_CORRUPT: reason = .damaged
    case .SQLITE_CANTOPEN: reason = .cannotCreate
    case .SQLITE_PERM, .SQLITE_READONLY, .SQLITE_AUTH: reason = .noPermission
    case .SQLITE_BUSY, .SQLITE_LOCKED: reason = .inUse
    case .SQLITE_FULL: reason = .full
    default: reason = .other(error.resultCode.description)
    }
  }

  static func incomplete(_ path: String) -> StoreOpenError {
    StoreOpenError(.other("it is not complete; run zdc-server migrate again"), path: path)
  }

  package var description: String {
    switch reason {
    case .damaged: "\(path) is damaged or not a database of this server; nothing was changed"
    case .newer: "\(path) was written by a newer version of this server; nothing was changed"
    case .inUse: "\(path) is in use by another server"
    case .cannotCreate: "cannot create or open \(path)"
    case .noPermission: "no permission to read and write \(path)"
    case .full: "there is no space left for \(path)"
    case .missing: "\(path) is not a data folder of this server"
    case .missingDeletions: "there is no list of deletions at \(path)"
    case .damagedDeletions: "\(path) is damaged or not a list of deletions; nothing was changed"
    case .other(let what): "cannot open \(path): \(what)"
    }
  }
}
