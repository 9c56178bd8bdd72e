// long file: the complete ZeroDark integration, in reading order.
//
//  1. Open the framework                     5. Receive changes of other devices
//  2. Accounts                               6. Download
//  3. Change lists, tasks and photos         7. Conflicts
//  4. Give the framework what it uploads     8. Read for display
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
    do {
      let session = try unlock(zdc)
      if syncsAutomatically { followDownloads(session) }
    } catch {
      opened.withLock { $0 = nil }  // breaks the cycle of references
      throw error
    }
  }

  private func unlock(_ zdc: ZeroDarkCloud) throws -> ZDCSession {
    // The platform keeps the key: in the keychain, or in a file that only its owner may read.
    let keys = zdc.databaseKeyManager
    var database = ZDCDatabaseConfig(encryptionKey: try keys.isConfigured ? keys.unlock() : keys.createKey())
    database.register(List.self, inCollection: List.collection)
    database.register(Task.self, inCollection: Task.collection)
    database.register(Edit.self, inCollection: Edit.collection)
    return try zdc.unlockOrCreateDatabase(database)
  }

  /// Closes the database. Changes that were not sent yet stay queued.
  public func close() async throws {
    downloads.withLock { $0?.cancel() }
    try await opened.withLock { $0 }?.close()  // until then, the delegate may be called
    opened.withLock { $0 = nil }
  }

  /// The framework's managers, which exist while the database is open.
  public var session: ZDCSession {
    get throws {
      guard let session = opened.withLock({ $0?.session }) else { throw ZDCError(.databaseLocked) }
      return session
    }
  }

  private var zdc: ZeroDarkCloud {
    get throws {
      guard let zdc = opened.withLock({ $0 }) else { throw ZDCError(.databaseLocked) }
      return zdc
    }
  }

  fileprivate func cloud(
    of node: ZDCNode, _ transaction: ZDCReadWriteTransaction
  ) throws -> ZDCCloudTransaction {
    guard let cloud = try zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID) else {
      throw ZDCError(.localUserNotFound)
    }
    return cloud
  }

  fileprivate func object(of node: ZDCNode, _ transaction: ZDCReadTransaction) throws -> Any? {
    guard let cloud = try zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID) else {
      throw ZDCError(.localUserNotFound)
    }
    return cloud.linkedObject(forNodeID: node.uuid)
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
  /// - Returns: The account and its 24 words. Anyone who has the words can read and change everything in the account.
  ///   Another device needs them to log in. Show them, and ask the user to confirm some of them.
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
  /// The framework deletes its own data: nodes, queued changes, files. The app deletes its objects.
  ///
  /// - Throws: `changesQueued` if changes were not sent yet.
  public func removeAccount(_ user: String) async throws {
    let session = try session
    try await session.localUserManager.delete(user)
    try await session.databaseManager.rwDatabaseConnection.write { transaction in
      let others = session.localUserManager.allLocalUserIDs(transaction)
      let trees = others.compactMap { session.zdc.cloudTransaction(transaction, forLocalUserID: $0) }
      let hasNoNode = { (key: String) in trees.allSatisfy { $0.node(id: key) == nil } }
      try transaction.removeObjects(List.self, inCollection: List.collection) { key, _ in hasNoNode(key) }
      try transaction.removeObjects(Task.self, inCollection: Task.collection) { key, _ in hasNoNode(key) }
      try transaction.removeObjects(Edit.self, inCollection: Edit.collection) { _, edit in !others.contains(edit.user) }
    }
  }
}

/// An account on this device, with its lists.
///
/// Each function is one transaction. It returns as soon as the change is stored on this device, with or without a
/// network; the framework sends it when it can.
public struct Account: Sendable {
  /// The user id, which others use to share with this account.
  public let user: String
  /// The framework's managers.
  public let session: ZDCSession

  private var tree: ZDCUserTree { session.tree(ofLocalUserID: user) }

