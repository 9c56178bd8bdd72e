internal import Foundation
internal import ZDCMerge
internal import ZDCProtocol
internal import ZDCTreesystem

extension ZDCCloudTransaction {
  /// Undoes an outcome in the merge journal: the change that lost is made again as a new change, and wins.
  ///
  /// The framework changes names, places and deletions itself. It makes a dropped move. A node that became "Name 2"
  /// gets its name, and the other node becomes "Name 2". Kept nodes are deleted, except folders to which others have
  /// added something since. If a value was merged or content lost, the result has what the app needs to change the
  /// value itself, in this transaction. In each case the entry is marked, and cannot be undone twice.
  ///
  /// ```swift
  /// let undo = try cloud.undo(entry)
  /// if !undo.isDone { show(["Your version can be restored"]) }  // see ZDCMergeUndo for the app's part
  /// ```
  ///
  /// - Throws: ``ZDCCloudError``: `invalidParameter` if the entry is gone or was undone, if no change lost, if the node
  ///   is gone, or if the framework never had the lost value; `missingParent` or `conflict` if the place is gone or
  ///   taken by a third node. Then nothing has changed.
  @discardableResult
  public func undo(_ entry: ZDCMergeJournalEntry) throws -> ZDCMergeUndo {
    guard let entry = try transaction.journal.entry(entry.id, of: journalOwner) else {
      throw Self.notUndoable("the entry is not in the journal")
    }
    guard entry.undoneAt == nil else { throw Self.notUndoable("the entry is already undone") }
    guard let row = try row(entry.nodeID) else { throw Self.notUndoable("the node is gone") }
    let undo = try undo(entry, row)
    try transaction.journal.setUndone(entry.id, atMs: now)
    return undo
  }

  /// Removes entries from the merge journal. Their outcomes stay, and can no longer be undone.
  ///
  /// ```swift
  /// try await tree.write { _, cloud in cloud.clearMergeJournal(forNodeID: list.uuid) }
  /// ```
  ///
  /// - Parameter nodeID: The ``ZDCNode/uuid`` of the only node whose entries are removed; nil for all nodes of this
  ///   tree.
  public func clearMergeJournal(forNodeID nodeID: String? = nil) {
    readWrite.poisoning { try transaction.journal.remove(of: journalOwner, nodeID: nodeID) }
  }

  private func undo(_ entry: ZDCMergeJournalEntry, _ row: NodeRow) throws -> ZDCMergeUndo {
    switch entry.kind {
    case .merged:
      guard let changeset = entry.report?.lost else {
        throw Self.notUndoable("no change was lost, or the journal did not keep it")
      }
      return ZDCMergeUndo(nodeID: row.uuid, changeset: changeset, content: nil)
    case .cloudWon:
      return try undoCloudWon(entry, row)
    case .renamed, .moveDropped:
      try regainPlace(entry, row)
    case .deletedInCloud:
      try deleteKept(entry, row)
    case .deletedHere, .accessLost:
      throw Self.notUndoable("the deleted node is no longer on this device")
    }
    return ZDCMergeUndo(nodeID: row.uuid, changeset: nil, content: nil)
  }

  private static func notUndoable(_ detail: String) -> ZDCCloudError {
    ZDCCloudError(.invalidParameter, detail: detail)
  }

  /// The version that lost is in another node: both change names. Else the app has to upload it.
  private func undoCloudWon(_ entry: ZDCMergeJournalEntry, _ row: NodeRow) throws -> ZDCMergeUndo {
    if let other = try entry.otherNodeID.flatMap({ try self.row($0) }) {
      try exchangePlaces(row, other)
    } else if let content = entry.content {
      return ZDCMergeUndo(nodeID: row.uuid, changeset: nil, content: content)
    } else {
      throw Self.notUndoable("the version that lost was not kept")
    }
    return ZDCMergeUndo(nodeID: row.uuid, changeset: nil, content: nil)
  }

  /// Deletes the nodes that the entry names, and no other ones: a folder with something else in it stays.
  private func deleteKept(_ entry: ZDCMergeJournalEntry, _ top: NodeRow) throws {
    let named = Set(entry.keptNodeIDs ?? []).union([entry.nodeID])
    let branch = try transaction.nodes.subtree(of: top.id)
    var spared = Set(branch.filter { !named.contains($0.uuid) }.map(\.id))
    let leaves = transaction.leaves(zone: top.zone)
    // Children before their folder: a folder is spared if one of them is.
    for row in branch.reversed() {
      let isRead = try isReadThrough(row, leaves)
      if !isRead { spared.insert(row.id) }
      if spared.contains(row.id), let parent = row.parent { spared.insert(parent) }
    }
    let tops = branch.filter { row in
      !spared.contains(row.id) && (row.id == top.id || row.parent.map(spared.contains) ?? true)
    }
    guard !tops.isEmpty else { throw Self.notUndoable("other devices have added nodes to it since") }
    // An error of a later one, such as a branch into which nodes are still moving, must find all as it was.
    try readWrite.undoable {
      for row in tops { _ = try delete(row: row) }
    }
  }

  /// Whether this device has a row for all that the cloud has directly in the folder.
  private func isReadThrough(_ row: NodeRow, _ leaves: LogNodeStore) throws -> Bool {
    try leaves.children(of: row.nodeID).allSatisfy { child in
      try transaction.nodes.node(zone: row.zone, nodeID: child.node) != nil
        || isDeletedHere(child.node, zone: row.zone)
    }
  }

  private func isDeletedHere(_ node: NodeID, zone: Int64) throws -> Bool {
    try transaction.operations.operations(zone: zone, nodeID: node).contains { $0.kind == .delete }
  }

  private func regainPlace(_ entry: ZDCMergeJournalEntry, _ row: NodeRow) throws {
    guard let place = entry.mine.path else { throw Self.notUndoable("its path is unknown") }
    if let other = try self.row(at: place), other.id != row.id {
      guard entry.kind == .renamed, other.uuid == entry.otherNodeID else {
        throw ZDCCloudError(.conflict, path: place, detail: "the name is taken")
      }
      return try exchangePlaces(row, other)
    }
    try moveNode(try transaction.zdcNode(row), to: place)
  }

  /// Each gets the other's place and name. One commit sends both; until then the names meet nowhere.
  private func exchangePlaces(_ a: NodeRow, _ b: NodeRow) throws {
    let (placeOfA, placeOfB) = (try transaction.zdcPath(a), try transaction.zdcPath(b))
    guard placeOfA.trunk == placeOfB.trunk, !placeOfA.contains(placeOfB), !placeOfB.contains(placeOfA) else {
      throw ZDCCloudError(.conflict, path: placeOfB, detail: "the nodes are no longer side by side")
    }
    let (nodeA, nodeB) = (try transaction.zdcNode(a), try transaction.zdcNode(b))
    // An error in the second or the third move, such as a branch that would be too deep, must find all as it was.
    try readWrite.undoable {
      try moveNode(nodeB, to: conflictFreePath(placeOfB))
      try moveNode(nodeA, to: placeOfB)
      try moveNode(nodeB, to: placeOfA)
    }
  }
}
