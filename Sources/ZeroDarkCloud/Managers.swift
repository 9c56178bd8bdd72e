internal import Foundation

/// What exists while the database is unlocked. Made in one place, so that each part is handed exactly what it needs.
struct Managers: Sendable {
  let database: ZDCDatabaseManager
  let localUsers: ZDCLocalUserManager
  let disk: ZDCDiskManager
  let downloads: ZDCDownloadManager
  let sync: ZDCSyncManager

  init(
    config: ZDCConfig, delegate: DelegateBox, progress: ZDCProgressManager, database: ZDCDatabaseManager
  ) throws {
    self.database = database
    localUsers = try ZDCLocalUserManager(config: config, database: database, transport: config.transport)
    disk = ZDCDiskManager(
      database: database.rwDatabaseConnection, folder: config.databasePath.appendingPathExtension("files"))
    downloads = ZDCDownloadManager(
      database: database.rwDatabaseConnection, users: localUsers, disk: disk,
      partials: config.databasePath.appendingPathExtension("downloads"), progress: progress, delegate: delegate,
      sleep: config.transferSleep)
    sync = ZDCSyncManager(
      database: database, users: localUsers, config: config, delegate: delegate, progress: progress)
  }

  /// After the framework calls itself unlocked: engines begin here.
  func start() {
    disk.start()
    sync.start()
    if sync.config.syncAutomatically { downloads.start(sync.statusUpdates) }
  }

  /// Before the database closes: engines have ended when this returns.
  func stop() async {
    await downloads.stop()
    await sync.stop()
    disk.stop()
  }
}

extension ZeroDarkCloud {
  /// Connections and transactions; nil until the database is unlocked.
  public var databaseManager: ZDCDatabaseManager? { managers?.database }

  /// Accounts on this device; nil until the database is unlocked.
  public var localUserManager: ZDCLocalUserManager? { managers?.localUsers }

  /// Contents of nodes; nil until the database is unlocked.
  public var downloadManager: ZDCDownloadManager? { managers?.downloads }

  /// Contents, thumbnails and avatars that are kept on this device; nil until the database is unlocked.
  public var diskManager: ZDCDiskManager? { managers?.disk }

  /// Push and pull; nil until the database is unlocked.
  public var syncManager: ZDCSyncManager? { managers?.sync }
}