  /// The account's 24 words, which another device needs to log in.
  public func words() async throws -> [String] { try await session.localUserManager.accessWords(for: user) }
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

  /// Changes a task and records the edit for undo.
  ///
  /// The changeset lists the changed properties. If another device changes the same task before this one has sent its
  /// change, the two are merged property by property; see section 7.
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
      try transaction.record(edit)
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
  ///
  /// - Throws: `nodeNotFound` if the task or the list does not exist.
  public func moveTask(_ taskID: String, toList listID: String) async throws {
    try await tree.write { transaction, cloud in
      let node = try cloud.existingNode(taskID)
      var task = try cloud.task(taskID)
      guard cloud.linkedObject(forNodeID: listID) is List, let path = cloud.path(forNodeID: listID) else {
        throw ZDCError(.nodeNotFound)
      }
      guard task.listID != listID else { return }
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
      if let node = cloud.node(id: taskID) { try cloud.delete(node) }  // not downloaded yet: there was no object
      if let listID { try transaction.count(listID, cloud, uploads: true) }
    }
  }

  /// Attaches a photo to a task, or replaces the one that it has.
  ///
  /// The disk manager stores the photo, sealed, until it is uploaded; after that, as a cache. It is imported inside the
  /// transaction, so that there is no node without its photo. Import larger files before the transaction.
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
      cloud.setTag(UUID().uuidString, forNodeID: node.uuid, withIdentifier: ZDCNode.photoVersion)
      cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
    }
  }

  /// Removes the photo of a task.
  public func removePhoto(from taskID: String) async throws {
    try await tree.write { _, cloud in
      if let node = cloud.photoNode(of: taskID) { try cloud.delete(node) }
    }
  }
}

extension ZDCNode {
  /// The tag with the version of a photo that was attached on this device. Its eTag is not known before the upload.
  fileprivate static let photoVersion = "photoVersion"
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

  /// Updates the number of tasks of a list after a change of this device.
  ///
  /// After a change of another device, the number arrives with its version of the list.
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
    try removeObjects(Task.self, inCollection: Task.collection) { _, task in task.listID == listID }
  }

  fileprivate func removeObjects<T: ZDCStorable>(
    _ type: T.Type, inCollection collection: String, where isRemoved: (_ key: String, _ object: T) -> Bool
  ) throws {
    var keys: [String] = []
    try enumerateKeysAndObjects(type, inCollection: collection) { key, object, _ in
      if isRemoved(key, object) { keys.append(key) }
    }
    removeObjects(forKeys: keys, inCollection: collection)
  }

  fileprivate func record(_ edit: Edit) throws {
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

// The framework asks for the content when it starts an upload, which may be days after the edit, and seals it. Five
// edits of a task therefore need one upload.
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

  /// Returns a small section of the content, which other devices can fetch without the rest.
  public func metadata(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? {
    guard let list = try object(of: node, transaction) as? List else { return nil }
    return ZDCData(data: try JSONEncoder().encode(list.counts))
  }

  /// Returns the thumbnail of a photo, a section that other devices can fetch without the photo.
  public func thumbnail(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? {
    guard path.pathComponents.count == 3 else { return nil }
    return try session.diskManager.nodeThumbnail(node)?.cryptoFile.map(ZDCData.init(cryptoFile:))
  }

  /// The server has the content. An app that shows "saved" would record it here.
  public func didPushNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {}
}

// MARK: - 5. Receive changes of other devices

// The framework has verified each change before it calls one of these functions, in the transaction that applies it.
// It knows the tree, but no content: the app decides what to download.
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
    default: try forgetPhoto(node, cloud(of: node, transaction))
    }
  }

  /// Another device renamed a list or moved a task. A renamed list needs no work: its title is its node's name.
  public func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    let cloud = try cloud(of: node, transaction)
    guard var task = cloud.linkedObject(forNodeID: node.uuid) as? Task, let listID = node.parentID else { return }
    task.listID = listID
    transaction.setObject(task, forKey: node.uuid, inCollection: Task.collection)
  }

  /// Another device deleted a node with everything below it. The framework deletes files of the disk manager.
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

  /// Another device deleted a node that has queued changes here. The app keeps edited tasks and photos, and their list.
  /// It does not keep a list in which only the counts changed.
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

  private func forgetPhoto(_ node: ZDCNode, _ cloud: ZDCCloudTransaction) throws {
    cloud.removeTag(forNodeID: node.uuid, withIdentifier: ZDCNode.photoVersion)
    try session.diskManager.deleteNodeData(node.uuid)
    try session.diskManager.deleteNodeThumbnail(node.uuid)
  }
}

