// long file: the whole integration of ZeroDark in one place, to be read from top to bottom.
//
//  1. Open the framework                     5. Receive changes of other devices
//  2. Accounts                               6. Download
//  3. Change lists, tasks and photos         7. Conflicts
//  4. Give the framework what it uploads     8. Read, for the screen
//
// The tree of an account in the cloud. The server sees its shape, but neither names nor content:
//
//   home:/
//     Groceries            a list: its name is the title, its content JSON, its metadata the number of tasks
//       6F1C…              a task: its name is random, its content JSON
//         img              a photo with a thumbnail
//
// Deleting a list deletes its tasks and their photos, here, in the cloud and on all other devices.

import Foundation
import Synchronization
import ZeroDarkCloud

// MARK: - 1. Open the framework

/// The app's connection to ZeroDark: it opens the database, and is the framework's delegate.
///
/// The database holds the app's own objects as well: lists and tasks are stored in the same transaction in which their
/// nodes are created, so neither can exist without the other, whenever the process dies.
public final class ZDCManager: ZeroDarkCloudDelegate {
  /// The framework keeps a strong reference to its delegate; `close()` breaks the cycle.
  private let opened = Mutex<ZeroDarkCloud?>(nil)
  private let downloads = Mutex<_Concurrency.Task<Void, Never>?>(nil)
  private let config: ZDCConfig

  /// Opens the database in `folder`, and creates it the first time.
  ///
  /// - Parameter syncsAutomatically: Whether changes are sent and received from now on without further calls. A test
  ///   or a command passes false and calls ``sync(_:)``.
  public init(server: String, folder: URL, syncsAutomatically: Bool = true) throws {
    var config = try ZDCConfig(primaryTreeID: "com.example.ZeroDarkTodo", server: server, databaseDirectory: folder)
    config.syncAutomatically = syncsAutomatically
    self.config = config
    let zdc = try ZeroDarkCloud(delegate: self, config: config)
    opened.withLock { $0 = zdc }  // before the database is unlocked: from then on the delegate may be called
    // The platform keeps the key: in the keychain, or in a file that only its owner may read.
    let keys = zdc.databaseKeyManager
    var database = ZDCDatabaseConfig(encryptionKey: try keys.isConfigured ? keys.unlock() : keys.createKey())
    database.register(List.self, inCollection: List.collection)
    database.register(Task.self, inCollection: Task.collection)
    database.register(Edit.self, inCollection: Edit.collection)
    let session = try zdc.unlockOrCreateDatabase(database)
    if syncsAutomatically { followDownloads(session) }
  }

  /// Closes the database. Changes that were not sent yet stay queued.
  public func close() async throws {
    downloads.withLock { $0?.cancel() }
    let zdc = opened.withLock { opened in
      defer { opened = nil }
      return opened
    }
    try await zdc?.close()
  }

  /// The framework's managers, which exist while the database is open.
  public var session: ZDCSession {
    get throws {
      guard let session = opened.withLock({ $0?.session }) else { throw ZDCError(.databaseLocked) }
      return session
    }
  }

  fileprivate func cloud(
    of node: ZDCNode, _ transaction: ZDCReadWriteTransaction
  ) throws -> ZDCCloudTransaction {
    let zdc = opened.withLock { $0 }
    guard let cloud = zdc?.cloudTransaction(transaction, forLocalUserID: node.localUserID) else {
      throw ZDCError(.localUserNotFound)
    }
    return cloud
  }
}

// MARK: - 2. Accounts

extension ZDCManager {
  /// The accounts of this device. They share the database, and each has its own tree.
  public func accounts() async throws -> [Account] {
    try await session.localUserManager.allLocalUserIDs().map(account)
  }

  /// Returns an account of this device.
  public func account(_ user: String) throws -> Account { Account(user: user, session: try session) }

  /// Creates an account on the server.
  ///
  /// - Returns: The account, and its 24 words. They are the account: whoever has them can read and change everything
  ///   in it, and without them it cannot be opened on another device. Show them, and let the user type some of them.
  public func createAccount() async throws -> (account: Account, words: [String]) {
    let (user, words) = try await session.localUserManager.createAccount()
    return (try account(user.uuid), words)
  }

  /// Opens an account that was created on another device.
  public func logIn(words: [String]) async throws -> Account {
    let user = try await session.localUserManager.login(words: words)
    return try account(user.uuid)
  }

  /// Removes an account and its data from this device. It stays on the server and on other devices.
  ///
  /// - Throws: `changesQueued` if changes were not sent yet.
  public func removeAccount(_ user: String) async throws {
    try await session.localUserManager.delete(user)
  }
}

