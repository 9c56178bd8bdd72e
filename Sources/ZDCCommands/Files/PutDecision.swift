/// What `put` does with one file or folder. Pure: a table.
package enum PutDecision: Sendable, Hashable {
  case create
  /// Another content under an existing node.
  case update
  /// The same as what was sent last.
  case unchanged
  /// The tree has a newer version, and the file was not touched since: the tree's stays.
  case newerInTree
  /// Both changed, or nobody knows which is newer.
  case conflict
  /// A file where the tree has a folder, or the other way round.
  case otherKind

  /// What the tree has under the name.
  package struct Existing: Sendable, Hashable {
    /// The eTag of the content in the cloud; nil before it was sent.
    package var eTag: String?
    /// Whether an upload of it is still queued here.
    package var isQueued: Bool
    package var hasChildren: Bool
    package var record: FileRecord?

    package init(eTag: String?, isQueued: Bool, hasChildren: Bool, record: FileRecord?) {
      self.eTag = eTag
      self.isQueued = isQueued
      self.hasChildren = hasChildren
      self.record = record
    }
  }

  /// - Parameter overwrite: The user wants his files to win.
  package static func decide(_ facts: FileFacts, over existing: Existing?, overwrite: Bool) -> PutDecision {
    guard let existing else { return .create }
    let isFolder = facts.kind == .folder
    guard let record = existing.record else {
      // A folder loses nothing by new permissions; a file that nobody here has seen might.
      if !isFolder && existing.hasChildren { return .otherKind }
      return isFolder || overwrite || existing.eTag == nil ? .update : .conflict
    }
    guard (record.kind == .folder) == isFolder else { return .otherKind }
    let isSame = record.describes(facts)
    if existing.isQueued || record.eTag == existing.eTag { return isSame ? .unchanged : .update }
    if isFolder || overwrite { return .update }
    return isSame ? .newerInTree : .conflict
  }
}
