import Foundation
import ZeroDarkCloud

/// A change of this device, kept so that the user can undo it.
struct Edit: Codable, Sendable {
  static let collection = "edits"
  /// Older edits are removed.
  static let limit = 50

  var user: String
  /// The changed list or task.
  var nodeID: String
  var title: String
  var change: String
  var date = Date()
  /// Undoes the change, or redoes it once it is undone.
  var undo: Undo
  var isUndone = false

  enum Undo: Codable, Sendable {
    /// Changes properties of a task: an encoded ``ZDCChangeset``.
    case changeset(Data)
    /// Deletes the list or the task.
    case removal
    /// Creates what ``Removed`` holds: tasks of this list, or a list with its tasks.
    case restoration(listID: String?)
  }
}

/// A deleted task, or a deleted list with its tasks. It has the key of its ``Edit``, which is read for each screen and is
/// therefore small.
struct Removed: Codable {
  static let collection = "removed"

  /// The title of the list; nil if only tasks were deleted.
  var listTitle: String?
  var listCreated = Date()
  /// The tasks by the ids of their nodes.
  var tasks: [String: Task]
}

extension ZDCCloudReadTransaction {
  /// Returns what a deletion of a list or task removes, except for photos and members.
  func removed(_ nodeID: String) throws -> Removed {
    switch linkedObject(forNodeID: nodeID) {
    case let task as Task: return Removed(tasks: [nodeID: task])
    case let list as List:
      let tasks = try tasks(of: nodeID).map { ($0.id, $0.task) }
      return Removed(
        listTitle: try existingNode(nodeID).name, listCreated: list.created,
        tasks: Dictionary(uniqueKeysWithValues: tasks))
    default: throw ZDCError(.nodeNotFound)
    }
  }

  /// Describes the deletion of a list. Tasks that are not on this device cannot be created again.
  func deletion(of listID: String, _ removed: Removed) throws -> String {
    let missing = try children(ofNodeID: listID).count - removed.tasks.count
    guard missing > 0 else { return "deleted" }
    return "deleted, with \(missing) \(missing == 1 ? "task" : "tasks") that an undo cannot restore"
  }

  /// Whether the change can be undone or redone now. A list with tasks is not deleted by an undo.
  func canUndo(_ edit: Edit) throws -> Bool {
    switch edit.undo {
    case .changeset: node(id: edit.nodeID) != nil
    case .removal: node(id: edit.nodeID) != nil && (isTask(edit.nodeID) || !hasChildren(edit.nodeID))
    case .restoration(let listID): listID.map { node(id: $0) != nil } ?? true
    }
  }

  func isTask(_ nodeID: String) -> Bool { linkedObject(forNodeID: nodeID) is Task }
}

extension ZDCReadWriteTransaction {
  /// Records a change for the activity.
  ///
  /// - Returns: The id of the activity.
  @discardableResult
  func record(_ edit: Edit, _ removed: Removed? = nil) throws -> String {
    let key = "\(UUID())"
    setObject(edit, forKey: key, inCollection: Edit.collection)
    if let removed { setObject(removed, forKey: key, inCollection: Removed.collection) }
    let oldest = try removeOldest(Edit.self, inCollection: Edit.collection, limit: Edit.limit, date: \.date)
    if let oldest { removeObject(forKey: oldest, inCollection: Removed.collection) }
    return key
  }

  func removeEdits(where isRemoved: (Edit) -> Bool) throws {
    var keys: [String] = []
    try enumerateKeysAndObjects(Edit.self, inCollection: Edit.collection) { key, edit, _ in
      if isRemoved(edit) { keys.append(key) }
    }
    for collection in [Edit.collection, Removed.collection] { removeObjects(forKeys: keys, inCollection: collection) }
  }

  /// Undoes a change, or redoes it. The edit then holds the opposite.
  func undo(_ edit: Edit, _ key: String, _ cloud: ZDCCloudTransaction) throws {
    guard try cloud.canUndo(edit) else { throw ZDCError(.nodeNotFound) }
    var edit = edit
    switch edit.undo {
    case .changeset(let changeset):
      edit.undo = .changeset(try undo(ZDCChangeset(encoded: changeset), in: edit.nodeID, cloud).encoded)
    case .removal: edit.undo = try remove(edit.nodeID, key, cloud)
    case .restoration(let listID):
      let ids = try restore(key, to: listID, cloud)
      edit.undo = .removal
      edit.nodeID = ids[edit.nodeID] ?? edit.nodeID
      try renumber(ids)
    }
    edit.isUndone.toggle()
    setObject(edit, forKey: key, inCollection: Edit.collection)
  }

  func undo(
    _ changeset: ZDCChangeset, in taskID: String, _ cloud: ZDCCloudTransaction
  ) throws -> ZDCChangeset {
    var task = try cloud.task(taskID)
    let redo = try task.undo(changeset)
    try store(task, taskID, cloud, changeset: redo)
    return redo
  }

  private func remove(_ nodeID: String, _ key: String, _ cloud: ZDCCloudTransaction) throws -> Edit.Undo {
    let removed = try cloud.removed(nodeID)
    setObject(removed, forKey: key, inCollection: Removed.collection)
    guard let task = removed.tasks[nodeID] else {
      try deleteList(nodeID, cloud)
      return .restoration(listID: nil)
    }
    try deleteTask(nodeID, cloud)
    return .restoration(listID: task.listID)
  }

  /// Creates new nodes for what was removed.
  ///
  /// - Returns: The ids of the new nodes by those of the earlier ones.
  private func restore(
    _ key: String, to listID: String?, _ cloud: ZDCCloudTransaction
  ) throws -> [String: String] {
    guard let removed = object(forKey: key, inCollection: Removed.collection) as? Removed else {
      throw ZDCError(.nodeNotFound)
    }
    removeObject(forKey: key, inCollection: Removed.collection)
    let target = try listID ?? restoreList(removed, cloud)
    let tasks = Array(removed.tasks)
    let nodeIDs = try add(tasks.map(\.value), to: target, keepsPlaces: true, cloud)
    var ids = Dictionary(uniqueKeysWithValues: zip(tasks.map(\.key), nodeIDs))
    let edit = object(forKey: key, inCollection: Edit.collection) as? Edit
    if listID == nil, let edit { ids[edit.nodeID] = target }
    return ids
  }

  private func restoreList(_ removed: Removed, _ cloud: ZDCCloudTransaction) throws -> String {
    let path = cloud.conflictFreePath(ZDCTreesystemPath(pathComponents: [removed.listTitle ?? ""]))
    let node = try cloud.createNode(withPath: path)
    try insertList(of: node, created: removed.listCreated, cloud)
    return node.uuid
  }

  /// Makes the other edits of restored nodes apply to the new ones.
  private func renumber(_ ids: [String: String]) throws {
    var changed: [String: Edit] = [:]
    try enumerateKeysAndObjects(Edit.self, inCollection: Edit.collection) { key, edit, _ in
      var edit = edit
      if case .restoration(let listID?) = edit.undo, let new = ids[listID] {
        edit.undo = .restoration(listID: new)
      } else if let new = ids[edit.nodeID] {
        edit.nodeID = new
      } else {
        return
      }
      changed[key] = edit
    }
    for (key, edit) in changed { setObject(edit, forKey: key, inCollection: Edit.collection) }
  }
}
