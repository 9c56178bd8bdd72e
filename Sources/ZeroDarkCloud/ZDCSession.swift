public import ZDCAccounts
public import ZDCClientStore
public import ZDCSync
public import ZDCTransfers

/// An unlocked database and its managers.
///
/// ``ZeroDarkCloud/unlockOrCreateDatabase(_:)`` returns a session. Unlike the managers of ``ZeroDarkCloud``, which are
/// nil while the database is locked, those of a session are never nil. Copies of a session are equal, so an app can
/// pass it to any part that needs a manager.
///
/// ```swift
/// let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
/// let (user, words) = try await session.localUserManager.createAccount()
/// let tree = session.tree(of: user)
/// ```
///
/// After ``close()`` the managers still exist, but transactions throw `ZDCError` with `databaseLocked`.
public struct ZDCSession: Sendable {
  /// The framework object that was unlocked.
  public let zdc: ZeroDarkCloud
  private let managers: Managers

  init(_ zdc: ZeroDarkCloud, _ managers: Managers) {
    self.zdc = zdc
    self.managers = managers
  }

  /// Connections and transactions.
  ///
  /// ```swift
  /// let count = try await session.databaseManager.uiDatabaseConnection.read { try $0.numberOfKeys(inCollection: "tasks") }
  /// ```
  public var databaseManager: ZDCDatabaseManager { managers.database }

  /// Accounts on this device.
  ///
  /// ```swift
  /// let (user, words) = try await session.localUserManager.createAccount()
  /// show(words + [user.displayName])
  /// ```
  public var localUserManager: ZDCLocalUserManager { managers.localUsers }

  /// Other users.
  ///
  /// ```swift
  /// let number = try session.userManager.safetyNumber(of: user.uuid, and: bobsUserID)
  /// show(number.groups)
  /// ```
  public var userManager: ZDCUserManager { managers.users }

  /// Push and pull.
  ///
  /// ```swift
  /// let summary = try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// if !summary.isComplete { print(summary.stillQueued) }
  /// ```
  public var syncManager: ZDCSyncManager { managers.sync }

  /// Downloads of node content.
  ///
  /// ```swift
  /// let (_, file) = try await session.downloadManager.downloadNodeData(node)
  /// importDocument(file, of: node)
  /// ```
  public var downloadManager: ZDCDownloadManager { managers.downloads }

  /// Content, thumbnails and avatars stored on this device.
  ///
  /// ```swift
  /// let isOffline = session.diskManager.hasNodeData(node.uuid)
  /// ```
  public var diskManager: ZDCDiskManager { managers.disk }

  /// Thumbnails and avatars, from memory, disk and server.
  public var imageManager: ZDCImageManager { managers.images }

  /// The progress of uploads and downloads.
  ///
  /// ```swift
  /// let fraction = session.progressManager.dataUploadProgress(forNodeID: node.uuid)?.fractionCompleted ?? 0
  /// ```
  public var progressManager: ZDCProgressManager { zdc.progressManager }

  /// Returns a handle on a local user's tree, for transactions that concern this user.
  ///
  /// Nothing is looked up. If the user is not on this device, the handle's transactions throw `ZDCError` with
  /// `localUserNotFound`.
  ///
  /// ```swift
  /// let tree = session.tree(of: user)
  /// try await tree.write { transaction, cloud in
  ///   try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["Inbox"]))
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - user: The user whose tree it is.
  ///   - treeID: The app tree ID; nil for the app's primary tree.
  public func tree(of user: ZDCLocalUser, treeID: String? = nil) -> ZDCUserTree {
    tree(ofLocalUserID: user.uuid, treeID: treeID)
  }

  /// Like ``tree(of:treeID:)``, for a user known by ``ZDCLocalUser/uuid``.
  ///
  /// An app with one account finds its user like this at launch:
  ///
  /// ```swift
  /// guard let id = try await session.localUserManager.allLocalUserIDs().first else { return }  // no account yet
  /// let tree = session.tree(ofLocalUserID: id)
  /// ```
  public func tree(ofLocalUserID localUserID: String, treeID: String? = nil) -> ZDCUserTree {
    ZDCUserTree(
      localUserID: localUserID, treeID: treeID ?? zdc.primaryTreeID, database: managers.database.rwDatabaseConnection)
  }

  /// Stops the managers and closes the database. See ``ZeroDarkCloud/close()``.
  ///
  /// ```swift
  /// try await session.close()  // before the app deletes its database, for example
  /// ```
  public func close() async throws { try await zdc.close() }
}
