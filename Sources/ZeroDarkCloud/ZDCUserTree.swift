public import ZDCClientStore
internal import ZDCSupport

/// A local user's tree, with transactions that need no look-up of the user.
///
/// Each block gets two values: the transaction, for the app's own objects, and the tree in it, for nodes. Both belong
/// to one database transaction: they commit together or not at all.
///
/// ```swift
/// let tree = session.tree(of: user)
/// try await tree.write { transaction, cloud in
///   transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
///   try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: [task.title]))
/// }
/// let notes = try await tree.read { transaction, cloud in try cloud.children(ofNodeID: folder.uuid) }
/// ```
public struct ZDCUserTree: Sendable {
  /// The ``ZDCLocalUser/uuid`` of the user.
  public let localUserID: String
  /// The app tree ID.
  public let treeID: String
  private let database: ZDCDatabaseConnection

  init(localUserID: String, treeID: String, database: ZDCDatabaseConnection) {
    self.localUserID = localUserID
    self.treeID = treeID
    self.database = database
  }

  /// Runs a write transaction and returns when its changes are on disk.
  ///
  /// Queued operations are sent after the commit. If the block throws, nothing is changed and the error is rethrown.
  /// Call it neither from another transaction's block nor from a delegate callback.
  ///
  /// The block runs on the database's queue and cannot await. Its result is returned:
  ///
  /// ```swift
  /// let node = try await tree.write { transaction, cloud in
  ///   let node = try cloud.createNode(withPath: path)
  ///   try cloud.linkNodeID(node.uuid, toKey: task.uuid, inCollection: "tasks")
  ///   return node
  /// }
  /// ```
  ///
  /// - Throws: `ZDCError` with `localUserNotFound` if the user, or their tree with that ID, is not on this device;
  ///   otherwise as `write(_:)` of ``ZDCDatabaseConnection``.
  @discardableResult
  public func write<T: Sendable>(
    _ body: @Sendable (ZDCReadWriteTransaction, ZDCCloudTransaction) throws -> T
  ) async throws -> T {
    try await database.write { try body($0, try cloud(in: $0)) }
  }

  /// Like the asynchronous form, but blocks the calling thread. Swift chooses it outside of asynchronous code.
  ///
  /// ```swift
  /// func importTasks(_ tasks: [Task]) throws {  // not async: returns when all of them are on disk
  ///   try tree.write { transaction, cloud in
  ///     for task in tasks { transaction.setObject(task, forKey: task.uuid, inCollection: "tasks") }
  ///   }
  /// }
  /// ```
  @_disfavoredOverload
  @discardableResult
  public func write<T>(_ body: (ZDCReadWriteTransaction, ZDCCloudTransaction) throws -> T) throws -> T {
    try database.write { try body($0, try cloud(in: $0)) }
  }

  /// Runs a read transaction: the block sees one consistent state of the database.
  ///
  /// It runs concurrently with a write, and does not see that write's changes:
  ///
  /// ```swift
  /// let names = try await tree.read { transaction, cloud in
  ///   try cloud.children(ofNodeID: folder.uuid).compactMap(\.name)
  /// }
  /// ```
  ///
  /// - Throws: `ZDCError` with `localUserNotFound` if the user, or their tree with that ID, is not on this device;
  ///   otherwise as `read(_:)` of ``ZDCDatabaseConnection``.
  public func read<T: Sendable>(
    _ body: @escaping @Sendable (ZDCReadTransaction, ZDCCloudReadTransaction) throws -> T
  ) async throws -> T {
    try await database.read { try body($0, try cloud(in: $0)) }
  }

  /// Like the asynchronous form, but blocks the calling thread. Swift chooses it outside of asynchronous code.
  @_disfavoredOverload
  public func read<T>(_ body: (ZDCReadTransaction, ZDCCloudReadTransaction) throws -> T) throws -> T {
    try database.read { try body($0, try cloud(in: $0)) }
  }

  private func cloud(in transaction: ZDCReadTransaction) throws(ZDCError) -> ZDCCloudReadTransaction {
    guard let cloud = transaction.cloud(forLocalUserID: localUserID, treeID: treeID) else {
      throw ZDCError(.localUserNotFound)
    }
    return cloud
  }

  private func cloud(in transaction: ZDCReadWriteTransaction) throws(ZDCError) -> ZDCCloudTransaction {
    guard let cloud = transaction.writableCloud(forLocalUserID: localUserID, treeID: treeID) else {
      throw ZDCError(.localUserNotFound)
    }
    return cloud
  }
}