// MARK: - 6. Download

extension ZDCManager {
  /// Downloads marked nodes, now and later, for all present and future accounts of this device.
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

  /// Without a network it waits, and then continues with the remaining marks, also after a relaunch. It ends when the
  /// account is removed.
  private func followDownloads(of user: String, _ session: ZDCSession) async {
    do {
      for try await download in session.downloadManager.downloadMarkedContents(forLocalUserID: user) {
        await receive(download)
      }
    } catch { config.logger.error("downloads ended: \(error)") }
  }

  /// Sends and receives everything, and returns when there is nothing left to do.
  ///
  /// - Returns: The number of lists and tasks whose content could not be read. They stay marked for the next sync.
  @discardableResult
  public func sync(_ user: String) async throws -> Int {
    while true {
      try await session.syncManager.syncUntilIdle(localUserID: user)
      let (received, failed) = try await downloadMarked(user)
      if received == 0 { return failed }
    }
  }

  private func downloadMarked(_ user: String) async throws -> (received: Int, failed: Int) {
    let nodes = try await session.tree(ofLocalUserID: user).read { _, cloud in
      cloud.nodeIDsMarkedAsNeedsDownload(components: .data).compactMap(cloud.node(id:))
    }
    var (received, failed) = (0, 0)
    for try await download in try session.downloadManager.downloadContents(of: nodes) {
      if await receive(download) { received += 1 } else { failed += 1 }
    }
    return (received, failed)
  }

  /// Stores a downloaded content and removes its mark, in one transaction.
  ///
  /// An unreadable content does not stop the others. Its mark stays, so it is downloaded again.
  ///
  /// - Returns: Whether the content was readable.
  @discardableResult
  private func receive(_ download: ZDCContentDownload) async -> Bool {
    let node = download.node
    do {
      let (data, metadata) = try cleartext(download.content.get())
      try await session.tree(ofLocalUserID: node.localUserID).write { transaction, cloud in
        // `download.node` dates from the request. In the meantime, the node may have been moved or deleted.
        guard let listID = cloud.node(id: node.uuid)?.parentID else { return }
        try store(data, metadata, of: node, in: listID, transaction, cloud)
        cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .all, ifETagMatches: node.eTag_data)
      }
      return true
    } catch {
      config.logger.warning("node \(node.cloudID) was not received: \(error)")
      return false
    }
  }

  private func cleartext(_ content: ZDCNodeContent) throws -> (data: Data, metadata: Data) {
    let session = try session
    switch content {
    case .memory(let data, let metadata, _): return (data, metadata)
    case .file(let file):
      defer { session.diskManager.deleteFileIfUnmanaged(file.fileURL) }
      return (
        try ZDCFileConversion.decryptCryptoFile(intoMemory: file), try ZDCFileConversion.decryptMetadata(of: file)
      )
    }
  }

  private func store(
    _ data: Data, _ metadata: Data, of node: ZDCNode, in parentID: String,
    _ transaction: ZDCReadWriteTransaction, _ cloud: ZDCCloudTransaction
  ) throws {
    if cloud.linkedObject(forNodeID: node.uuid) is List {
      let json = try JSONDecoder().decode(ListCloudJSON.self, from: data)
      let counts = try JSONDecoder().decode(List.Counts.self, from: metadata)
      transaction.setObject(
        List(created: json.created, counts: counts), forKey: node.uuid, inCollection: List.collection)
      try countAfterConflict(node.uuid, transaction, cloud)
    } else {
      let json = try JSONDecoder().decode(TaskCloudJSON.self, from: data)
      let task = try merged(json.task(inList: parentID), of: node, cloud)
      transaction.setObject(task, forKey: node.uuid, inCollection: Task.collection)
      try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: Task.collection)
      try countAfterConflict(task.listID, transaction, cloud)
    }
  }
}

