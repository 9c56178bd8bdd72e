internal import Foundation
internal import GRDB
internal import Synchronization
internal import ZDCCrypto
internal import ZDCSupport

/// The open database: one file, write-ahead log, every commit synced to disk before it is reported.
///
/// Several processes may have it open. Writes of one wait for those of another.
///
/// A write on a read-only connection throws `ZDCError` with `readOnlyConnection`.
///
/// ```swift
/// let database = session.databaseManager
/// try await database.rwDatabaseConnection.write { transaction in
///   transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
/// }
/// let titles = database.uiDatabaseConnection.values(of: { try $0.keys(inCollection: "tasks") })
/// ```
public final class ZDCDatabaseManager: Sendable {
  /// For reading and writing.
  public let rwDatabaseConnection: ZDCDatabaseConnection
  /// For reading.
  public let roDatabaseConnection: ZDCDatabaseConnection
  /// For reading from user interfaces, with ``ZDCDatabaseConnection/values(of:)`` for what they show.
  public let uiDatabaseConnection: ZDCDatabaseConnection
  package let context: DatabaseContext
  /// Notices what other processes commit. ``ZDCSyncManager/run()`` runs it, and so does every observation.
  package let changeWatcher: ChangeWatcher
  package let observations: Observations
  /// Which process runs the engines of this database.
  package let engineLease: EngineLease
  private let pool: DatabasePool
  private let checkpointer: Checkpointer

  /// Opens or makes the database.
  ///
  /// - Throws: See ``ZeroDarkCloud/unlockOrCreateDatabase(_:)``.
  package init(settings: DatabaseSettings, databaseConfig: ZDCDatabaseConfig) throws {
    guard let key = DatabaseKey(databaseConfig.encryptionKey) else { throw ZDCError(.invalidEncryptionKey) }
    let sealer = ValueSealer(key: key)
    let pool = try DatabaseOpener(path: settings.file, sealer: sealer).open(databaseConfig.migrations)
    let checkpointer = try translating { try Checkpointer(path: pool.path) }
    let context = DatabaseContext(
      sealer: sealer, registry: databaseConfig.registry, clock: settings.clock, logger: settings.logger,
      objectRemoved: [LinkedObjectRemoval.observe], observers: settings.observers,
      journalLimits: settings.journalLimits)
    let watcher = ChangeWatcher(pool: pool, context: context, interval: settings.changePollInterval)
    let observations = Observations(watcher: watcher)
    func connection(isReadOnly: Bool) -> ZDCDatabaseConnection {
      ZDCDatabaseConnection(
        pool: pool, context: context, observations: observations, checkpointer: checkpointer, isReadOnly: isReadOnly)
    }
    (self.pool, self.context, self.observations, changeWatcher) = (pool, context, observations, watcher)
    self.checkpointer = checkpointer
    rwDatabaseConnection = connection(isReadOnly: false)
    roDatabaseConnection = connection(isReadOnly: true)
    uiDatabaseConnection = connection(isReadOnly: true)
    engineLease = EngineLease(databasePath: settings.file)
  }

  /// Ends observations, waits for running transactions, blocking the caller, gives the lease back and closes the file.
  package func close() throws {
    observations.close()
    engineLease.releaseAll()
    try translating {
      try checkpointer.close()
      try pool.close()
    }
  }
}
