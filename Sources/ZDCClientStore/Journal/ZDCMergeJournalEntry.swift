public import Foundation
public import ZDCMerge
public import ZDCTreesystem

/// An entry of the merge journal: two devices changed the same thing, and this is the outcome of both changes.
///
/// The journal is on this device only, sealed like everything in its database, and bounded (``ZDCJournalLimits``). Read
/// it with ``ZDCCloudReadTransaction/mergeJournal(forNodeID:limit:)``, and undo an outcome with
/// ``ZDCCloudTransaction/undo(_:)``.
///
/// The four sides are the common starting point (``base``), this device's change (``mine``), the cloud's (``theirs``)
/// and the outcome (``result``). They hold places and versions, never content. Values are in ``report`` and
/// ``content``, if the app provided them.
///
/// ```swift
/// let replaced = try await tree.read { _, cloud in
///   cloud.mergeJournal().filter { $0.kind == .cloudWon && $0.undoneAt == nil }
/// }
/// show(replaced.map { "\($0.result.path?.nodeName ?? "") was replaced by another device's version" })
/// ```
public struct ZDCMergeJournalEntry: Sendable, Hashable, Codable, Identifiable {
  /// How two changes met, and what became of them.
  public enum Kind: String, Sendable, Hashable, Codable, CaseIterable {
    /// Both sides changed the content, and the app merged them.
    case merged
    /// Both sides changed the content, and the app took the cloud's.
    case cloudWon
    /// Another node had come to the cloud under the name first; this device's became "Name 2".
    case renamed
    /// Both sides renamed or moved the node; the committed place won. Also where the local place had gone.
    case moveDropped
    /// Deleted in the cloud while changes were queued here.
    case deletedInCloud
    /// Deleted here while others changed it, or a node below it: the deletion wins.
    case deletedHere
    /// Changes were queued here when the local user lost access to the tree.
    case accessLost
  }

  /// The state on one side.
  public struct Side: Sendable, Hashable, Codable {
    /// The place of the node; nil if it is not known on this side, or not part of the conflict.
    public var path: ZDCTreesystemPath?
    /// The node's ``ZDCNode/cloudID``, where it is not that of the entry's own node.
    public var cloudID: String?
    /// The content's version, ``ZDCNode/eTag_data``.
    public var eTag: String?
    /// Whether the node was deleted on this side.
    public var isDeleted = false

    package init(path: ZDCTreesystemPath? = nil, cloudID: String? = nil, eTag: String? = nil, isDeleted: Bool = false) {
      self.path = path
      self.cloudID = cloudID
      self.eTag = eTag
      self.isDeleted = isDeleted
    }
  }

  /// Identifies the entry on this device.
  public let id: UUID
  /// How the two changes met.
  public let kind: Kind
  /// The node's ``ZDCNode/uuid``. The entry stays when the node goes.
  public let nodeID: String
  /// The node's ``ZDCNode/cloudID`` at that time.
  public let cloudID: String
  /// When this device decided.
  public let date: Date
  /// The author of the version in the cloud; nil if that is not known.
  public var cloudWriterID: String?

  /// The state that both changes started from.
  public var base = Side()
  /// The local change.
  public var mine = Side()
  /// The change in the cloud.
  public var theirs = Side()
  /// The outcome.
  public var result = Side()

  /// The value that was merged, key by key; set if the app gave it to
  /// ``ZDCCloudTransaction/didMergeData(withETag:forNodeID:report:)``.
  public var report: ZDCMergeReport?
  /// The version that lost, if the app gave it to ``ZDCCloudTransaction/skipDataUploads(forNodeID:losing:keptAs:)``.
  public var content: Data?
  /// The ``ZDCNode/uuid`` of a node that has the version that lost, or that took the name.
  public var otherNodeID: String?
  /// After a deletion in the cloud: the ``ZDCNode/uuid`` of each node that was kept here.
  public package(set) var keptNodeIDs: [String]?
  /// Whether something was left out because it was larger than ``ZDCJournalLimits/maxEntryBytes``.
  public package(set) var isShortened = false
  /// When the outcome was undone; nil if it was not.
  public package(set) var undoneAt: Date?

  package init(_ kind: Kind, nodeID: String, cloudID: String, date: Date, id: UUID = UUID()) {
    self.kind = kind
    self.nodeID = nodeID
    self.cloudID = cloudID
    self.date = date
    self.id = id
  }
}

/// The work left for the app when an entry is undone. Names, places and deletions leave none.
///
/// ```swift
/// let undo = try cloudTransaction.undo(entry)
/// if let changeset = undo.changeset {
///   let redo = try task.undo(changeset)  // what had lost is there again
///   transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
///   cloudTransaction.queueDataUpload(forNodeID: undo.nodeID, withChangeset: redo)
/// }
/// ```
public struct ZDCMergeUndo: Sendable, Hashable {
  /// The node whose entry was undone.
  public let nodeID: String
  /// Undone on the merged value, it puts the local changes that lost in the place of the cloud's. On a value that
  /// changed since, the changeset's own rules apply: it throws `mismatchedChangeset` if it names keys that are gone.
  public let changeset: ZDCChangeset?
  /// The version that lost, as the app had given it: upload it as a new change.
  public let content: Data?

  /// Whether the framework has done all of it.
  public var isDone: Bool { changeset == nil && content == nil }
}
