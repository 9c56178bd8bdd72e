// long file: the complete ZeroDark integration, in reading order.
//
//  1. Open the framework                     5. Receive changes of other devices
//  2. Accounts                               6. Download
//  3. Change lists, tasks and photos         7. Conflicts
//  4. Give the framework what it uploads     8. Sharing
//
// People.swift has the part of sharing that is about other users, Undo.swift what the app records to undo changes.
// Photos.swift and Reading.swift have what the screens show.
//
// The tree of an account in the cloud. The server sees its shape, but neither names nor content:
//
//   home:/
//     Groceries            a list: its name is the title, its content JSON, its metadata the number of tasks
//       6F1C…              a task: its name is random, its content JSON
//         img              a photo with a thumbnail
//     Party                a list of another user that was accepted: a graft of their list, with its tasks
//   inbox:/
//     k3o8…                an invitation to a list of another user
//
// Deleting a list deletes its tasks and their photos, here, in the cloud and on all other devices, those of its members
// too.

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
    // Screens read these again after each change, so those that have not changed stay in memory.
    database.register(List.self, inCollection: List.collection, cacheLimit: 1_000)
    database.register(Task.self, inCollection: Task.collection, cacheLimit: 10_000)
    database.register(Edit.self, inCollection: Edit.collection, cacheLimit: 2 * Edit.limit)
    database.register(Removed.self, inCollection: Removed.collection)
    database.register(Invitation.self, inCollection: Invitation.collection)
    database.register(Nickname.self, inCollection: Nickname.collection)
    database.register(Notice.self, inCollection: Notice.collection)
    database.register(ShownTasks.self, inCollection: ShownTasks.collection)
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
      try transaction.removeObjects(ShownTasks.self, inCollection: ShownTasks.collection) { key, _ in hasNoNode(key) }
      try transaction.removeObjects(Invitation.self, inCollection: Invitation.collection) { key, _ in hasNoNode(key) }
      try transaction.removeEdits { !others.contains($0.user) }
      try transaction.removeObjects(Notice.self, inCollection: Notice.collection) { !others.contains($1.user) }
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

  var tree: ZDCUserTree { session.tree(ofLocalUserID: user) }

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
      try transaction.insertList(of: node, cloud)
      try transaction.record(
        Edit(user: user, nodeID: node.uuid, title: path.nodeName, change: "created", undo: .removal))
      return node.uuid
    }
  }

  /// Renames a list. Its tasks stay where they are. The other members keep their own titles of it.
  public func renameList(_ listID: String, to title: String) async throws {
    try await tree.write { _, cloud in
      var node = try cloud.existingNode(listID)
      guard node.name != title, let parent = cloud.path(for: node)?.parent() else { return }
      node.name = cloud.conflictFreePath(parent.appendingComponent(title)).nodeName
      try cloud.modifyNode(node)
    }
  }

  /// Deletes a list with its tasks and their photos, for all of its members, and records it for undo.
  ///
  /// - Returns: The activity that undoes it.
  /// - Throws: `invalidParameter` for a list of another user, which ``leave(_:)`` removes.
  @discardableResult
  public func deleteList(_ listID: String) async throws -> String {
    try await tree.write { transaction, cloud in
      let removed = try cloud.removed(listID)
      let change = try cloud.deletion(of: listID, removed)
      try transaction.deleteList(listID, cloud)
      let edit = Edit(
        user: user, nodeID: listID, title: removed.listTitle ?? "", change: change, undo: .restoration(listID: nil))
      return try transaction.record(edit, removed)
    }
  }

  /// Adds a task at the end of a list, and records it for undo.
  ///
  /// - Throws: `invalidParameter` for more than 1 MiB.
  public func addTask(
    _ title: String, details: String = "", priority: Priority = .normal, to listID: String
  ) async throws {
    let task = Task(
      listID: listID, created: Date(), title: title, details: details, priority: priority, rank: Rank.between(nil, nil))
    try task.checkSize()
    try await tree.write { transaction, cloud in
      for nodeID in try transaction.add([task], to: listID, cloud) {
        try transaction.record(Edit(user: user, nodeID: nodeID, title: title, change: "added", undo: .removal))
      }
    }
  }

  /// Adds tasks at the end of a list, all in one transaction: a thousand take little longer than one.
  ///
  /// - Throws: `invalidParameter` if one of them has more than 1 MiB; then none is added.
  public func addTasks(_ tasks: [Task], to listID: String) async throws {
    for task in tasks { try task.checkSize() }
    try await tree.write { transaction, cloud in _ = try transaction.add(tasks, to: listID, cloud) }
  }

  /// Changes a task and records the edit for undo.
  ///
  /// The changeset lists the changed properties. If another device changes the same task before this one has sent its
  /// change, the two are merged property by property; see section 7.
  ///
  /// - Throws: `invalidParameter` if the task would have more than 1 MiB.
  public func edit(_ taskID: String, _ change: @Sendable (inout Task) -> Void) async throws {
    try await tree.write { transaction, cloud in
      let before = try cloud.task(taskID)
      var task = before
      change(&task)
      guard let changeset = try task.changeset() else { return }
      try task.checkSize()
      try transaction.store(task, taskID, cloud, changeset: changeset)
      let edit = Edit(
        user: user, nodeID: taskID, title: before.title, change: before.changes(to: task),
        undo: .changeset(changeset.encoded))
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
  /// If one of the two lists is shared, the task is copied and deleted, and its photo is downloaded first. The framework can
  /// move nodes between shared branches, but the task's new rank would be uploaded at the same time, and of two contents of
  /// a node that is on its way, one is lost.
  ///
  /// - Throws: `nodeNotFound` if the task or the list does not exist; for a copy also the errors of a download.
  public func moveTask(_ taskID: String, toList listID: String) async throws {
    let isCopied = try await tree.read { _, cloud in
      let listIDs = [try cloud.task(taskID).listID, listID]
      return Set(listIDs).count == 2 && cloud.sharedTreeRoots().contains { listIDs.contains($0.uuid) }
    }
    if isCopied { return try await copyTask(taskID, toList: listID) }
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

  private func copyTask(_ taskID: String, toList listID: String) async throws {
    let (photo, thumbnail) = (try await photos.data(of: taskID), try await photos.thumbnail(of: taskID))
    try await tree.write { transaction, cloud in
      guard cloud.linkedObject(forNodeID: listID) is List else { throw ZDCError(.nodeNotFound) }
      let copies = try transaction.add([try cloud.task(taskID)], to: listID, cloud)
      if let photo { for copy in copies { try attach(photo, thumbnail, to: copy, cloud) } }
      try transaction.deleteTask(taskID, cloud)
    }
  }

  /// Deletes a task and its photo, and records it for undo.
  ///
  /// - Returns: The activity that undoes it, without the photo. Nil if the task was not downloaded yet.
  @discardableResult
  public func deleteTask(_ taskID: String) async throws -> String? {
    try await tree.write { transaction, cloud in
      let task = cloud.linkedObject(forNodeID: taskID) as? Task
      let hasPhoto = cloud.photoNode(of: taskID) != nil
      try transaction.deleteTask(taskID, cloud)
      guard let task else { return nil }
      let edit = Edit(
        user: user, nodeID: taskID, title: task.title, change: hasPhoto ? "deleted with its photo" : "deleted",
        undo: .restoration(listID: task.listID))
      return try transaction.record(edit, Removed(tasks: [taskID: task]))
    }
  }

  /// Attaches a photo to a task, or replaces the one that it has.
  ///
  /// The disk manager stores the photo, sealed, until it is uploaded; after that, as a cache. It is imported inside the
  /// transaction, so that there is no node without its photo. Import larger files before the transaction.
  public func attachPhoto(_ photo: Data, thumbnail: Data?, to taskID: String) async throws {
    try await tree.write { _, cloud in try attach(photo, thumbnail, to: taskID, cloud) }
  }

  private func attach(_ photo: Data, _ thumbnail: Data?, to taskID: String, _ cloud: ZDCCloudTransaction) throws {
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

  /// Removes the photo of a task.
  public func removePhoto(from taskID: String) async throws {
    try await tree.write { _, cloud in
      if let node = cloud.photoNode(of: taskID) { try cloud.delete(node) }
    }
  }
}

extension ZDCNode {
  /// The tag with the version of a photo that was attached on this device. Its eTag is not known before the upload.
  static let photoVersion = "photoVersion"
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
  /// Stores the object of a list's node, unless the node has one.
  func insertList(of node: ZDCNode, created: Date = Date(), _ cloud: ZDCCloudTransaction) throws {
    guard !cloud.isNodeLinked(node.uuid) else { return }
    setObject(List(created: created), forKey: node.uuid, inCollection: List.collection)
    // From now on, the framework finds the object of the node, and the app the node of the object.
    try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: List.collection)
  }

  /// Creates tasks at the end of a list, or at their own places, and returns the ids of their nodes.
  func add(
    _ tasks: [Task], to listID: String, keepsPlaces: Bool = false, _ cloud: ZDCCloudTransaction
  ) throws -> [String] {
    guard let path = cloud.path(forNodeID: listID) else { throw ZDCError(.nodeNotFound) }
    var last = try cloud.tasks(of: listID).last?.task.rank
    let ids = try tasks.map { task in
      var task = task
      (task.listID, task.rank) = (listID, keepsPlaces ? task.rank : Rank.between(last, nil))
      task.clearChangeTracking()  // a new task has no changes that could be merged
      last = task.rank
      let node = try cloud.createNode(withPath: path.appendingComponent(UUID().uuidString))
      setObject(task, forKey: node.uuid, inCollection: Task.collection)
      try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: Task.collection)
      return node.uuid
    }
    try count(listID, cloud, uploads: true)
    return ids
  }

  func deleteList(_ listID: String, _ cloud: ZDCCloudTransaction) throws {
    let list = try cloud.existingNode(listID)
    guard list.anchor == nil else {
      throw ZDCError(.invalidParameter, detail: "the list belongs to another user; leave it instead")
    }
    try cloud.delete(list)  // one operation deletes the branch
    try removeList(listID, cloud)
  }

  func deleteTask(_ taskID: String, _ cloud: ZDCCloudTransaction) throws {
    let listID = try cloud.existingNode(taskID).parentID
    // The node is linked to the object, so it is deleted with it, and its photo too.
    removeObject(forKey: taskID, inCollection: Task.collection)
    if let node = cloud.node(id: taskID) { try cloud.delete(node) }  // not downloaded yet: there was no object
    if let listID { try count(listID, cloud, uploads: true) }
  }

  /// Stores a changed task, and queues the upload of its node.
  func store(
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
    let items = try cloud.orderedTasks(of: listID)
    let isComplete = items.allSatisfy { $0.task != nil }  // otherwise some are not downloaded yet
    if !isComplete { cloud.setTag(true, forNodeID: listID, withIdentifier: "count") }
    let done = isComplete ? items.count { $0.task?.isDone == true } : min(list.counts.limited.done, items.count)
    guard list.counts != List.Counts(tasks: items.count, done: done) else { return }
    list.counts = List.Counts(tasks: items.count, done: done)
    setObject(list, forKey: listID, inCollection: List.collection)
    if uploads { cloud.queueDataUpload(forNodeID: listID, withChangeset: nil) }
  }

  /// Removes the objects of a list whose node is gone, and the invitations to it that are not sent yet.
  fileprivate func removeList(_ listID: String, _ cloud: ZDCCloudTransaction) throws {
    for message in try cloud.queuedInvitations(to: listID) { try cloud.delete(message) }
    removeObject(forKey: listID, inCollection: List.collection)
    removeObject(forKey: listID, inCollection: ShownTasks.collection)
    try removeObjects(Task.self, inCollection: Task.collection) { _, task in task.listID == listID }
  }

  func removeObjects<T: ZDCStorable>(
    _ type: T.Type, inCollection collection: String, where isRemoved: (_ key: String, _ object: T) -> Bool
  ) throws {
    var keys: [String] = []
    try enumerateKeysAndObjects(type, inCollection: collection) { key, object, _ in
      if isRemoved(key, object) { keys.append(key) }
    }
    removeObjects(forKeys: keys, inCollection: collection)
  }

  fileprivate func record(_ notice: Notice) throws {
    setObject(notice, forKey: "\(UUID())", inCollection: Notice.collection)
    try removeOldest(Notice.self, inCollection: Notice.collection, limit: Notice.limit, date: \.date)
  }

  /// - Returns: The key of the object that was removed because there are more than `limit`.
  @discardableResult
  func removeOldest<T: ZDCStorable>(
    _ type: T.Type, inCollection collection: String, limit: Int, date: (T) -> Date
  ) throws -> String? {
    guard try numberOfKeys(inCollection: collection) > limit else { return nil }
    var oldest: (key: String, date: Date)?
    try enumerateKeysAndObjects(type, inCollection: collection) { key, object, _ in
      if date(object) < oldest?.date ?? .distantFuture { oldest = (key, date(object)) }
    }
    if let oldest { removeObject(forKey: oldest.key, inCollection: collection) }
    return oldest?.key
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
    guard NodeKind(path) == .photo else { return nil }
    return try session.diskManager.nodeThumbnail(node)?.cryptoFile.map(ZDCData.init(cryptoFile:))
  }

  /// The server has the content. An app that shows "saved" would record it here.
  public func didPushNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {}
}

// MARK: - 5. Receive changes of other devices

// The framework has verified each change before it calls one of these functions, in the transaction that applies it.
// It knows the tree, but no content: the app decides what to download. A change of another member of a shared list
// arrives like that of another device.

/// The app's meaning of a node, which follows from its place.
private enum NodeKind {
  case list, task, photo, message, unknown

  init(_ path: ZDCTreesystemPath) {
    switch (path.trunk, path.pathComponents.count) {
    case (.inbox, 1), (.outbox, 1): self = .message
    case (.home, 1): self = .list
    case (.home, 2): self = .task
    case (.home, 3): self = .photo
    default: self = .unknown
    }
  }
}

extension ZDCNode {
  /// A member of a shared list can write 16 MiB each of metadata and thumbnail, too.
  fileprivate var isTooLarge: Bool {
    guard let info = cloudDataInfo else { return false }
    return max(info.dataSize, info.metadataSize, info.thumbnailSize) > List.maxContentBytes
  }
}

extension ZDCCloudTransaction {
  /// Marks a list, a task or a message for download. The mark of an earlier version is removed if the content is too large.
  fileprivate func markContent(of node: ZDCNode) {
    if node.isTooLarge {
      unmarkNodeAsNeedsDownload(node.uuid, components: .all)
    } else {
      markNodeAsNeedsDownload(node.uuid, components: .all)
    }
  }
}

extension ZDCManager {
  /// Another device created a list, a task or a photo, or a list of another user that was accepted is there.
  public func didDiscoverNewNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    let cloud = try cloud(of: node, transaction)
    switch NodeKind(path) {
    case .list:
      // The title is known already. The rest follows with the download.
      try transaction.insertList(of: node, cloud)  // unless `accept` in section 8 has done that on this device
      cloud.markContent(of: node)
    case .task: cloud.markContent(of: node)
    case .message where path.trunk == .inbox: cloud.markContent(of: node)
    case .message, .photo, .unknown: break  // a photo is downloaded when the user looks at it
    }
  }

  /// Another device changed a list, a task or a photo.
  public func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    guard change == .data else { return }  // new members or rights are shown as soon as they are stored
    switch NodeKind(path) {
    case .list, .task: try cloud(of: node, transaction).markContent(of: node)
    case .photo: try forgetPhoto(node, cloud(of: node, transaction))
    case .message, .unknown: break
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

  /// Another device deleted a node with everything below it, or the user has left or lost a list of another user. The
  /// framework deletes files of the disk manager.
  public func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    let cloud = try cloud(of: node, transaction)
    switch NodeKind(path) {
    case .list: try transaction.removeList(node.uuid, cloud)
    case .task:
      transaction.removeObject(forKey: node.uuid, inCollection: Task.collection)
      if let listID = node.parentID, cloud.hasPendingDataUploads(forNodeID: listID) {
        try transaction.count(listID, cloud, uploads: false)  // the waiting upload takes the new number
      }
    case .message: transaction.removeObject(forKey: node.uuid, inCollection: Invitation.collection)
    case .photo, .unknown: break
    }
  }

  /// Another device deleted a node that has queued changes here. The app keeps edited tasks and photos, and their list.
  /// It does not keep a list in which only the counts changed, nor one that its owner, another user, has deleted: then
  /// `didDiscoverDeletedNode` is called next.
  public func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    let cloud = try cloud(of: node, transaction)
    switch cloud.path(for: node).map(NodeKind.init) {
    case .message:
      try cloud.delete(node)
      return
    case .list where node.anchor != nil: return
    default: break
    }
    let edited = dirtyAncestors.filter { cloud.linkedObject(forNodeID: $0) as? List == nil }
    if edited.isEmpty {
      try cloud.delete(node)
      return try transaction.removeList(node.uuid, cloud)
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
  ///
  /// A refused session and an error of the database end the sequence. They may be temporary, so it starts again.
  private func followDownloads(of user: String, _ session: ZDCSession) async {
    do {
      while try await session.localUserManager.allLocalUserIDs().contains(user) {
        do {
          for try await downloads in session.downloadManager.downloadMarkedBatches(forLocalUserID: user) {
            await receive(downloads)
          }
          return
        } catch  where !(error is CancellationError) {
          config.logger.error("downloads stopped, and start again: \(error)")
        }
        try await _Concurrency.Task.sleep(for: .seconds(10))
      }
    } catch is CancellationError {} catch { config.logger.error("downloads ended: \(error)") }
  }

  /// Sends and receives everything, and returns when there is nothing left to do.
  ///
  /// - Returns: The number of lists and tasks that could not be read. Their content stays marked for the next sync, unless
  ///   it is too large.
  @discardableResult
  public func sync(_ user: String) async throws -> Int {
    while true {
      let summary = try await session.syncManager.syncUntilIdle(localUserID: user)
      let (received, failed) = try await downloadMarked(user)
      if received == 0 { return failed + summary.unreadableNodes + (try await tooLarge(user)) }
    }
  }

  private func tooLarge(_ user: String) async throws -> Int {
    try await session.tree(ofLocalUserID: user).read { _, cloud in
      let lists = try cloud.trunkNode(.home).map { try cloud.children(ofNodeID: $0.uuid) } ?? []
      return try lists.reduce(0) { sum, list in
        sum + (try [list] + cloud.children(ofNodeID: list.uuid)).count(where: \.isTooLarge)
      }
    }
  }

  private func downloadMarked(_ user: String) async throws -> (received: Int, failed: Int) {
    let nodes = try await session.tree(ofLocalUserID: user).read { _, cloud in
      cloud.nodeIDsMarkedAsNeedsDownload(components: .data).compactMap(cloud.node(id:))
    }
    var (received, failed) = (0, 0)
    for try await download in try session.downloadManager.downloadContents(of: nodes) {
      if await receive([download]) == 1 { received += 1 } else { failed += 1 }
    }
    return (received, failed)
  }

  /// A node with its downloaded content.
  private typealias Received = (node: ZDCNode, data: Data, metadata: Data)

  /// Stores downloaded contents and removes their marks, in one transaction: a task that is ticked arrives with the number
  /// of its list, and a new device receives thousands of tasks.
  ///
  /// - Returns: The number of those that could be read.
  @discardableResult
  func receive(_ downloads: [ZDCContentDownload]) async -> Int {
    await store(
      downloads.compactMap { download in
        do {
          let (data, metadata) = try cleartext(download.content.get())
          return (download.node, data, metadata)
        } catch {
          note(error, of: download.node)
          return nil
        }
      })
  }

  /// An unreadable content does not stop the others. Its mark stays, so it is downloaded again.
  private func store(_ contents: [Received]) async -> Int {
    guard let user = contents.first?.node.localUserID else { return 0 }
    do {
      try await session.tree(ofLocalUserID: user).write { transaction, cloud in
        for (node, data, metadata) in contents { try transaction.store(data, metadata, of: node, cloud) }
        let nodes = contents.compactMap { cloud.node(id: $0.node.uuid) }
        for listID in Set(nodes.map(\.uuid) + nodes.compactMap(\.parentID)) {
          try transaction.countWhenComplete(listID, cloud)
        }
      }
      return contents.count
    } catch  where contents.count > 1 && !(error is CancellationError) {
      var stored = 0
      for content in contents { stored += await store([content]) }
      return stored
    } catch {
      note(error, of: contents[0].node)
      return 0
    }
  }

  private func note(_ error: any Error, of node: ZDCNode) {
    if error is CancellationError { return }
    config.logger.warning("node \(node.cloudID) was not received: \(error)")
  }

  private func cleartext(_ content: ZDCNodeContent) throws -> (data: Data, metadata: Data) {
    let session = try session
    switch content {
    case .memory(let data, let metadata, _): return (data, metadata)
    case .file(let file):
      defer { session.diskManager.deleteFileIfUnmanaged(file.fileURL) }
      guard max(file.cleartextFileSize, file.metadataSize) <= List.maxContentBytes else {
        throw ZDCError(.sectionTooLarge)
      }
      return (
        try ZDCFileConversion.decryptCryptoFile(intoMemory: file), try ZDCFileConversion.decryptMetadata(of: file)
      )
    }
  }
}

extension ZDCReadWriteTransaction {
  /// Stores the content of a node. `node` dates from the request. In the meantime, the node may have been moved or deleted,
  /// or got another version, from this device or another one: this one is then obsolete, and a newer one of another device
  /// is marked.
  fileprivate func store(
    _ data: Data, _ metadata: Data, of node: ZDCNode, _ cloud: ZDCCloudTransaction
  ) throws {
    guard let present = cloud.node(id: node.uuid), let path = cloud.path(for: present),
      present.eTag_data == node.eTag_data
    else { return }
    switch NodeKind(path) {
    case .list: try storeList(data, metadata, node.uuid, cloud)
    case .task: try storeTask(data, of: node, in: present.parentID, cloud)
    case .message: try storeInvitation(data, present, cloud)
    case .photo, .unknown: break
    }
    cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .all, ifETagMatches: node.eTag_data)
  }

  fileprivate func storeList(
    _ data: Data, _ metadata: Data, _ listID: String, _ cloud: ZDCCloudTransaction
  ) throws {
    guard var list = cloud.linkedObject(forNodeID: listID) as? List else { return }
    list.created = try JSONDecoder().decode(ListCloudJSON.self, from: data).created.limited
    list.counts = try JSONDecoder().decode(List.Counts.self, from: metadata).limited
    // The queued version of this device counts its tasks too.
    if cloud.hasPendingDataUploads(forNodeID: listID) {
      cloud.setTag(true, forNodeID: listID, withIdentifier: "count")
    }
    setObject(list, forKey: listID, inCollection: List.collection)
  }

  fileprivate func storeTask(
    _ data: Data, of node: ZDCNode, in listID: String?, _ cloud: ZDCCloudTransaction
  ) throws {
    guard let listID else { return }
    let json = try JSONDecoder().decode(TaskCloudJSON.self, from: data)
    let task = try cloud.merged(json.task(inList: listID), of: node)
    setObject(task, forKey: node.uuid, inCollection: Task.collection)
    try cloud.linkNodeID(node.uuid, toKey: node.uuid, inCollection: Task.collection)
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
    let cloud = try cloud(of: node, transaction)
    guard conflict == .data else { return try transaction.recordEnd(of: node, at: path, conflict) }
    switch NodeKind(path) {
    case .list where node.isTooLarge, .task where node.isTooLarge:
      // It cannot be merged. This device's version replaces it.
      if let eTag = node.eTag_data { cloud.didMergeData(withETag: eTag, forNodeID: node.uuid) }
    case .list:
      // The cloud wins. Its number of tasks does not include those of this device.
      cloud.skipDataUploads(forNodeID: node.uuid)
      cloud.setTag(true, forNodeID: node.uuid, withIdentifier: "count")
      cloud.markContent(of: node)
    case .task:
      // Download the other version, then merge.
      cloud.markContent(of: node)
    case .photo:
      // The cloud wins.
      cloud.skipDataUploads(forNodeID: node.uuid)
      try forgetPhoto(node, cloud)
    case .message, .unknown: cloud.skipDataUploads(forNodeID: node.uuid)
    }
  }
}

