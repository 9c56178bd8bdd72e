import Foundation
import ZeroDarkCloud

// Snapshots of the database for the screens.

extension Account {
  /// Reads a snapshot of the account, with the tasks of one list.
  ///
  /// - Parameter withActivity: Whether to read the activity too, which most screens do not show.
  public func screen(list listID: String? = nil, withActivity: Bool = true) async throws -> Screen {
    try await tree.read { try reader($0, $1).screen(list: listID, withActivity: withActivity) }
  }

  /// Returns the current snapshot, and a new one after each commit that changes it.
  public func screens(list listID: String? = nil, withActivity: Bool = true) -> ZDCDatabaseValues<Screen> {
    let (zdc, database) = (session.zdc, session.databaseManager.uiDatabaseConnection)
    return database.values { transaction in
      guard let cloud = zdc.cloudTransaction(transaction, forLocalUserID: user) else { return Screen() }
      return try reader(transaction, cloud).screen(list: listID, withActivity: withActivity)
    }
  }

  /// Returns a value now and after each commit.
  public func commits() -> ZDCDatabaseValues<UUID> {
    session.databaseManager.uiDatabaseConnection.values(of: { _ in UUID() })
  }

  /// Returns a value now and after each commit that changes lists, tasks or other objects of the app. While a change is
  /// sent or received, one commit does that, and several others change its progress.
  public func changes() -> ZDCDatabaseValues<UUID> {
    session.databaseManager.uiDatabaseConnection.objectValues(of: { _ in UUID() })
  }

  /// Finds a task in any list.
  public func item(_ taskID: String) async throws -> TaskItem {
    try await tree.read { transaction, cloud in
      guard let listID = try cloud.existingNode(taskID).parentID, cloud.linkedObject(forNodeID: listID) is List,
        let item = try reader(transaction, cloud).tasks(of: listID).first(where: { $0.id == taskID })
      else { throw ZDCError(.nodeNotFound) }
      return item
    }
  }

  /// Returns the list that a task is in, or nil if the task does not exist.
  public func listID(ofTask taskID: String) async throws -> String? {
    try await tree.read { _, cloud in
      guard let listID = cloud.node(id: taskID)?.parentID else { return nil }
      return cloud.linkedObject(forNodeID: listID) is List ? listID : nil
    }
  }

  /// Stores which tasks of a list were shown under the numbers from 1, in place of those that were shown before.
  public func recordNumbers(of taskIDs: [String], inList listID: String) async throws {
    try await tree.write { transaction, _ in
      transaction.setObject(ShownTasks(ids: taskIDs), forKey: listID, inCollection: ShownTasks.collection)
    }
  }

  /// Returns the tasks of a list that were shown last under the numbers from 1.
  public func numberedTasks(inList listID: String) async throws -> [String] {
    try await tree.read { transaction, _ in
      (transaction.object(forKey: listID, inCollection: ShownTasks.collection) as? ShownTasks)?.ids ?? []
    }
  }

  private func reader(_ transaction: ZDCReadTransaction, _ cloud: ZDCCloudReadTransaction) -> ScreenReader {
    ScreenReader(account: self, transaction: transaction, cloud: cloud)
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
      let object = cloud.linkedObject(forNodeID: nodeID)
      let title = (object as? Task)?.title ?? node.name ?? ""
      return (node, cloud.parentNode(node), title)
    }
    let (_, file) = try await session.downloadManager.downloadNodeData(node)
    defer { session.diskManager.deleteFileIfUnmanaged(file.fileURL) }
    let bytes = try Data(contentsOf: file.fileURL, options: .mappedIfSafe)
    return SealedNode(
      title: title, cloudID: node.cloudID, parentCloudID: parent?.cloudID ?? "", bytes: bytes.count,
      beginning: Data(bytes.prefix(256)))
  }
}

/// Reads one snapshot, inside of a transaction.
private struct ScreenReader {
  let account: Account
  let transaction: ZDCReadTransaction
  let cloud: ZDCCloudReadTransaction

  private var user: String { account.user }