/// One account of this device: its lists, and all that a user can do with them.
///
/// Each function is one transaction. It returns as soon as the change is stored on this device, with or without a
/// network; the framework sends it when it can.
public struct Account: Sendable {
  /// The user id, which others use to share with this account.
  public let user: String
  /// The framework's managers.
  public let session: ZDCSession

  private var tree: ZDCUserTree { session.tree(ofLocalUserID: user) }
}

// MARK: - 3. Change lists, tasks and photos

extension Account {
  /// Creates a list. Two lists may have one title: the second becomes "Groceries 2".
  @discardableResult
  public func createList(_ title: String) async throws -> String {
    try await tree.write { transaction, cloud in
      let path = cloud.conflictFreePath(ZDCTreesystemPath(pathComponents: [title]))
      let node = try cloud.createNode(withPath: path)
      transaction.setObject(List(created: Date()), forKey: node.uuid, inCollection: List.collection)
      // From now on, the framework finds the object of the node, and the app the node of the object.
      try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: List.collection)
      return node.uuid
    }
  }

  /// Renames a list. Its tasks stay where they are.
  public func renameList(_ listID: String, to title: String) async throws {
    try await tree.write { _, cloud in
      var node = try cloud.existingNode(listID)
      guard node.name != title, let parent = cloud.path(for: node)?.parent() else { return }
      node.name = cloud.conflictFreePath(parent.appendingComponent(title)).nodeName
      try cloud.modifyNode(node)
    }
  }

  /// Deletes a list with its tasks and their photos.
  public func deleteList(_ listID: String) async throws {
    try await tree.write { transaction, cloud in
      try cloud.delete(cloud.existingNode(listID))  // one operation deletes the branch
      try transaction.removeList(listID)
    }
  }

  /// Adds a task at the end of a list.
  public func addTask(
    _ title: String, details: String = "", priority: Priority = .normal, to listID: String
  ) async throws {
    let task = Task(
      listID: listID, created: Date(), title: title, details: details, priority: priority, rank: Rank.between(nil, nil))
    try await addTasks([task], to: listID)
  }

  /// Adds tasks at the end of a list, all in one transaction: a thousand take little longer than one.
  public func addTasks(_ tasks: [Task], to listID: String) async throws {
    try await tree.write { transaction, cloud in
      guard let path = cloud.path(forNodeID: listID) else { throw ZDCError(.nodeNotFound) }
      var last = try cloud.tasks(of: listID).last?.task.rank
      for var task in tasks {
        (task.listID, task.rank) = (listID, Rank.between(last, nil))
        task.clearChangeTracking()  // a new task has no changes that could be merged
        last = task.rank
        let node = try cloud.createNode(withPath: path.appendingComponent(UUID().uuidString))
        transaction.setObject(task, forKey: node.uuid, inCollection: Task.collection)
        try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: Task.collection)
      }
      try transaction.count(listID, cloud, uploads: true)
    }
  }

  /// Changes a task, and remembers the change so that it can be undone.
  ///
  /// The changeset says what was changed. If another device changes the same task before this one has sent its change,
  /// the two are merged property by property; see section 7.
  public func edit(_ taskID: String, _ change: @Sendable (inout Task) -> Void) async throws {
    try await tree.write { transaction, cloud in
      let before = try cloud.task(taskID)
      var task = before
      change(&task)
      guard let changeset = try task.changeset() else { return }
      try transaction.store(task, taskID, cloud, changeset: changeset)
      let edit = Edit(
        user: user, taskID: taskID, title: before.title, change: before.changes(to: task), date: Date(),
        changeset: changeset.encoded)
      try transaction.remember(edit)
    }
  }

  /// Moves a task in front of another one of its list, or to the end.
  public func moveTask(_ taskID: String, before otherID: String?) async throws {
    let rank = try await tree.read { _, cloud in
      let others = try cloud.tasks(of: cloud.task(taskID).listID).filter { $0.id != taskID }
      let index = others.firstIndex { $0.id == otherID } ?? others.endIndex
      let (lower, upper) = (others[..<index].last, others[index...].first)
      return Rank.between(lower?.task.rank, upper?.task.rank)
    }
    try await edit(taskID) { $0.rank = rank }
  }

  /// Moves a task to the end of another list. Its photo moves with it.
  public func moveTask(_ taskID: String, toList listID: String) async throws {
    try await tree.write { transaction, cloud in
      let node = try cloud.existingNode(taskID)
      var task = try cloud.task(taskID)
      guard task.listID != listID, let path = cloud.path(forNodeID: listID) else { return }
      try cloud.moveNode(node, to: path.appendingComponent(node.name ?? UUID().uuidString))
      let oldListID = task.listID
      task.listID = listID
      task.rank = Rank.between(try cloud.tasks(of: listID).last { $0.id != taskID }?.task.rank, nil)
      let changeset = try task.changeset()
      try transaction.store(task, taskID, cloud, changeset: changeset)
      try transaction.count(oldListID, cloud, uploads: true)
    }
  }

  /// Deletes a task and its photo.
  public func deleteTask(_ taskID: String) async throws {
    try await tree.write { transaction, cloud in
      let listID = try cloud.existingNode(taskID).parentID
      // The node is linked to the object, so it is deleted with it, and its photo too.
      transaction.removeObject(forKey: taskID, inCollection: Task.collection)
      if cloud.node(id: taskID) != nil { try cloud.delete(cloud.existingNode(taskID)) }  // not downloaded yet
      if let listID { try transaction.count(listID, cloud, uploads: true) }
    }
  }

  /// Attaches a photo to a task, or replaces the one that it has.
  ///
  /// The disk manager keeps the photo, sealed, until it is uploaded, and then as a cache. It is imported inside the
  /// transaction, so that there is no node without its photo; larger files should be imported before.
  public func attachPhoto(_ photo: Data, thumbnail: Data?, to taskID: String) async throws {
    try await tree.write { _, cloud in
      let node: ZDCNode
      if let present = cloud.photoNode(of: taskID) {
        node = present
      } else {
        guard let path = cloud.path(forNodeID: taskID) else { throw ZDCError(.nodeNotFound) }
        node = try cloud.createNode(withPath: path.appendingComponent("img"))
      }
      try session.diskManager.importNodeData(.untilUploaded(photo), for: node)
      try session.diskManager.importNodeThumbnail(.untilUploaded(thumbnail), for: node)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
    }
  }

  /// Takes the photo off a task.
  public func removePhoto(from taskID: String) async throws {
    try await tree.write { _, cloud in
      if let node = cloud.photoNode(of: taskID) { try cloud.delete(node) }
    }
  }
}