extension ZDCReadWriteTransaction {
  /// Counts the tasks of a list if its number must be counted again, as soon as all of them are on this device.
  fileprivate func countWhenComplete(_ listID: String, _ cloud: ZDCCloudTransaction) throws {
    guard cloud.tag(forNodeID: listID, withIdentifier: "count") != nil,
      try cloud.children(ofNodeID: listID).allSatisfy({ cloud.isNodeLinked($0.uuid) })
    else { return }
    cloud.removeTag(forNodeID: listID, withIdentifier: "count")
    let list = try cloud.existingNode(listID)
    let rights = list.shareList.shareItem(forUserID: list.localUserID)  // the owner may have reduced them since
    try count(listID, cloud, uploads: rights?.hasPermission(.write) != false)
  }
}

extension ZDCCloudTransaction {
  /// Merges the cloud's version with the queued changes. If both changed the same property, the cloud's value wins. The
  /// report contains the other value, and the merge journal keeps it.
  fileprivate func merged(_ theirs: Task, of node: ZDCNode) throws -> Task {
    guard let eTag = node.eTag_data, hasPendingDataUploads(forNodeID: node.uuid),
      var mine = linkedObject(forNodeID: node.uuid) as? Task
    else { return theirs }
    let report = try mine.mergeReporting(
      cloudVersion: theirs, pendingChangesets: pendingChangesets(forNodeID: node.uuid))
    didMergeData(withETag: eTag, forNodeID: node.uuid, report: report)
    return mine
  }
}

