public import Foundation
public import GRDB
package import ZDCSupport

/// The database's key, the app's collections and the app's own tables.
///
/// ```swift
/// var config = ZDCDatabaseConfig(encryptionKey: key) { migrator in
///   migrator.registerMigration("tasks") { db in
///     try db.create(table: "task") { $0.primaryKey("id", .text) }
///   }
/// }
/// config.register(Task.self, inCollection: "tasks")
/// ```
public struct ZDCDatabaseConfig: Sendable {
  /// 32 bytes, from ``ZDCDatabaseKeyManager`` or the app's own key store.
  public var encryptionKey: Data
  package var registry = CollectionRegistry()
  package var migrations: @Sendable (inout ZDCDatabaseMigrator) -> Void

  /// - Parameters:
  ///   - encryptionKey: 32 bytes; another length makes `unlockOrCreateDatabase` throw `invalidEncryptionKey`.
  /// - migrations: Registers the migrations of the app's own tables. They run after the framework's, in the same file.
  public init(
    encryptionKey: Data, migrations: @escaping @Sendable (inout ZDCDatabaseMigrator) -> Void = { _ in }
  ) {
    self.encryptionKey = encryptionKey
    self.migrations = migrations
  }

  /// Registers the type that `object(forKey:inCollection:)` returns for a collection.
  ///
  /// Register before unlocking. A collection that is only read with a type, as by
  /// ``ZDCReadTransaction/object(_:forKey:inCollection:)``, need not be registered.
  ///
  /// ```swift
  /// var config = ZDCDatabaseConfig(encryptionKey: key)
  /// config.register(Task.self, inCollection: "tasks")
  /// ```
  public mutating func register<T: ZDCStorable>(_ type: T.Type, inCollection collection: String) {
    registry.register(type, inCollection: collection)
  }

  /// Registers a type whose decoded objects stay in memory.
  ///
  /// For objects that are read again and again, such as those of a screen that is read after each change: only those that
  /// have changed are decrypted and decoded. Reading never returns an older object than the transaction sees.
  ///
  /// ```swift
  /// var config = ZDCDatabaseConfig(encryptionKey: key)
  /// config.register(Task.self, inCollection: "tasks", cacheLimit: 10_000)
  /// ```
  ///
  /// - Parameters:
  ///   - type: A type with value semantics, such as a struct of strings and numbers: all readers get copies of one value.
  ///   - collection: The collection, as in ``register(_:inCollection:)``.
  ///   - cacheLimit: Maximum number of objects. Those that were not read for long are dropped first. All are dropped when the
  ///     framework is closed.
  public mutating func register<T: ZDCStorable & Sendable>(
    _ type: T.Type, inCollection collection: String, cacheLimit: Int
  ) {
    registry.register(type, inCollection: collection, cacheLimit: cacheLimit)
  }
}

/// Collects the migrations of the app's own tables.
///
/// Each runs once, in its own transaction, in the order of registration, after all framework migrations. A migration
/// that creates, changes or drops anything that belongs to the framework (`zdc_`) is rolled back.
public struct ZDCDatabaseMigrator: Sendable {
  package private(set) var migrations: [AppMigration] = []

  package struct AppMigration: Sendable {
    package var identifier: String
    var foreignKeyChecks: DatabaseMigrator.ForeignKeyChecks
    package var migrate: @Sendable (Database) throws -> Void
  }

  /// Registers a migration.
  ///
  /// Never change a migration that was released; add another one:
  ///
  /// ```swift
  /// let config = ZDCDatabaseConfig(encryptionKey: key) { migrator in
  ///   migrator.registerMigration("2026-03 tasks") { db in
  ///     try db.execute(sql: "CREATE TABLE task (id TEXT PRIMARY KEY, completed INTEGER NOT NULL)")
  ///   }
  ///   migrator.registerMigration("2026-05 due dates") { db in
  ///     try db.execute(sql: "ALTER TABLE task ADD COLUMN due DATETIME")
  ///   }
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - identifier: Unique, not beginning with `zdc.`.
  ///   - foreignKeyChecks: When foreign keys are checked: at the end of the migration, or at each statement.
  ///   - migrate: Changes the schema. If it throws, the migration is rolled back and unlocking fails with that error.
  public mutating func registerMigration(
    _ identifier: String, foreignKeyChecks: DatabaseMigrator.ForeignKeyChecks = .deferred,
    migrate: @escaping @Sendable (Database) throws -> Void
  ) {
    migrations.append(
      AppMigration(identifier: identifier, foreignKeyChecks: foreignKeyChecks, migrate: migrate))
  }

  /// Appends the migrations to the framework's.
  package func register(in migrator: inout DatabaseMigrator) throws(ZDCError) {
    var identifiers = Set(migrator.migrations)
    for migration in migrations {
      guard !migration.identifier.lowercased().hasPrefix("zdc.") else {
        throw ZDCError(.reservedName, detail: migration.identifier)
      }
      guard identifiers.insert(migration.identifier).inserted else {
        throw ZDCError(.duplicateMigration, detail: migration.identifier)
      }
      migrator.registerMigration(
        migration.identifier, foreignKeyChecks: migration.foreignKeyChecks, migrate: migration.guarded)
    }
  }
}

extension ZDCDatabaseMigrator.AppMigration {
  @Sendable
  package func guarded(_ db: Database) throws {
    let before = try Self.reservedSchema(db)
    try migrate(db)
    guard try Self.reservedSchema(db) == before else { throw ZDCError(.reservedName, detail: identifier) }
  }

  /// Returns everything with a reserved name or on a reserved table, including indexes and triggers.
  private static func reservedSchema(_ db: Database) throws -> [Row] {
    try Row.fetchAll(
      db,
      sql: """
        SELECT type, name, tbl_name, sql FROM sqlite_master
        WHERE name LIKE 'zdc\\_%' ESCAPE '\\' OR tbl_name LIKE 'zdc\\_%' ESCAPE '\\' ORDER BY type, name
        """)
  }
}