extension ZDCDiskImport {
  /// Without data: a placeholder that records that there is none.
  fileprivate static func untilUploaded(_ data: Data?) -> ZDCDiskImport {
    let result = data.map(ZDCDiskImport.init(cleartextData:)) ?? ZDCDiskImport()
    result.storePersistently = data != nil
    result.migrateToCacheAfterUpload = data != nil
    return result
  }
}

extension ZDCReadWriteTransaction {
  /// Stores a changed task, and queues the upload of its node.
  fileprivate func store(
    _ task: Task, _ taskID: String, _ cloud: ZDCCloudTransaction, changeset: ZDCChangeset?
  ) throws {
    setObject(task, forKey: taskID, inCollection: Task.collection)
    cloud.queueDataUpload(forNodeID: taskID, withChangeset: changeset)
    try count(task.listID, cloud, uploads: true)
  }

  /// Brings the number of tasks that a list carries up to date.
  ///
  /// Another device's number comes with its version of the list. Counting is for changes of this device.
  fileprivate func count(_ listID: String, _ cloud: ZDCCloudTransaction, uploads: Bool) throws {
    guard var list = cloud.linkedObject(forNodeID: listID) as? List else { return }
    let (children, tasks) = (try cloud.children(ofNodeID: listID).count, try cloud.tasks(of: listID))
    let isComplete = tasks.count == children  // otherwise some are not downloaded yet
    let done = isComplete ? tasks.count { $0.task.isDone } : min(list.counts.done, children)
    guard list.counts != List.Counts(tasks: children, done: done) else { return }
    list.counts = List.Counts(tasks: children, done: done)
    setObject(list, forKey: listID, inCollection: List.collection)
    if uploads { cloud.queueDataUpload(forNodeID: listID, withChangeset: nil) }
  }

  /// Removes the objects of a list whose node is gone.
  fileprivate func removeList(_ listID: String) throws {
    removeObject(forKey: listID, inCollection: List.collection)
    var keys: [String] = []
    try enumerateKeysAndObjects(Task.self, inCollection: Task.collection) { key, task, _ in
      if task.listID == listID { keys.append(key) }
    }
    removeObjects(forKeys: keys, inCollection: Task.collection)
  }