extension Account {
  /// Undoes a change of this device or the outcome of a conflict. Redoes a change that was undone.
  public func undo(_ activityID: String) async throws {
    try await tree.write { transaction, cloud in
      if let edit = transaction.object(forKey: activityID, inCollection: Edit.collection) as? Edit {
        try transaction.undo(edit, activityID, cloud)
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

// MARK: - 8. Sharing

// A list stays in the tree of its owner. The framework gives its members the list's key, and notifies them of changes
// as it notifies the owner's other devices. They learn of the list from a message, whose format is the app's, and graft
// it into their own tree, where it acts like a list of theirs.
//
//   Alice                                                      Bob
//   share: permissions for Bob, and a message after them
//   data(forMessage:): the invitation            ──────────▶   if Alice is unknown: a request, until Bob accepts her
//                                                              didDiscoverNewNode in the inbox, then a download
//                                                              accept: a graft, on all of his devices
//   the list, now with Bob as a member           ◀─────────▶   didDiscoverNewNode for the list and its tasks
//
// It ends when Bob leaves (he deletes the graft), or when Alice removes him or deletes the list: see `recordEnd`.
extension Account {
  /// Gives a user access to a list, and invites them. For a member, it changes the permissions.
  ///
  /// Both are queued here and now. The message depends on the permissions, so it never arrives before them.
  ///
  /// - Throws: `notAllowed` for a list of another user; `identityChangedNeedsAcceptance` for a person who was verified and
  ///   has new words since; the errors of ``People/meet(_:)``.
  public func share(_ listID: String, with userID: String, canEdit: Bool = true) async throws {
    try await people.meet(userID)
    try await tree.write { _, cloud in
      let isMember = try cloud.existingNode(listID).shareList.hasShareItem(forUserID: userID)
      let item = ZDCShareItem()
      item.addPermission(.read)
      if canEdit { item.addPermission(.write) }
      let operations = try cloud.share(nodeID: listID, withUserID: userID, item: item)
      let queued = try cloud.queuedInvitations(of: userID, to: listID)
      for message in queued where !operations.isEmpty { try cloud.delete(message) }  // it waits for the old permissions
      // A change of permissions needs no invitation. Sharing again without a change invites again.
      if queued.isEmpty ? !isMember || operations.isEmpty : !operations.isEmpty {
        try cloud.invite(userID, to: listID, after: operations)
      }
    }
  }

  /// Ends a user's access to a list.
  ///
  /// The list gets a new key, so they can read nothing that is written from then on. Their devices may have copied
  /// whatever they could read before.
  public func remove(_ userID: String, from listID: String) async throws {
    try await tree.write { _, cloud in
      for message in try cloud.queuedInvitations(of: userID, to: listID) { try cloud.delete(message) }
      try cloud.unshare(nodeID: listID, withUserID: userID)
    }
  }

  /// Accepts an invitation, on all devices of the user: grafts the list into their tree.
  ///
  /// With the next sync, the list's tasks arrive, and changes by other members from then on. The title is the one of the
  /// invitation, and the user can change it. This needs no network on the device that has received the message.
  ///
  /// - Returns: The id of the list's node.
  /// - Throws: ``ZDCCloudError`` with `invalidParameter` if the invitation leads to no list, or its title is no name; on
  ///   the user's other devices, the errors of ``People/meet(_:)``.
  @discardableResult
  public func accept(_ invitationID: String) async throws -> String {
    let senderID = try await tree.read { _, cloud in try cloud.invitation(invitationID).senderID }
    if try people.person(senderID).identity == nil { try await people.meet(senderID) }
    return try await tree.write { transaction, cloud in
      let invitation = try cloud.invitation(invitationID)
      try transaction.removeInvitations(to: invitation.invite.cloudID, of: invitation.senderID, cloud)
      if let present = cloud.list(of: invitation) { return present.uuid }  // accepted on another device
      let node = try cloud.graft(invitation)
      try transaction.insertList(of: node, cloud)
      return node.uuid
    }
  }

  /// Deletes an invitation on all devices of the user. The sender is not notified.
  public func decline(_ invitationID: String) async throws {
    try await tree.write { transaction, cloud in
      _ = try cloud.invitation(invitationID)
      // The message is linked to the object, so it is deleted with it.
      transaction.removeObject(forKey: invitationID, inCollection: Invitation.collection)
    }
  }

  /// Leaves a list of another user, on all devices of the user. The owner and the other members keep it.
  ///
  /// - Throws: `invalidParameter` for a list of the user, who can delete it or remove the others.
  public func leave(_ listID: String) async throws {
    try await tree.write { transaction, cloud in
      let list = try cloud.existingNode(listID)
      guard let owner = list.anchor?.userID else {
        throw ZDCError(.invalidParameter, detail: "the list belongs to the user, who cannot leave it")
      }
      try transaction.removeInvitations(to: list.cloudID, of: owner, cloud)
      try cloud.delete(list)  // the graft, and with it the membership
      try transaction.removeList(listID, cloud)
    }
  }
}

extension ZDCManager {
  /// Returns the content of an invitation, once the permissions that it depends on are in the cloud. Until then,
  /// `graftInvite` is nil, and the message waits.
  public func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData? {
    guard let cloud = try zdc.cloudTransaction(transaction, forLocalUserID: message.localUserID),
      let listID = cloud.tag(forNodeID: message.uuid, withIdentifier: ZDCNode.invitedList) as? String,
      let list = cloud.node(id: listID), let invite = cloud.graftInvite(for: list)
    else { return nil }
    let invitation = InvitationCloudJSON(title: list.name ?? "", invite: invite)
    return ZDCData(data: try JSONEncoder().encode(invitation))
  }

  /// The server has the message for the recipient. The app needs no copy of an invitation.
  public func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {
    try cloud(of: message, transaction).delete(message)
  }
}

extension ZDCNode {
  /// Tags of an invitation's message on the device that sends it.
  fileprivate static let (invitedList, invitedUser) = ("listNodeID", "userID")
}

extension ZDCCloudReadTransaction {
  fileprivate func invitation(_ id: String) throws -> Invitation {
    guard let invitation = linkedObject(forNodeID: id) as? Invitation else { throw ZDCError(.nodeNotFound) }
    return invitation
  }

  /// Returns the list to which an invitation leads, if it is in the user's tree.
  func list(of invitation: Invitation) -> ZDCNode? {
    node(cloudID: invitation.invite.cloudID).flatMap { $0.anchor?.userID == invitation.senderID ? $0 : nil }
  }

  /// Returns the messages that invite a user, or anyone, to a list, and are not sent yet.
  fileprivate func queuedInvitations(of userID: String? = nil, to listID: String) throws -> [ZDCNode] {
    guard let outbox = trunkNode(.outbox) else { return [] }
    return try children(ofNodeID: outbox.uuid).filter { message in
      let invited = tag(forNodeID: message.uuid, withIdentifier: ZDCNode.invitedUser) as? String
      return tag(forNodeID: message.uuid, withIdentifier: ZDCNode.invitedList) as? String == listID
        && (userID == nil || invited == userID)
    }
  }
}

extension ZDCCloudTransaction {
  /// Queues the message that invites a user to a list. It is sent after the change of permissions.
  fileprivate func invite(_ userID: String, to listID: String, after operations: [ZDCCloudOperation]) throws {
    guard let person = user(id: userID) else { throw ZDCError(.userNotFound) }
    let message = try sendMessage(toRecipients: [person], withDependencies: operations)
    setTag(listID, forNodeID: message.uuid, withIdentifier: ZDCNode.invitedList)
    setTag(userID, forNodeID: message.uuid, withIdentifier: ZDCNode.invitedUser)
  }

  /// Puts the list of another user into the user's own tree.
  ///
  ///     Bob                          Alice
  ///     home:/                       home:/
  ///       Work                         Groceries
  ///       Groceries  ─────────────▶      milk, bread
  fileprivate func graft(_ invitation: Invitation) throws -> ZDCNode {
    guard let sender = user(id: invitation.senderID) else { throw ZDCError(.userNotFound) }
    let path = ZDCTreesystemPath(pathComponents: [invitation.title])
    return try graftNode(
      withLocalPath: conflictFreePath(path), remoteCloudPath: invitation.invite.cloudPath,
      remoteCloudID: invitation.invite.cloudID, remoteUser: sender)
  }
}

extension ZDCReadWriteTransaction {
  /// Stores an invitation. Any other message stays unread: a later version of the app may know its format.
  fileprivate func storeInvitation(_ data: Data, _ message: ZDCNode, _ cloud: ZDCCloudTransaction) throws {
    guard let senderID = message.senderID, let json = InvitationCloudJSON(message: data, from: senderID) else { return }
    let invitation = Invitation(
      senderID: senderID, invite: json.invite, title: json.title, date: message.lastModified ?? Date())
    setObject(invitation, forKey: message.uuid, inCollection: Invitation.collection)
    try cloud.linkNodeID(message.uuid, toKey: message.uuid, inCollection: Invitation.collection)
  }

  /// Removes the invitations to a list that the user has accepted or left, with their messages.
  fileprivate func removeInvitations(
    to cloudID: String, of ownerID: String, _ cloud: ZDCCloudTransaction
  ) throws {
    try removeObjects(Invitation.self, inCollection: Invitation.collection) { key, invitation in
      invitation.invite.cloudID == cloudID && invitation.senderID == ownerID && cloud.node(id: key) != nil
    }
  }

  /// Records for the activity why a list of another user is about to go. `didDiscoverDeletedNode` is called next, and
  /// removes its objects.
  fileprivate func recordEnd(
    of list: ZDCNode, at path: ZDCTreesystemPath, _ conflict: ZDCNodeConflict
  ) throws {
    let change: String
    switch conflict {
    case .graft_DstNodeNotReadable: change = "you no longer have access to this list"
    case .graft_DstNodeNotFound: change = "its owner has deleted this list"
    case .graft_DstUserAccountDeleted: change = "the owner of this list has closed their account"
    default: return
    }
    try record(Notice(user: list.localUserID, title: path.nodeName, change: change, date: Date()))
  }
}