  func tasks(of listID: String) throws -> [TaskItem] {
    try cloud.taskItems(of: listID, try badges(cloud.mergeJournal(limit: 200)))
  }

  func screen(list listID: String?, withActivity: Bool) throws -> Screen {
    let journal = cloud.mergeJournal(limit: 200).filter(\.isShown)
    let badges = try badges(journal)
    return Screen(
      lists: try lists(badges), tasks: try listID.map { try cloud.taskItems(of: $0, badges) } ?? [],
      activity: withActivity ? try activity(journal) : [],
      losses: journal.count { $0.isUnseenLoss && cloud.taskID(of: $0) != nil }, invitations: try invitations())
  }

  private func badges(_ journal: [ZDCMergeJournalEntry]) throws -> (_ nodeID: String) -> Set<Badge> {
    let (sync, progress) = (account.session.syncManager, account.session.progressManager)
    let waiting = try sync.syncingNodeIDs(forLocalUserID: user, transaction: transaction)
    // An upload that a lost network interrupted keeps its progress.
    let sending = sync.isPushingChanges(forLocalUserID: user) ? progress.allUploadingNodeIDs(user) : []
    let marked = Set(cloud.nodeIDsMarkedAsNeedsDownload(components: .data))
    let lost = Set(journal.filter(\.isUnseenLoss).map(\.nodeID))
    return { nodeID in
      var badges: Set<Badge> = sending.contains(nodeID) ? [.syncing] : waiting.contains(nodeID) ? [.pending] : []
      if lost.contains(nodeID) { badges.insert(.merged) }
      if marked.contains(nodeID) { badges.insert(.needsDownload) }
      return badges
    }
  }

  private func activity(_ journal: [ZDCMergeJournalEntry]) throws -> [Activity] {
    let edits = try edits()
    let titles = Dictionary(edits.map { ($0.edit.nodeID, $0.edit.title) }, uniquingKeysWith: { $1 })
    let result = journal.map { $0.activity(cloud, titles) } + (try edits.map(activity)) + (try notices())
    return result.sorted { $0.date > $1.date }
  }

  /// Returns the account's edits, the oldest first.
  private func edits() throws -> [(key: String, edit: Edit)] {
    var result: [(key: String, edit: Edit)] = []
    try transaction.enumerateKeysAndObjects(Edit.self, inCollection: Edit.collection) { key, edit, _ in
      if edit.user == user { result.append((key, edit)) }
    }
    return result.sorted { $0.edit.date < $1.edit.date }
  }

  private func activity(_ key: String, _ edit: Edit) throws -> Activity {
    Activity(
      id: key, kind: .edit, taskID: cloud.isTask(edit.nodeID) ? edit.nodeID : nil, title: edit.title,
      change: edit.change, date: edit.date, canUndo: try cloud.canUndo(edit), isUndone: edit.isUndone)
  }

  private func notices() throws -> [Activity] {
    var result: [Activity] = []
    try transaction.enumerateKeysAndObjects(Notice.self, inCollection: Notice.collection) { key, notice, _ in
      guard notice.user == user else { return }
      result.append(
        Activity(
          id: key, kind: .notice, taskID: nil, title: notice.title, change: notice.change, date: notice.date,
          canUndo: false, isUndone: false))
    }
    return result
  }

  private func lists(_ badges: (String) -> Set<Badge>) throws -> [ListItem] {
    let nodes = try cloud.trunkNode(.home).map { try cloud.children(ofNodeID: $0.uuid) } ?? []
    let items = nodes.compactMap { node -> ListItem? in
      guard let list = cloud.linkedObject(forNodeID: node.uuid) as? List else { return nil }
      let rights = node.shareList.shareItem(forUserID: user)
      let isArriving = node.anchor != nil && rights == nil  // until then, there is neither content nor a share list
      return ListItem(
        id: node.uuid, title: node.name ?? "", created: list.created, counts: list.counts.limited,
        badges: badges(node.uuid).union(isArriving ? [.needsDownload] : []), members: members(of: node),
        isOwn: node.anchor == nil, canEdit: !isArriving && rights?.hasPermission(.write) != false,
        isArriving: isArriving)
    }
    return items.sorted { $0.title.localizedStandardCompare($1.title) == .orderedAscending }
  }