  fileprivate func remember(_ edit: Edit) throws {
    setObject(edit, forKey: "\(UUID())", inCollection: Edit.collection)
    guard try numberOfKeys(inCollection: Edit.collection) > Edit.limit else { return }
    var oldest: (key: String, date: Date)?
    try enumerateKeysAndObjects(Edit.self, inCollection: Edit.collection) { key, edit, _ in
      if edit.date < oldest?.date ?? .distantFuture { oldest = (key, edit.date) }
    }
    if let oldest { removeObject(forKey: oldest.key, inCollection: Edit.collection) }
  }
}

// MARK: - 4. Give the framework what it uploads

// When the turn of an upload comes, perhaps days later, the framework asks for the content of that moment, and seals
// it. Five edits of a task are therefore one upload.
extension ZDCManager {
  /// Returns the content of a list, a task or a photo.
  public func data(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData {
    switch try object(of: node, transaction) {
    case let list as List: return ZDCData(data: try JSONEncoder().encode(ListCloudJSON(created: list.created)))
    case let task as Task: return ZDCData(data: try JSONEncoder().encode(TaskCloudJSON(task)))
    default:
      guard let photo = try session.diskManager.nodeData(node)?.cryptoFile else { throw ZDCError(.noContent) }
      return ZDCData(cryptoFile: photo)
    }
  }

  /// A small section of the content, which other devices can fetch without the rest.
  public func metadata(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? {
    guard let list = try object(of: node, transaction) as? List else { return nil }
    return ZDCData(data: try JSONEncoder().encode(list.counts))
  }

  /// Another such section.
  public func thumbnail(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? {
    guard path.pathComponents.count == 3 else { return nil }
    return try session.diskManager.nodeThumbnail(node)?.cryptoFile.map(ZDCData.init(cryptoFile:))
  }

  /// An app that shows "saved" would note it here.
  public func didPushNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {}

  private func object(of node: ZDCNode, _ transaction: ZDCReadTransaction) throws -> Any? {
    let zdc = opened.withLock { $0 }
    return zdc?.cloudTransaction(transaction, forLocalUserID: node.localUserID)?.linkedObject(forNodeID: node.uuid)
  }
}

// MARK: - 5. Receive changes of other devices

// The framework has verified each change before it calls one of these functions, in the transaction that applies it.
// It knows the tree, and no content: what to download is the app's decision.
extension ZDCManager {
  /// Another device created a list, a task or a photo.
  public func didDiscoverNewNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    let cloud = try cloud(of: node, transaction)
    switch path.pathComponents.count {
    case 1:
      // The title is known already. The rest follows with the download.
      transaction.setObject(List(created: Date()), forKey: node.uuid, inCollection: List.collection)
      try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: List.collection)
      cloud.markNodeAsNeedsDownload(node.uuid, components: .all)
    case 2: cloud.markNodeAsNeedsDownload(node.uuid, components: .data)
    default: break  // a photo is downloaded when the user looks at it
    }
  }

  /// Another device changed a list, a task or a photo.
  public func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    guard change == .data else { return }
    switch path.pathComponents.count {
    case 1, 2: try cloud(of: node, transaction).markNodeAsNeedsDownload(node.uuid, components: .all)
    default: try forgetPhoto(node)
    }
  }

  /// A renamed list needs nothing: its title is its node's name.
  public func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    let cloud = try cloud(of: node, transaction)
    guard var task = cloud.linkedObject(forNodeID: node.uuid) as? Task, let listID = node.parentID else { return }
    task.listID = listID
    transaction.setObject(task, forKey: node.uuid, inCollection: Task.collection)
  }

  /// Called once for a branch. The framework deletes files of the disk manager with their nodes.
  public func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    switch path.pathComponents.count {
    case 1: try transaction.removeList(node.uuid)
    case 2:
      transaction.removeObject(forKey: node.uuid, inCollection: Task.collection)
      let cloud = try cloud(of: node, transaction)
      if let listID = node.parentID, cloud.hasPendingDataUploads(forNodeID: listID) {
        try transaction.count(listID, cloud, uploads: false)  // the waiting upload takes the new number
      }
    default: break
    }
  }

  /// Another device deleted what this one has changed. The words of a user are worth more than a deletion: tasks and
  /// photos with changes are kept, with the list around them. A list of which only the count changed is not.
  public func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    let cloud = try cloud(of: node, transaction)
    let edited = dirtyAncestors.filter { cloud.linkedObject(forNodeID: $0) as? List == nil }
    if edited.isEmpty {
      try cloud.delete(node)
      return try transaction.removeList(node.uuid)
    }
    for nodeID in Set(dirtyAncestors + [node.uuid]) { cloud.queueDataUpload(forNodeID: nodeID, withChangeset: nil) }
  }

  private func forgetPhoto(_ node: ZDCNode) throws {
    try session.diskManager.deleteNodeData(node.uuid)
    try session.diskManager.deleteNodeThumbnail(node.uuid)
  }
}

