/// The action of `put` for one file or folder. Pure: a table.
package enum PutDecision: Sendable, Hashable {
  case create
  /// New content for an existing node.
  case update
  /// Identical to the version sent last.
  case unchanged
  /// The tree has a newer version and the file has not changed since; the tree's version stays.
  case newerInTree
  /// Both changed, or this device does not know which is newer.
  case conflict
  /// A folder where the tree has a file.
  case fileInPlace
  /// A file where the tree has a folder.
  case folderInPlace
  /// This device has not read whether the tree has a file or a folder at that path.
  case unknownKind

  /// The node that the tree has under the name.
  package struct Existing: Sendable, Hashable {
    /// The eTag of the content in the cloud; nil until it is sent.
    package var eTag: String?
    /// The size of the content in the cloud, in bytes.
    package var size: UInt64
    /// Whether an upload of it is queued on this device.
    package var isQueued: Bool
    package var hasChildren: Bool
    package var record: FileRecord?
    /// The kind according to the content in the cloud, if that was fetched for this decision.
    package var fetchedKind: FileMetadata.Kind?

    package init(
      eTag: String?, size: UInt64 = 0, isQueued: Bool, hasChildren: Bool, record: FileRecord?,
      fetchedKind: FileMetadata.Kind? = nil
    ) {
      self.eTag = eTag
      self.size = size
      self.isQueued = isQueued
      self.hasChildren = hasChildren
      self.record = record
      self.fetchedKind = fetchedKind
    }

    /// File or folder; nil if this device has not read it, and for a node without content.
    package var kind: FileMetadata.Kind? {
      if let record, isQueued || record.eTag == eTag { return record.kind }
      if size > 0 { return .file }
      return fetchedKind ?? record?.kind ?? (hasChildren ? .folder : nil)
    }
  }

  /// Returns the action for one file or folder.
  ///
  /// - Parameter overwrite: Whether the user's files win over newer and unknown versions. A folder never replaces a
  ///   file, nor a file a folder.
  package static func decide(_ facts: FileAttributes, over existing: Existing?, overwrite: Bool) -> PutDecision {
    guard let existing else { return .create }
    let isFolder = facts.kind == .folder
    if let obstacle = obstacle(isFolder, existing) { return obstacle }
    guard let record = existing.record else {
      return isFolder || overwrite || existing.eTag == nil ? .update : .conflict
    }
    let isSame = record.describes(facts)
    if existing.isQueued || record.eTag == existing.eTag {
      return isSame && (!overwrite || record.isProvenSame(facts)) ? .unchanged : .update
    }
    if isFolder || overwrite { return .update }
    return isSame ? .newerInTree : .conflict
  }

  private static func obstacle(_ isFolder: Bool, _ existing: Existing) -> PutDecision? {
    switch existing.kind {
    case .file where isFolder: .fileInPlace
    case .folder where !isFolder: .folderInPlace
    case .file where existing.record == nil && existing.hasChildren: .folderInPlace
    case nil where existing.eTag != nil: .unknownKind
    default: nil
    }
  }
}
