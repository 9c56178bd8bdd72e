public import Foundation
public import ZDCAccounts
public import ZDCClientStore
public import ZDCSync
public import ZDCTransfers

/// The managers that exist while the database is unlocked. Creating them in one place hands each exactly what it needs.
struct Managers: Sendable {
  let database: ZDCDatabaseManager
  let localUsers: ZDCLocalUserManager
  let users: ZDCUserManager
  let disk: ZDCDiskManager
  let downloads: ZDCDownloadManager
  let images: ZDCImageManager
  let sync: ZDCSyncManager
  let handOver: TransferHandOver

  init(
    config: ZDCConfig, delegate: DelegateBox, progress: ZDCProgressManager, database: ZDCDatabaseManager,
    reachability: ZDCReachability
  ) throws {
    self.database = database
    localUsers = try ZDCLocalUserManager(config: config, database: database, transport: config.transport)
    users = ZDCUserManager(users: localUsers)
    disk = ZDCDiskManager(
      database: database.rwDatabaseConnection, folder: config.databasePath.appendingPathExtension("files"))
    let partials = config.databasePath.appendingPathExtension("downloads")
    handOver = TransferHandOver(
      system: config.systemTransfers ?? Self.platformTransfers(config), partials: PartialFolder(url: partials),
      folder: config.databasePath.appendingPathExtension("uploads"))
    downloads = ZDCDownloadManager(
      database: database.rwDatabaseConnection, users: localUsers, primaryTreeID: config.primaryTreeID, disk: disk,
      partials: partials, handOver: handOver, progress: progress, delegate: delegate, sleep: config.transferSleep)
    images = .platform(disk: disk, downloads: downloads, database: database.rwDatabaseConnection)
    sync = ZDCSyncManager(
      database: database, users: localUsers, config: config, delegate: delegate, progress: progress,
      handOver: handOver, reachability: reachability)
    handOver.whenDelivered { [downloads, sync] in await Self.useResults(downloads, sync) }
  }

  /// The system's service for apps that it suspends; nil on other platforms.
  private static func platformTransfers(_ config: ZDCConfig) -> (any SystemTransfers)? {
    #if canImport(Darwin) && !os(macOS)
      // One session per database; the system keeps it under its name between launches.
      BackgroundURLSession.forApp(name: config.stableName(home: NSHomeDirectory()))
    #else
      nil
    #endif
  }

  /// Starts the engines. Called after the framework's state has become unlocked.
  func start() {
    disk.start()
    sync.start()
    observeActivation()
    if sync.config.syncAutomatically { downloads.start(sync.hub.occasions(Self.resumesDownloads)) }
  }

  /// Whether the update means that the server is reachable again or that a pull finished.
  private static func resumesDownloads(_ update: ZDCSyncStatus) -> Bool {
    switch update {
    case .online, .pullFinished: true
    default: false
    }
  }

  /// Stops the engines before the database closes. All engines have ended when this returns.
  func stop() async {
    await downloads.stop()
    await sync.stop()
    handOver.stop()
    disk.stop()
  }
}

extension ZeroDarkCloud {
  /// Connections and transactions; nil until the database is unlocked.
  public var databaseManager: ZDCDatabaseManager? { managers?.database }

  /// Accounts on this device; nil until the database is unlocked.
  public var localUserManager: ZDCLocalUserManager? { managers?.localUsers }

  /// Other users; nil until the database is unlocked.
  public var userManager: ZDCUserManager? { managers?.users }

  /// Downloads of node content; nil until the database is unlocked.
  public var downloadManager: ZDCDownloadManager? { managers?.downloads }

  /// Content, thumbnails and avatars stored on this device; nil until the database is unlocked.
  public var diskManager: ZDCDiskManager? { managers?.disk }

  /// Thumbnails and avatars, from memory, disk and server; nil until the database is unlocked.
  public var imageManager: ZDCImageManager? { managers?.images }

  /// Returns an image manager for images of the app's own type, with a separate memory cache; nil until the database is
  /// unlocked.
  ///
  /// Keep the loader: its cache lives as long as it does.
  ///
  /// ```swift
  /// let bitmaps = zdc.imageLoader(cost: { (bitmap: Bitmap) in bitmap.byteCount }, decode: { Bitmap($0) })
  /// ```
  ///
  /// - Parameters:
  ///   - cacheCostLimit: Maximum total cost of the images in memory.
  ///   - cost: Returns the cost of one image, for example its size in bytes.
  ///   - decode: Decodes the uploaded bytes; returns nil if they are not an image. Runs off the main thread.
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
  /// Lookups of local nodes; never nil. Both `nodeManager.` and `nodeManager?.` compile, as with the other managers.
  public var nodeManager: ZDCNodeManager! { .sharedInstance }
}