// MARK: - 6. Download

extension ZDCManager {
  /// Downloads whatever is marked, now and later, for all accounts that this device has or gets.
  private func followDownloads(_ session: ZDCSession) {
    let users = session.databaseManager.uiDatabaseConnection.values { transaction in
      session.localUserManager.allLocalUserIDs(transaction)
    }
    let task = _Concurrency.Task { [weak self] in
      do {
        try await withThrowingDiscardingTaskGroup { group in
          var followed: Set<String> = []
          for try await present in users {
            for user in Set(present).subtracting(followed) {
              group.addTask { await self?.followDownloads(of: user, session) }
            }
            followed = Set(present)
          }
        }
      } catch { self?.config.logger.error("downloads ended: \(error)") }
    }
    downloads.withLock { $0 = task }
  }

  /// It waits while there is no network, and continues with the marks that are left when there is one again, also after
  /// a relaunch. It ends when the account is removed.
  private func followDownloads(of user: String, _ session: ZDCSession) async {
    do {
      for try await download in session.downloadManager.downloadMarkedContents(forLocalUserID: user) {
        await receive(download)
      }
    } catch { config.logger.error("downloads ended: \(error)") }
  }

  /// Sends and receives everything, and returns when there is nothing left to do.
  @discardableResult
  public func sync(_ user: String) async throws -> ZDCSyncSummary {
    while true {
      let summary = try await session.syncManager.syncUntilIdle(localUserID: user)
      if try await downloadMarked(user) == 0 { return summary }
    }
  }

  /// Returns how many contents arrived.
  private func downloadMarked(_ user: String) async throws -> Int {
    let nodes = try await session.tree(ofLocalUserID: user).read { _, cloud in
      cloud.nodeIDsMarkedAsNeedsDownload(components: .data).compactMap(cloud.node(id:))
    }
    var received = 0
    for try await download in try session.downloadManager.downloadContents(of: nodes) {
      if await receive(download) { received += 1 }
    }
    return received
  }

  /// Stores a downloaded content and removes its mark, in one transaction.
  ///
  /// One unreadable content does not stop the others: its mark stays, and it comes again.
  @discardableResult
  private func receive(_ download: ZDCContentDownload) async -> Bool {
    let node = download.node
    do {
      let (data, metadata) = try cleartext(download.content.get())
      try await session.tree(ofLocalUserID: node.localUserID).write { transaction, cloud in
        guard cloud.node(id: node.uuid) != nil else { return }  // deleted in the meantime
        try store(data, metadata, of: node, transaction, cloud)
        cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .all, ifETagMatches: node.eTag_data)
      }
      return true
    } catch {
      config.logger.warning("node \(node.cloudID) was not received: \(error)")
      return false
    }
  }

  private func cleartext(_ content: ZDCNodeContent) throws -> (data: Data, metadata: Data) {
    switch content {
    case .memory(let data, let metadata, _): return (data, metadata)
    case .file(let file):
      defer { try? session.diskManager.deleteFileIfUnmanaged(file.fileURL) }
      return (
        try ZDCFileConversion.decryptCryptoFile(intoMemory: file), try ZDCFileConversion.decryptMetadata(of: file)
      )
    }
  }

  private func store(
    _ data: Data, _ metadata: Data, of node: ZDCNode, _ transaction: ZDCReadWriteTransaction,
    _ cloud: ZDCCloudTransaction
  ) throws {
    if cloud.linkedObject(forNodeID: node.uuid) is List {
      let json = try JSONDecoder().decode(ListCloudJSON.self, from: data)
      let counts = try JSONDecoder().decode(List.Counts.self, from: metadata)
      transaction.setObject(
        List(created: json.created, counts: counts), forKey: node.uuid, inCollection: List.collection)
      try countAfterConflict(node.uuid, transaction, cloud)
    } else {
      let json = try JSONDecoder().decode(TaskCloudJSON.self, from: data)
      let task = try merged(json.task(inList: node.parentID ?? ""), of: node, cloud)
      transaction.setObject(task, forKey: node.uuid, inCollection: Task.collection)
      try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: Task.collection)
      try countAfterConflict(task.listID, transaction, cloud)
    }
  }
}

// MARK: - 7. Conflicts