// MARK: - 7. Conflicts

// Two devices changed the same content before they saw each other's change. The framework holds the upload and asks
// the app. It resolves conflicts of names and places on its own, and records them in the merge journal.
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
      try forgetPhoto(node, cloud)
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

  /// Merges the cloud's version with the queued changes. If both changed the same property, the cloud's value wins. The
  /// report contains the other value, and the merge journal keeps it.
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
  /// Undoes an edit or the outcome of a conflict. Redoes an edit that was undone.
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

  /// Removes the outcomes of conflicts of a task and its photo from the activity.
  public func dismissMerges(of taskID: String) async throws {
    try await tree.write { _, cloud in
      cloud.clearMergeJournal(forNodeID: taskID)
      if let photo = cloud.photoNode(of: taskID) { cloud.clearMergeJournal(forNodeID: photo.uuid) }
    }
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

// MARK: - 8. Read for display

extension Account {
  /// Reads a snapshot of the account, with the tasks of one list.
  public func screen(list listID: String? = nil) async throws -> Screen {
    try await tree.read { transaction, cloud in try screen(list: listID, transaction, cloud) }
  }

  /// Reads a snapshot without suspension. Reading does not wait for writers.
  public func screenNow(list listID: String? = nil) throws -> Screen {
    try tree.read { transaction, cloud in try screen(list: listID, transaction, cloud) }
  }

  /// Returns the current snapshot, and a new one after each commit that changes it.
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
          id: key, kind: .edit, taskID: exists ? edit.taskID : nil, title: edit.title, change: edit.change,
          date: edit.date, canUndo: exists, isUndone: edit.isUndone))
    }
    return result.sorted { $0.date > $1.date }
  }

  /// Maximum size of a photo and of a thumbnail, in bytes. Larger ones of other devices are not decrypted.
  public static let maxPhotoBytes = 25_000_000

  /// Returns the photo of a task: from this device, or else from the cloud. Nil if the task has none.
  ///
  /// - Throws: `sectionTooLarge` above ``maxPhotoBytes``.
  public func photo(of taskID: String) async throws -> Data? {
    try await photoFile(of: taskID).map { try ZDCFileConversion.decryptCryptoFile(intoMemory: $0) }
  }

  /// Downloads the photo of a task unless this device has it already.
  ///
  /// - Returns: Whether the task has a photo.
  /// - Throws: `sectionTooLarge` above ``maxPhotoBytes``.
  public func downloadPhoto(of taskID: String) async throws -> Bool { try await photoFile(of: taskID) != nil }

  private func photoFile(of taskID: String) async throws -> ZDCCryptoFile? {
    guard let node = try await photoNode(of: taskID) else { return nil }
    if let file = session.diskManager.nodeData(node)?.cryptoFile { return try checkSize(file) }
    guard node.cloudDataInfo?.dataSize ?? 0 <= Self.maxPhotoBytes else { throw ZDCError(.sectionTooLarge) }
    let options = ZDCDownloadOptions()
    options.cacheToDiskManager = true
    return try checkSize(try await session.downloadManager.downloadNodeData(node, options: options).cryptoFile)
  }

  private func checkSize(_ file: ZDCCryptoFile) throws -> ZDCCryptoFile {
    guard file.cleartextFileSize <= Self.maxPhotoBytes else { throw ZDCError(.sectionTooLarge) }
    return file
  }

  /// Returns the downloaded fraction of a task's photo, or nil if no download runs.
  public func photoProgress(of taskID: String) async throws -> Double? {
    guard let node = try await photoNode(of: taskID) else { return nil }
    return session.progressManager.dataDownloadProgress(forNodeID: node.uuid)?.fractionCompleted
  }

  /// Returns the thumbnail of a task's photo, which is downloaded without the photo.
  public func thumbnail(of taskID: String) async throws -> Data? {
    guard let node = try await photoNode(of: taskID) else { return nil }
    if let stored = session.diskManager.nodeThumbnail(node) {
      return try stored.cryptoFile.map { try ZDCFileConversion.decryptCryptoFile(intoMemory: checkSize($0)) }
    }
    let options = ZDCDownloadOptions()
    options.cacheToDiskManager = true
    return try await session.downloadManager.downloadNodeMeta(node, components: .thumbnail, options: options).thumbnail
  }

  /// Returns the queued operations of a task and its photo, and what each is waiting for.
  public func explain(_ taskID: String) async throws -> [ZDCOperationExplanation] {
    try await tree.read { _, cloud in
      let nodes = [taskID, cloud.photoNode(of: taskID)?.uuid].compactMap(\.self)
      return nodes.flatMap { cloud.explain(nodeID: $0)?.operations ?? [] }
    }
  }

  /// Downloads a list or a task in the form in which the server stores it.
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

  /// Returns the downloaded tasks of a list in their order.
  fileprivate func tasks(of listID: String) throws -> [(id: String, task: Task)] {
    try orderedTasks(of: listID).compactMap { node, task in task.map { (node.uuid, $0) } }
  }

  /// Returns the tasks in their order, then those that are not downloaded yet.
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
        id: node.uuid, task: task, photo: photo.map(photoVersion),
        badges: badges(node.uuid).union(ofPhoto))
    }
  }
}

