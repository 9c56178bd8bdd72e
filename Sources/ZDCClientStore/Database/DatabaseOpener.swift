internal import Foundation
internal import GRDB
internal import ZDCCrypto
internal import ZDCSupport

/// Opens or creates the database file. It inspects the file before writing: a foreign, damaged or newer file, or one
/// under another key, stays unchanged.
struct DatabaseOpener {
  package let path: URL
  package let sealer: ValueSealer
  /// How long a statement waits for another process. Commits are short; a migration of many rows is not.
  static let busySeconds: TimeInterval = 30
  private static let keyMigration = "zdc.key"

  package func open(_ appMigrations: @Sendable (inout ZDCDatabaseMigrator) -> Void) throws -> DatabasePool {
    let migrator = try migrator(appMigrations)
    try prepareFolder()
    // Two processes must not migrate concurrently: each decides outside the transactions which migrations to run.
    let lock = try FileLock.waiting(for: path.appendingPathExtension("open-lock"))
    defer { lock.release() }
    return try translating {
      try checkFile()
      let pool = try DatabasePool(path: path.path, configuration: configuration)
      try makeDurable(pool)
      try migrator.migrate(pool)
      return pool
    }
  }

  // MARK: Migrations

  private func migrator(
    _ appMigrations: @Sendable (inout ZDCDatabaseMigrator) -> Void
  ) throws(ZDCError) -> DatabaseMigrator {
    var app = ZDCDatabaseMigrator()
    appMigrations(&app)
    var migrator = Self.frameworkMigrator
    migrator.registerMigration(Self.keyMigration) { [probe = KeyProbe(sealer: sealer)] db in try probe.insert(db) }
    try app.register(in: &migrator)
    return migrator
  }

  private static var frameworkMigrator: DatabaseMigrator {
    var migrator = DatabaseMigrator()
    FrameworkSchema.register(in: &migrator)
    return migrator
  }

  // MARK: Inspecting the files

  private func prepareFolder() throws {
    let folder = path.deletingLastPathComponent()
    do {
      try FileManager.default.createDirectory(
        at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch { throw ZDCError(.databaseNotWritable, underlying: error) }
    guard FileManager.default.isWritableFile(atPath: folder.path) else { throw ZDCError(.databaseNotWritable) }
  }

  private func checkFile() throws {
    let length = try fileLength(path.path)
    guard length > 0 else {
      // SQLite would discard the log of a file that lost its beginning.
      guard try fileLength(path.path + "-wal") == 0 else { throw ZDCError(.corruptDatabase) }
      return try createPrivateFile()
    }
    guard FileManager.default.isWritableFile(atPath: path.path) else { throw ZDCError(.databaseNotWritable) }
    try inspect()
  }

  private func fileLength(_ path: String) throws -> UInt64 {
    guard FileManager.default.fileExists(atPath: path) else { return 0 }
    do {
      let attributes = try FileManager.default.attributesOfItem(atPath: path)
      return (attributes[.size] as? NSNumber)?.uint64Value ?? 0
    } catch { throw ZDCError(.databaseNotWritable, underlying: error) }
  }

  /// SQLite gives its log and shared-memory files the mode of the database file.
  private func createPrivateFile() throws {
    try PrivateFile.createIfMissing(path)
  }

  /// Checks the file's migrations and key on a read-only connection.
  private func inspect() throws {
    var configuration = configuration
    configuration.readonly = true
    let queue = try DatabaseQueue(path: path.path, configuration: configuration)
    defer { try? queue.close() }
    try queue.read { db in
      let applied = try Self.frameworkMigrator.appliedIdentifiers(db)
      let ours = applied.filter { $0.hasPrefix("zdc.") }
      guard !ours.isEmpty else { return try checkNothingElse(db) }
      let known = Set(Self.frameworkMigrator.migrations + [Self.keyMigration])
      guard ours.isSubset(of: known) else { throw ZDCError(.databaseTooNew) }
      if ours.contains(Self.keyMigration) { try KeyProbe(sealer: sealer).check(db) }
    }
  }

  private func checkNothingElse(_ db: Database) throws {
    let tables = try Int.fetchOne(
      db,
      sql: """
        SELECT COUNT(*) FROM sqlite_master
        WHERE name NOT LIKE 'grdb\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'
        """)
    guard tables == 0 else { throw ZDCError(.foreignDatabase) }
  }

  // MARK: SQLite's settings

  private var configuration: Configuration {
    var configuration = Configuration()
    configuration.label = "ZeroDarkCloud"
    configuration.busyMode = .timeout(Self.busySeconds)
    return configuration
  }

  /// A pool sets `synchronous` to NORMAL after its configuration hooks ran, so it is set here and read back.
  private func makeDurable(_ pool: DatabasePool) throws {
    try pool.writeWithoutTransaction { db in
      try db.execute(sql: "PRAGMA synchronous = FULL")
      #if canImport(Darwin)
        try db.execute(sql: "PRAGMA fullfsync = ON")
      #endif
      guard try Int.fetchOne(db, sql: "PRAGMA synchronous") == 2 else {
        throw ZDCError(.databaseFailure, detail: "commits cannot be made durable")
      }
      // The writer's page cache, at most 32 MiB. Beyond that, a transaction of ten thousand nodes writes pages out and
      // reads them back.
      try db.execute(sql: "PRAGMA cache_size = -32768")
      // Pages that successive commits change are copied into the database once for several commits. This bounds the log
      // to 64 MiB plus one transaction. The next transaction after that releases whatever exceeds 16 MiB.
      try db.execute(sql: "PRAGMA wal_autocheckpoint = 16384; PRAGMA journal_size_limit = 16777216")
    }
  }
}

/// A known value sealed under the database key. It reveals a wrong key before anything is read or written with it.
struct KeyProbe: Sendable {
  package let sealer: ValueSealer
  private static let row = "key-probe"
  private static let value = Array("zdc1".utf8)

  package func insert(_ db: Database) throws {
    let sealed = try sealer.seal(Self.value, table: "zdc_meta", row: Array(Self.row.utf8))
    try db.execute(sql: "INSERT INTO zdc_meta (key, value) VALUES (?, ?)", arguments: [Self.row, Data(sealed)])
  }

  /// Checks the database key against the stored value.
  ///
  /// - Throws: `ZDCError` with `wrongDatabaseKey`, or `corruptDatabase` if there is no probe.
  package func check(_ db: Database) throws {
    let stored = try Data.fetchOne(db, sql: "SELECT value FROM zdc_meta WHERE key = ?", arguments: [Self.row])
    guard let stored else { throw ZDCError(.corruptDatabase) }
    do {
      let value = try sealer.open(stored, table: "zdc_meta", row: Array(Self.row.utf8))
      guard value == Self.value else { throw ZDCError(.corruptDatabase) }
    } catch is CryptoFailure { throw ZDCError(.wrongDatabaseKey) }
  }
}