// Two devices changed the same content before they saw each other's change. The framework holds the upload and asks
// the app. Conflicts of names and places it resolves alone, and writes them into the merge journal.
extension ZDCManager {
  /// Chooses an outcome: this is the app's policy for each kind of node.
  public func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    guard conflict == .data else { return }
    let cloud = try cloud(of: node, transaction)
    switch path.pathComponents.count {
    case 1:
      // List: the cloud wins. Its number of tasks does not include those of this device.
      cloud.skipDataUploads(forNodeID: node.uuid)
      cloud.setTag(true, forNodeID: node.uuid, withIdentifier: "count")
      cloud.markNodeAsNeedsDownload(node.uuid, components: .all)
    case 2:
      // Task: download the other version, then merge.
      cloud.markNodeAsNeedsDownload(node.uuid, components: .all)
    default:
      // Photo: the cloud wins.
      cloud.skipDataUploads(forNodeID: node.uuid)
      try forgetPhoto(node)
    }
  }

  private func countAfterConflict(
    _ listID: String, _ transaction: ZDCReadWriteTransaction, _ cloud: ZDCCloudTransaction
  ) throws {
    guard cloud.tag(forNodeID: listID, withIdentifier: "count") != nil,
      try cloud.children(ofNodeID: listID).allSatisfy({ cloud.isNodeLinked($0.uuid) })
    else { return }
    cloud.removeTag(forNodeID: listID, withIdentifier: "count")
    try transaction.count(listID, cloud, uploads: true)
  }

  /// Merges the cloud's version with the changes that wait here. Where both changed one property, the cloud's value
  /// wins; the report has the one that lost, and the merge journal keeps it.
  private func merged(_ theirs: Task, of node: ZDCNode, _ cloud: ZDCCloudTransaction) throws -> Task {
    guard let eTag = node.eTag_data, cloud.hasPendingDataUploads(forNodeID: node.uuid),
      var mine = cloud.linkedObject(forNodeID: node.uuid) as? Task
    else { return theirs }
    let report = try mine.mergeReporting(
      cloudVersion: theirs, pendingChangesets: cloud.pendingChangesets(forNodeID: node.uuid))
    cloud.didMergeData(withETag: eTag, forNodeID: node.uuid, report: report)
    return mine
  }
}

extension Account {
  /// Undoes an edit or the outcome of a conflict. An edit that was undone is made again.
  public func undo(_ activityID: String) async throws {
    try await tree.write { transaction, cloud in
      if var edit = transaction.object(forKey: activityID, inCollection: Edit.collection) as? Edit {
        let changeset = ZDCChangeset(encoded: edit.changeset)
        edit.changeset = try transaction.undo(changeset, in: edit.taskID, cloud).encoded
        edit.isUndone.toggle()
        transaction.setObject(edit, forKey: activityID, inCollection: Edit.collection)
      } else if let id = UUID(uuidString: activityID), let entry = cloud.mergeJournalEntry(id: id) {
        let undo = try cloud.undo(entry)
        if let changeset = undo.changeset { _ = try transaction.undo(changeset, in: undo.nodeID, cloud) }
      } else {
        throw ZDCError(.nodeNotFound)
      }
    }
  }

  /// Removes the outcomes of conflicts of a task from the activity.
  public func dismissMerges(of taskID: String) async throws {
    try await tree.write { _, cloud in cloud.clearMergeJournal(forNodeID: taskID) }
  }
}

extension ZDCReadWriteTransaction {
  fileprivate func undo(
    _ changeset: ZDCChangeset, in taskID: String, _ cloud: ZDCCloudTransaction
  ) throws -> ZDCChangeset {
    var task = try cloud.task(taskID)
    let redo = try task.undo(changeset)
    try store(task, taskID, cloud, changeset: redo)
    return redo
  }
}

// MARK: - 8. Read, for the screen

extension Account {
  /// What the screen of a list shows now.
  public func screen(list listID: String? = nil) async throws -> Screen {
    try await tree.read { transaction, cloud in try screen(list: listID, transaction, cloud) }
  }

  /// The same for a caller that cannot wait. Reading does not wait for writers.
  public func screenNow(list listID: String? = nil) throws -> Screen {
    try tree.read { transaction, cloud in try screen(list: listID, transaction, cloud) }
  }

  /// The same now, and again after each commit that changes it, of this device or another one.
  public func screens(list listID: String? = nil) -> ZDCDatabaseValues<Screen> {
    let zdc = session.zdc
    return session.databaseManager.uiDatabaseConnection.values { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else { return Screen() }
      return try screen(list: listID, transaction, cloud)
    }
  }