  private func members(of list: ZDCNode) -> [Member] {
    guard list.shareList.count > 1 else { return [] }
    let ownerID = list.anchor?.userID ?? user
    let members = list.shareList.allUserIDs().map { userID in
      Member(
        person: account.people.person(userID, transaction), isUser: userID == user, isOwner: userID == ownerID,
        canEdit: list.shareList.shareItem(forUserID: userID)?.hasPermission(.write) == true)
    }
    return members.sorted { ($0.isOwner ? 0 : 1, $0.id) < ($1.isOwner ? 0 : 1, $1.id) }
  }

  private func invitations() throws -> [InvitationItem] {
    var result: [InvitationItem] = []
    try transaction.enumerateKeysAndObjects(Invitation.self, inCollection: Invitation.collection) {
      key, invitation, _ in
      // Other accounts of this device have invitations too, and the owner may have invited a member again.
      guard cloud.node(id: key) != nil, cloud.list(of: invitation) == nil else { return }
      result.append(
        InvitationItem(
          id: key, sender: account.people.person(invitation.senderID, transaction), title: invitation.title,
          date: invitation.date))
    }
    return result.sorted { ($0.date, $0.id) > ($1.date, $1.id) }
  }
}

extension ZDCCloudReadTransaction {
  func existingNode(_ nodeID: String) throws -> ZDCNode {
    guard let node = node(id: nodeID) else { throw ZDCError(.nodeNotFound) }
    return node
  }

  func task(_ taskID: String) throws -> Task {
    guard let task = linkedObject(forNodeID: taskID) as? Task else { throw ZDCError(.nodeNotFound) }
    return task
  }

  func photoNode(of taskID: String) -> ZDCNode? { node(name: "img", parentID: taskID) }

  /// Returns the downloaded tasks of a list in their order.
  func tasks(of listID: String) throws -> [(id: String, task: Task)] {
    try orderedTasks(of: listID).compactMap { node, task in task.map { (node.uuid, $0) } }
  }

  /// Returns the tasks in their order, then those that are not downloaded yet.
  ///
  /// All devices have the same order: where two tasks have one rank, the names of their nodes decide.
  func orderedTasks(of listID: String) throws -> [(node: ZDCNode, task: Task?)] {
    try children(ofNodeID: listID)
      .map { node in (node: node, task: linkedObject(forNodeID: node.uuid) as? Task) }
      .sorted { ($0.task?.rank ?? "~", $0.node.name ?? "") < ($1.task?.rank ?? "~", $1.node.name ?? "") }
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
  func changes(to new: Task) -> String {
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

  /// - Parameter titles: Titles of tasks that may not exist any more. The names of their nodes are random.
  fileprivate func activity(_ cloud: ZDCCloudReadTransaction, _ titles: [String: String]) -> Activity {
    let taskID = cloud.taskID(of: self)
    let task = taskID.flatMap { cloud.linkedObject(forNodeID: $0) as? Task }
    let path = result.path ?? mine.path
    let name = path?.pathComponents.count == 2 ? titles[nodeID] ?? "Task" : path?.nodeName ?? ""
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
    case .deletedInCloud: !result.isDeleted
    case .renamed, .moveDropped: true
    }
  }

  private var outcome: String {
    switch kind {
    case .merged where report?.conflicts.isEmpty == false: "merged; another device's change replaced yours"
    case .merged: "merged with another device's change"
    case .cloudWon: "replaced by another device's version"
    case .renamed: "renamed, because another list has this title"
    case .moveDropped: "moved by another device as well, which was first"
    case .deletedInCloud where result.isDeleted: "not sent: the list was deleted"
    case .deletedInCloud: "deleted by another device, and kept because you changed it"
    case .deletedHere: "deleted here while another device changed it"
    case .accessLost: "not sent: you no longer have access"
    }
  }
}
