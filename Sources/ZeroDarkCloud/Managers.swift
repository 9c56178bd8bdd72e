public import Foundation
public import ZDCAccounts
public import ZDCClientStore
public import ZDCSync
public import ZDCTransfers

/// What exists while the database is unlocked. Made in one place, so that each part is handed exactly what it needs.
struct Managers: Sendable {
  let database: ZDCDatabaseManager
  let localUsers: ZDCLocalUserManager
  let disk: ZDCDiskManager
  let downloads: ZDCDownloadManager
  let images: ZDCImageManager
  let sync: ZDCSyncManager

  init(
    config: ZDCConfig, delegate: DelegateBox, progress: ZDCProgressManager, database: ZDCDatabaseManager,
    reachability: ZDCReachability
  ) throws {
    self.database = database
    localUsers = try ZDCLocalUserManager(config: config, database: database, transport: config.transport)
    disk = ZDCDiskManager(
      database: database.rwDatabaseConnection, folder: config.databasePath.appendingPathExtension("files"))
    downloads = ZDCDownloadManager(
      database: database.rwDatabaseConnection, users: localUsers, primaryTreeID: config.primaryTreeID,
      name: config.stableName(home: NSHomeDirectory()), disk: disk,
      partials: config.databasePath.appendingPathExtension("downloads"), progress: progress, delegate: delegate,
      sleep: config.transferSleep)
    images = .platform(disk: disk, downloads: downloads, database: database.rwDatabaseConnection)
    sync = ZDCSyncManager(
      database: database, users: localUsers, config: config, delegate: delegate, progress: progress,
      reachability: reachability)
  }

  /// After the framework calls itself unlocked: engines begin here.
  func start() {
    disk.start()
    sync.start()
    if sync.config.syncAutomatically { downloads.start(sync.hub.occasions(Self.resumesDownloads)) }
  }

  /// The server can be reached again, or something was pulled.
  private static func resumesDownloads(_ update: ZDCSyncStatus) -> Bool {
    switch update {
    case .online, .pullFinished: true
    default: false
    }
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

  /// Thumbnails and avatars, from memory, disk and server; nil until the database is unlocked.
  public var imageManager: ZDCImageManager? { managers?.images }

  /// An image manager for images of the app's own type, with a memory of its own; nil until the database is unlocked.
  ///
  /// - Parameters:
  ///   - cacheCostLimit: what the images in memory may cost together.
  ///   - cost: of one image, for example its bytes.
  ///   - decode: makes an image from what was uploaded; nil if it is none. Runs off the main thread.
  public func imageLoader<Image: Sendable>(
    cacheCostLimit: Int = 5 << 20, cost: @escaping @Sendable (Image) -> Int,
    decode: @escaping @Sendable (Data) throws -> Image?
  ) -> ZDCImageLoader<Image>? {
    guard let managers else { return nil }
    return ZDCImageLoader(
      disk: managers.disk, downloads: managers.downloads, database: managers.database.rwDatabaseConnection,
      costLimit: cacheCostLimit, cost: cost, decode: decode)
  }

  /// Push and pull; nil until the database is unlocked.
  public var syncManager: ZDCSyncManager? { managers?.sync }
}

extension ZeroDarkCloud {
  /// Look-ups on local nodes; never nil. Both `nodeManager.` and `nodeManager?.` compile, as with the other managers.
  public var nodeManager: ZDCNodeManager! { .sharedInstance }
}