  private func screen(
    list listID: String?, _ transaction: ZDCReadTransaction, _ cloud: ZDCCloudReadTransaction
  ) throws -> Screen {
    let waiting = try session.syncManager.syncingNodeIDs(forLocalUserID: user, transaction: transaction)
    // An upload that a lost network interrupted keeps its progress.
    let isPushing = session.syncManager.isPushingChanges(forLocalUserID: user)
    let sending = isPushing ? session.progressManager.allUploadingNodeIDs(user) : []
    let marked = Set(cloud.nodeIDsMarkedAsNeedsDownload(components: .data))
    let journal = cloud.mergeJournal(limit: 200).filter(\.isShown)
    let lost = Set(journal.filter(\.isUnseenLoss).map(\.nodeID))
    let badges = { (nodeID: String) in
      var badges: Set<Badge> = sending.contains(nodeID) ? [.syncing] : waiting.contains(nodeID) ? [.pending] : []
      if lost.contains(nodeID) { badges.insert(.merged) }
      if marked.contains(nodeID) { badges.insert(.needsDownload) }
      return badges
    }
    return Screen(
      lists: try cloud.lists(badges), tasks: try listID.map { try cloud.taskItems(of: $0, badges) } ?? [],
      activity: try activity(journal, transaction, cloud))
  }

  private func activity(
    _ journal: [ZDCMergeJournalEntry], _ transaction: ZDCReadTransaction, _ cloud: ZDCCloudReadTransaction
  ) throws -> [Activity] {
    var result = journal.map { $0.activity(cloud) }
    try transaction.enumerateKeysAndObjects(Edit.self, inCollection: Edit.collection) { key, edit, _ in
      guard edit.user == user else { return }
      let exists = cloud.node(id: edit.taskID) != nil
      result.append(
        Activity(
          id: key, taskID: exists ? edit.taskID : nil, title: edit.title, change: edit.change, date: edit.date,
          canUndo: exists, isUndone: edit.isUndone))
    }
    return result.sorted { $0.date > $1.date }
  }

  /// The photo of a task: from this device, or else from the cloud.
  public func photo(of taskID: String) async throws -> Data? {
    guard let node = try await photoNode(of: taskID) else { return nil }
    if let file = session.diskManager.nodeData(node)?.cryptoFile {
      return try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
    }
    let options = ZDCDownloadOptions()
    options.cacheToDiskManager = true
    let (_, file) = try await session.downloadManager.downloadNodeData(node, options: options)
    return try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
  }

  /// How far the download of a task's photo is, or nil while there is none.
  public func photoProgress(of taskID: String) async throws -> Double? {
    guard let node = try await photoNode(of: taskID) else { return nil }
    return session.progressManager.dataDownloadProgress(forNodeID: node.uuid)?.fractionCompleted
  }

  /// The thumbnail of a task's photo, which is fetched without the photo.
  public func thumbnail(of taskID: String) async throws -> Data? {
    guard let node = try await photoNode(of: taskID) else { return nil }
    if let stored = session.diskManager.nodeThumbnail(node) {
      return try stored.cryptoFile.map { try ZDCFileConversion.decryptCryptoFile(intoMemory: $0) }
    }
    let options = ZDCDownloadOptions()
    options.cacheToDiskManager = true
    return try await session.downloadManager.downloadNodeMeta(node, components: .thumbnail, options: options).thumbnail
  }

  /// Why a task, or its photo, is not in the cloud yet.
  public func explain(_ taskID: String) async throws -> [ZDCOperationExplanation] {
    try await tree.read { _, cloud in
      let nodes = [taskID, cloud.photoNode(of: taskID)?.uuid].compactMap(\.self)
      return nodes.flatMap { cloud.explain(nodeID: $0)?.operations ?? [] }
    }
  }

  /// Fetches what the server stores of a list or a task.
  public func sealed(_ nodeID: String) async throws -> SealedNode {
    let (node, parent, title) = try await tree.read { _, cloud in
      let node = try cloud.existingNode(nodeID)
      let title = (cloud.linkedObject(forNodeID: nodeID) as? Task)?.title ?? node.name ?? ""
      return (node, cloud.parentNode(node), title)
    }
    let (_, file) = try await session.downloadManager.downloadNodeData(node)
    defer { session.diskManager.deleteFileIfUnmanaged(file.fileURL) }
    let bytes = try Data(contentsOf: file.fileURL, options: .mappedIfSafe)
    return SealedNode(
      title: title, cloudID: node.cloudID, parentCloudID: parent?.cloudID ?? "", bytes: bytes.count,
      beginning: Data(bytes.prefix(256)))
  }

  private func photoNode(of taskID: String) async throws -> ZDCNode? {
    try await tree.read { _, cloud in cloud.photoNode(of: taskID) }
  }
}