extension ZDCCloudReadTransaction {
  /// A photo that was attached here has a local version, because several may be attached before one is uploaded.
  private func photoVersion(_ node: ZDCNode) -> String {
    tag(forNodeID: node.uuid, withIdentifier: ZDCNode.photoVersion) as? String ?? node.eTag_data ?? ""
  }

  /// Returns the task to which the journal entry of a task or a photo belongs; nil for a list.
  fileprivate func taskID(of entry: ZDCMergeJournalEntry) -> String? {
    let nodeIDs = [entry.nodeID, node(id: entry.nodeID)?.parentID].compactMap(\.self)
    return nodeIDs.first { linkedObject(forNodeID: $0) is Task }
  }
}

extension Task {
  /// Describes the changes.
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
  /// A conflict of a list's content concerns its number of tasks only, which needs no attention.
  fileprivate var isShown: Bool { kind != .cloudWon || result.path?.pathComponents.count != 1 }

  /// Whether a change of another device replaced one of this device.
  private var isLoss: Bool { kind == .cloudWon || report?.conflicts.isEmpty == false }

  /// Whether the user has neither undone the loss nor dismissed it, which removes the entry.
  fileprivate var isUnseenLoss: Bool { undoneAt == nil && isLoss }

  fileprivate func activity(_ cloud: ZDCCloudReadTransaction) -> Activity {
    let taskID = cloud.taskID(of: self)
    let task = taskID.flatMap { cloud.linkedObject(forNodeID: $0) as? Task }
    let name = result.path?.nodeName ?? mine.path?.nodeName ?? ""
    let photo = name == "img" ? task.map { "Photo of \($0.title)" } ?? "Photo" : nil
    return Activity(
      id: id.uuidString, kind: isLoss ? .loss : .conflict, taskID: taskID, title: photo ?? task?.title ?? name,
      change: outcome, date: date, canUndo: undoneAt == nil && canBeUndone, isUndone: undoneAt != nil)
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
