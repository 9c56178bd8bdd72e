internal import ZDCSupport
public import ZDCTreesystem

extension ZDCDiskManager {
  // MARK: Data

  /// Stores a node's content, in place of the previous entry.
  ///
  /// A node that the app created with `ZDCNode(localUserID:)` may be inserted afterwards, in the same transaction or in
  /// a later one. An import whose node is not inserted within a day is removed at the next launch.
  ///
  /// Outside of a transaction, the file and its entry are on disk when this returns. If the cache is too small, the
  /// file is not kept: the returned file exists only as long as its retain token.
  ///
  /// ```swift
  /// let photo = ZDCDiskImport(cleartextFileURL: url)
  /// photo.storePersistently = true
  /// try session.diskManager.importNodeData(photo, for: node)
  /// ```
  ///
  /// - Throws: ``ZDCError`` with `nodeNotFound`, `invalidParameter` for a placeholder, `diskFull`, `fileFailure`, or
  ///   `fileModifiedDuringRead` if the file was modified in the meantime; the previous entry then remains.
  ///   `ZDCSecurityError` with `limitExceeded` above the size limit of content.
  @discardableResult
  public func importNodeData(_ diskImport: ZDCDiskImport, for node: ZDCNode) throws -> ZDCCryptoFile {
    guard let file = try take(diskImport, .data(node.uuid), mayLackNode: node.isUninserted) else {
      throw ZDCError(.invalidParameter)
    }
    return file
  }

  /// Returns whether content is stored for the node.
  ///
  /// ```swift
  /// if !session.diskManager.hasNodeData(node.uuid) { askToDownload(node) }
  /// ```
  public func hasNodeData(_ nodeID: String) -> Bool { has(.data(nodeID)) }

  /// Returns the stored content; nil if there is none.
  ///
  /// It may be older than the content in the cloud. The upload of an edit can be served from it:
  ///
  /// ```swift
  /// func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
  ///   guard let file = zdc.diskManager?.nodeData(node)?.cryptoFile else { throw ZDCError(.noDataFromApp) }
  ///   return ZDCData(cryptoFile: file)
  /// }
  /// ```
  public func nodeData(_ node: ZDCNode) -> ZDCDiskExport? { export(.data(node.uuid)) }

  /// Returns the same as ``nodeData(_:)``, whatever format is preferred: only one file is stored, and it opens in any
  /// format.
  public func nodeData(_ node: ZDCNode, preferredFormat: ZDCCryptoFileFormat) -> ZDCDiskExport? { nodeData(node) }

  /// Deletes the stored content of a node. The node and its content in the cloud stay.
  ///
  /// ```swift
  /// try session.diskManager.deleteNodeData(node.uuid)  // "remove download"
  /// ```
  ///
  /// - Throws: The error of the database.
  public func deleteNodeData(_ nodeID: String) throws { try delete([.data(nodeID)]) }

  /// Deletes the stored content of several nodes in one transaction.
  ///
  /// ```swift
  /// try session.diskManager.deleteNodeData(forNodeIDs: nodes.map(\.uuid))
  /// ```
  ///
  /// - Throws: The error of the database; then none is deleted.
  public func deleteNodeData(forNodeIDs nodeIDs: [String]) throws { try delete(nodeIDs.map(DiskOwner.data)) }

  /// Moves the stored content out of the cache, or into it.
  ///
  /// A file that moves into the cache may be evicted by it.
  ///
  /// ```swift
  /// try session.diskManager.makeNodeDataPersistent(true, forNodeID: node.uuid)  // "keep offline"
  /// ```
  ///
  /// - Returns: false if there is no entry.
  /// - Throws: The error of the database.
  @discardableResult
  public func makeNodeDataPersistent(_ isPersistent: Bool, forNodeID nodeID: String) throws -> Bool {
    try makePersistent(isPersistent, .data(nodeID))
  }

  // MARK: Thumbnails

  /// Stores a node's thumbnail, or records that it has none.
  ///
  /// Afterwards the image manager shows it.
  ///
  /// ```swift
  /// try session.diskManager.importNodeThumbnail(ZDCDiskImport(cleartextData: jpeg), for: node)
  /// ```
  ///
  /// - Returns: nil for a placeholder.
  /// - Throws: as ``importNodeData(_:for:)``.
  @discardableResult
  public func importNodeThumbnail(_ diskImport: ZDCDiskImport, for node: ZDCNode) throws -> ZDCCryptoFile? {
    try take(diskImport, .thumbnail(node.uuid), mayLackNode: node.isUninserted)
  }

  /// Returns whether a thumbnail is stored; false for a placeholder.
  public func hasNodeThumbnail(_ nodeID: String) -> Bool { has(.thumbnail(nodeID)) }

  /// Returns the thumbnail or its placeholder; nil if neither is stored.
  ///
  /// ```swift
  /// guard let thumbnail = session.diskManager.nodeThumbnail(node)?.cryptoFile else { return }
  /// let jpeg = try ZDCFileConversion.decryptCryptoFile(intoMemory: thumbnail)
  /// ```
  public func nodeThumbnail(_ node: ZDCNode) -> ZDCDiskExport? { export(.thumbnail(node.uuid)) }

  /// Deletes the stored thumbnail of a node, or its placeholder.
  ///
  /// ```swift
  /// try session.diskManager.deleteNodeThumbnail(node.uuid)
  /// ```
  ///
  /// - Throws: The error of the database.
  public func deleteNodeThumbnail(_ nodeID: String) throws { try delete([.thumbnail(nodeID)]) }

  /// Deletes the stored thumbnails of several nodes in one transaction.
  ///
  /// - Throws: The error of the database; then none is deleted.
  public func deleteNodeThumbnails(forNodeIDs nodeIDs: [String]) throws {
    try delete(nodeIDs.map(DiskOwner.thumbnail))
  }

  /// Moves the stored thumbnail out of the cache, or into it.
  ///
  /// ```swift
  /// try session.diskManager.makeNodeThumbnailPersistent(true, forNodeID: node.uuid)
  /// ```
  ///
  /// - Returns: false if there is no entry.
  /// - Throws: The error of the database.
  @discardableResult
  public func makeNodeThumbnailPersistent(_ isPersistent: Bool, forNodeID nodeID: String) throws -> Bool {
    try makePersistent(isPersistent, .thumbnail(nodeID))
  }
}

extension ZDCNode {
  /// Whether the app created the node for `insertNode`. A node that was read from the database has its tree.
  fileprivate var isUninserted: Bool { treeID.isEmpty }
}