extension ZDCCloudReadTransaction {
  fileprivate func existingNode(_ nodeID: String) throws -> ZDCNode {
    guard let node = node(id: nodeID) else { throw ZDCError(.nodeNotFound) }
    return node
  }

  fileprivate func task(_ taskID: String) throws -> Task {
    guard let task = linkedObject(forNodeID: taskID) as? Task else { throw ZDCError(.nodeNotFound) }
    return task
  }

  fileprivate func photoNode(of taskID: String) -> ZDCNode? { node(name: "img", parentID: taskID) }

  /// The downloaded tasks of a list in their order.
  fileprivate func tasks(of listID: String) throws -> [(id: String, task: Task)] {
    try orderedTasks(of: listID).compactMap { node, task in task.map { (node.uuid, $0) } }
  }

  /// The tasks in their order, then those that are not downloaded yet.
  ///
  /// All devices have the same order: where two tasks have one rank, the names of their nodes decide.
  private func orderedTasks(of listID: String) throws -> [(node: ZDCNode, task: Task?)] {
    try children(ofNodeID: listID)
      .map { node in (node: node, task: linkedObject(forNodeID: node.uuid) as? Task) }
      .sorted { ($0.task?.rank ?? "~", $0.node.name ?? "") < ($1.task?.rank ?? "~", $1.node.name ?? "") }
  }

  fileprivate func lists(_ badges: (String) -> Set<Badge>) throws -> [ListItem] {
    guard let home = trunkNode(.home) else { return [] }
    let items = try children(ofNodeID: home.uuid).compactMap { node -> ListItem? in
      guard let list = linkedObject(forNodeID: node.uuid) as? List else { return nil }
      return ListItem(
        id: node.uuid, title: node.name ?? "", created: list.created, counts: list.counts, badges: badges(node.uuid))
    }
    return items.sorted { $0.title.localizedStandardCompare($1.title) == .orderedAscending }
  }

  fileprivate func taskItems(of listID: String, _ badges: (String) -> Set<Badge>) throws -> [TaskItem] {
    try orderedTasks(of: listID).map { node, task in
      let photo = hasChildren(node.uuid) ? photoNode(of: node.uuid) : nil
      let ofPhoto = photo.map { badges($0.uuid).intersection([.merged]) } ?? []
      return TaskItem(
        id: node.uuid, task: task, photo: photo.map { $0.eTag_data ?? "new" },
        badges: badges(node.uuid).union(ofPhoto))
    }
  }
}

extension Task {
  /// What changed, in words.
  fileprivate func changes(to new: Task) -> String {
    var words: [String] = []
    if title != new.title { words.append("title") }
    if details != new.details { words.append("details") }
    if priority != new.priority { words.append("priority") }
    if rank != new.rank { words.append("place") }
    if isDone != new.isDone { return new.isDone ? "completed" : "opened again" }
    return "changed " + words.joined(separator: ", ")
  }
}

extension ZDCMergeJournalEntry {
  /// For a list, "the cloud won" is only about its number of tasks.
  fileprivate var isShown: Bool { kind != .cloudWon || result.path?.pathComponents.count != 1 }

  /// Whether a change of this device was replaced, and the user has not reacted yet.
  fileprivate var isUnseenLoss: Bool {
    undoneAt == nil && (kind == .cloudWon || report?.conflicts.isEmpty == false)
  }

  fileprivate func activity(_ cloud: ZDCCloudReadTransaction) -> Activity {
    let task = cloud.linkedObject(forNodeID: nodeID) as? Task
    let name = result.path?.nodeName ?? mine.path?.nodeName ?? ""
    let photo = name == "img" ? "Photo" : nil
    return Activity(
      id: id.uuidString, taskID: task == nil ? nil : nodeID, title: task?.title ?? photo ?? name, change: outcome,
      date: date, canUndo: undoneAt == nil && canBeUndone, isUndone: undoneAt != nil)
  }

  private var canBeUndone: Bool {
    switch kind {
    case .merged: report?.lost != nil
    case .cloudWon: content != nil
    case .deletedHere, .accessLost: false
    case .renamed, .moveDropped, .deletedInCloud: true
    }
  }

  private var outcome: String {
    switch kind {
    case .merged where report?.conflicts.isEmpty == false: "merged; another device's change replaced yours"
    case .merged: "merged with another device's change"
    case .cloudWon: "replaced by another device's version"
    case .renamed: "renamed, because another list has this title"
    case .moveDropped: "moved by another device as well, which was first"
    case .deletedInCloud: "deleted by another device, and kept because you changed it"
    case .deletedHere: "deleted here while another device changed it"
    case .accessLost: "not sent: you no longer have access"
    }
  }
}
