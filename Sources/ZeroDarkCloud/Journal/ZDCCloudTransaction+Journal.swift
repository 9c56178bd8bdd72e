internal import Foundation
internal import ZDCMerge
internal import ZDCTreesystem

extension ZDCCloudTransaction {
  /// Takes back what an entry of the merge journal says: what had lost becomes a new change, and wins.
  ///
  /// Names, places and deletions the framework changes itself: a dropped move is made, a node that became "Name 2"
  /// gets its name and the other one becomes "Name 2", a node that was kept is deleted. Where a value was merged or a
  /// content lost, the result has what the app needs to make it a change of its own, in this transaction. Either way
  /// the entry is marked, and cannot be undone twice.
  ///
  /// - Throws: ``ZDCCloudError``: `invalidParameter` if the entry is gone or was undone, if nothing had lost, if the
  ///   node is gone, or if what lost was never given to the framework; `missingParent` or `conflict` if its place is
  ///   gone or taken by a third node. Nothing has changed then.
  @discardableResult
  public func undo(_ entry: ZDCMergeJournalEntry) throws -> ZDCMergeUndo {
    guard let entry = try transaction.journal.entry(entry.id, of: journalOwner) else {
      throw Self.notUndoable("the entry is not in the journal")
    }
    guard entry.undoneAt == nil else { throw Self.notUndoable("the entry was undone already") }
    guard let row = try row(entry.nodeID) else { throw Self.notUndoable("the node is gone") }
    let undo = try undo(entry, row)
    try transaction.journal.setUndone(entry.id, atMs: now)
    return undo
  }

  /// Forgets what the journal has; it cannot be undone any more.
  ///
  /// - Parameter nodeID: Of one node, by its ``ZDCNode/uuid``; nil: of all.
  public func clearMergeJournal(forNodeID nodeID: String? = nil) {
    readWrite.poisoning { try transaction.journal.remove(of: journalOwner, nodeID: nodeID) }
  }

  private func undo(_ entry: ZDCMergeJournalEntry, _ row: NodeRow) throws -> ZDCMergeUndo {
    switch entry.kind {
    case .merged:
      guard let changeset = entry.report?.lost else { throw Self.notUndoable("nothing was lost, or it was not kept") }
      return ZDCMergeUndo(nodeID: row.uuid, changeset: changeset, content: nil)
    case .cloudWon:
      return try undoCloudWon(entry, row)
    case .renamed, .moveDropped:
      try regainPlace(entry, row)
    case .deletedInCloud:
      _ = try delete(row: try stored(transaction.zdcNode(row)))
    case .deletedHere:
      throw Self.notUndoable("what was deleted is not here any more")
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

  private func regainPlace(_ entry: ZDCMergeJournalEntry, _ row: NodeRow) throws {
    guard let place = entry.mine.path else { throw Self.notUndoable("its place is not known") }
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
