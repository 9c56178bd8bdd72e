internal import Foundation
internal import GRDB
internal import ZDCAccounts
public import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Current activity, and the nodes that wait.

extension ZDCSyncManager {
  // MARK: Pulling and pushing

  /// Returns whether a pull is running in this process, including one that finds no changes.
  public func isPullingChanges(forLocalUserID localUserID: String) -> Bool {
    known(localUserID)?.session.activity.isPulling ?? false
  }

  /// Returns whether this process is sending data.
  public func isPushingChanges(forLocalUserID localUserID: String) -> Bool {
    known(localUserID)?.session.activity.isPushing ?? false
  }

  /// Returns whether this process is pulling or sending data of the user.
  ///
  /// ```swift
  /// let isActive = session.syncManager.isPullingOrPushingChanges(forLocalUserID: user.uuid)
  /// banner.isHidden = !isActive
  /// ```
  public func isPullingOrPushingChanges(forLocalUserID localUserID: String) -> Bool {
    isPullingChanges(forLocalUserID: localUserID) || isPushingChanges(forLocalUserID: localUserID)
  }

  /// Returns whether a pull of any local user is running in this process.
  public func isPullingChangesForAnyLocalUser() -> Bool { knownIDs.contains(where: isPullingChanges) }

  /// Returns whether this process is sending data of any local user.
  public func isPushingChangesForAnyLocalUser() -> Bool { knownIDs.contains(where: isPushingChanges) }

  /// Returns whether this process is pulling or sending data of any local user.
  public func isPullingOrPushingChangesForAnyLocalUser() -> Bool {
    knownIDs.contains(where: isPullingOrPushingChanges)
  }

  private func known(_ localUserID: String) -> SyncScheduler? { engines.withLock { $0[localUserID] } }

  private var knownIDs: [String] { engines.withLock { Array($0.keys) } }

  // MARK: Aborting

  /// Aborts the running pull, if any. Data that it has fetched is kept, and the next pull continues from there.
  ///
  /// The engine may begin the next pull at any time, for example at the next event of the server.
  ///
  /// ```swift
  /// await session.syncManager.abortPull(forLocalUserID: user.uuid)
  /// ```
  public func abortPull(forLocalUserID localUserID: String) async {
    known(localUserID)?.rounds.cancel(.pull)
  }

  /// Cancels the running push and its uploads. The operations stay in the queue and are sent again at the next
  /// opportunity, which may be immediately: see ``pausePush(forLocalUserID:andAbortUploads:)``.
  ///
  /// ```swift
  /// await session.syncManager.abortOperations(forLocalUserID: user.uuid)  // they stay queued, and are sent later
  /// ```
  public func abortOperations(forLocalUserID localUserID: String) async {
    guard let engine = known(localUserID) else { return }
    await engine.cancelUploads()
    engine.rounds.cancel(.push)
  }

  // MARK: Nodes

  /// Returns the nodes with queued operations and their ancestors, up to the trunks. For a node that was deleted here,
  /// only its former ancestors are included.
  ///
  /// ```swift
  /// let syncing = try await session.syncManager.syncingNodeIDs(forLocalUserID: user.uuid)
  /// let showsArrow = syncing.contains(folder.uuid)  // also if only a node far below it waits
  /// ```
  ///
  /// - Throws: The error of the database.
  public func syncingNodeIDs(forLocalUserID localUserID: String) async throws -> Set<String> {
    try await database.roDatabaseConnection.asyncRead { transaction in
      try self.syncingNodeIDs(forLocalUserID: localUserID, transaction: transaction)
    }
  }

  /// Returns the same as ``syncingNodeIDs(forLocalUserID:)``, inside a transaction.
  public func syncingNodeIDs(
    forLocalUserID localUserID: String, transaction: ZDCReadTransaction
  ) throws -> Set<String> {
    guard let userID = UserID(text: localUserID), let user = try transaction.localUsers.user(userID) else { return [] }
    let query = """
      WITH RECURSIVE
        queued(zone, node, nodeID) AS (
          SELECT o.zone, o.node, o.nodeID FROM zdc_operation o JOIN zdc_zone z ON z.id = o.zone
          WHERE z.localUser = ? AND z.appTreeID = ?),
        up(id) AS (
          SELECT node FROM queued WHERE node IS NOT NULL
          UNION
          SELECT n.id FROM queued q JOIN zdc_leaf l ON l.zone = q.zone AND l.node = q.nodeID
          JOIN zdc_node n ON n.zone = l.zone AND n.nodeID = l.parent WHERE q.node IS NULL
          UNION
          SELECT n.parent FROM up JOIN zdc_node n ON n.id = up.id WHERE n.parent IS NOT NULL)
      SELECT n.uuid FROM up JOIN zdc_node n ON n.id = up.id
      """
    return Set(try String.fetchAll(transaction.database, sql: query, arguments: [user.id, config.primaryTreeID]))
  }

  /// Posts notifications of queue changes, by any process, until the task is cancelled. Changes by this process are
  /// known from hints; changes by other processes require a query.
  func watchQueues() async {
    let told = Locked<Set<Int64>?>([])
    let (hints, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let changes = database.context.changes
    let listener = changes.listen([]) { interests in
      let queues = interests.map { Set($0.compactMap(\.queue)) }
      guard queues?.isEmpty != true else { return }
      told.withLock { told in told = queues.flatMap { told?.union($0) } }
      continuation.yield()
    }
    defer { changes.end(listener) }
    var ends: [String: [Int64?]] = [:]
    for await _ in hints {
      let users = told.withLock { told in
        defer { told = [] }
        return told
      }
      if let users, postQueuesChanged(users) { continue }
      await postChanged(&ends)
    }
  }

  /// - Returns: False if one of the users has no engine here.
  private func postQueuesChanged(_ users: Set<Int64>) -> Bool {
    let running = engines.withLock { Array($0.values) }.filter { users.contains($0.session.localUser) }
    guard running.count == users.count else { return false }
    for engine in running { engine.session.activity.tell(.syncingNodeIDsChanged) }
    return true
  }

  private func postChanged(_ ends: inout [String: [Int64?]]) async {
    do {
      let now = try await queueEnds()
      for (user, end) in now where ends[user] != nil && ends[user] != end {
        post(ZDCSyncStatusNotificationInfo(.syncingNodeIDsChanged, localUserID: user, treeID: config.primaryTreeID))
      }
      ends = now
    } catch { database.context.logFailure(error) }
  }

  /// Returns the first and last operation of each queue. IDs are never reused, so a queue whose ends are the same has
  /// most likely not changed.
  private func queueEnds() async throws -> [String: [Int64?]] {
    try await database.roDatabaseConnection.asyncRead { [config] transaction in
      let query = """
        SELECT u.userID, (SELECT MIN(id) FROM zdc_operation WHERE zone = z.id),
          (SELECT MAX(id) FROM zdc_operation WHERE zone = z.id)
        FROM zdc_local_user u JOIN zdc_zone z ON z.localUser = u.id WHERE z.appTreeID = ? ORDER BY z.id
        """
      var ends: [String: [Int64?]] = [:]
      for row in try Row.fetchAll(transaction.database, sql: query, arguments: [config.primaryTreeID]) {
        ends[try UserID(row, 0).text, default: []] += [row[1], row[2]]
      }
      return ends
    }
  }

  // MARK: Notifications

  package func post(_ info: ZDCSyncStatusNotificationInfo) {
    NotificationCenter.default.post(
      name: .ZDCSyncStatusChangedNotification, object: self, userInfo: [kZDCSyncStatusNotificationInfo: info])
  }
}
