internal import ZDCSupport
public import ZDCTreesystem

extension ZDCDiskManager {
  // MARK: Data

  /// Stores a node's content, in the place of what was stored before.
  ///
  /// A node that the app made with `ZDCNode(localUserID:)` may be inserted afterwards, in the same transaction or in a
  /// later one. An import whose node is not inserted within a day is removed at the next launch.
  ///
  /// When it returns, outside of a transaction, file and entry are on disk. Where the cache is too small for it, it is
  /// not kept: the returned file is there for as long as its retain token.
  ///
  /// - Throws: ``ZDCError`` with `nodeNotFound`, `invalidParameter` for a placeholder, `diskFull` or `fileFailure`;
  ///   what was stored before is still there. `CryptoFailure.sourceChanged` if the file was written to meanwhile;
  ///   `ZDCSecurityError.limitExceeded` above the limit of a content.
  @discardableResult
  public func importNodeData(_ diskImport: ZDCDiskImport, for node: ZDCNode) throws -> ZDCCryptoFile {
    guard let file = try take(diskImport, .data(node.uuid), mayLackNode: node.isUninserted) else {
      throw ZDCError(.invalidParameter)
    }
    return file
  }

  /// Whether there is something.
  public func hasNodeData(_ nodeID: String) -> Bool { has(.data(nodeID)) }

  /// What there is; nil if there is nothing (seed 000).
  public func nodeData(_ node: ZDCNode) -> ZDCDiskExport? { export(.data(node.uuid)) }

  /// The same. There is one file, in one format, and it opens whatever the format is.
  public func nodeData(_ node: ZDCNode, preferredFormat: ZDCCryptoFileFormat) -> ZDCDiskExport? { nodeData(node) }

  public func deleteNodeData(_ nodeID: String) throws { try delete([.data(nodeID)]) }

  public func deleteNodeData(forNodeIDs nodeIDs: [String]) throws { try delete(nodeIDs.map(DiskOwner.data)) }

  /// Moves what there is out of the cache, or into it.
  ///
  /// - Returns: false if there is nothing.
  @discardableResult
  public func makeNodeDataPersistent(_ isPersistent: Bool, forNodeID nodeID: String) throws -> Bool {
    try makePersistent(isPersistent, .data(nodeID))
  }

  // MARK: Thumbnails

  /// Stores a node's thumbnail, or that it has none.
  ///
  /// - Returns: nil for a placeholder.
  /// - Throws: as ``importNodeData(_:for:)``.
  @discardableResult
  public func importNodeThumbnail(_ diskImport: ZDCDiskImport, for node: ZDCNode) throws -> ZDCCryptoFile? {
    try take(diskImport, .thumbnail(node.uuid), mayLackNode: node.isUninserted)
  }

  /// Whether there is one; false for a placeholder.
  public func hasNodeThumbnail(_ nodeID: String) -> Bool { has(.thumbnail(nodeID)) }

  /// The thumbnail, or the knowledge that there is none; nil if nothing is known.
  public func nodeThumbnail(_ node: ZDCNode) -> ZDCDiskExport? { export(.thumbnail(node.uuid)) }

  public func deleteNodeThumbnail(_ nodeID: String) throws { try delete([.thumbnail(nodeID)]) }

  public func deleteNodeThumbnails(forNodeIDs nodeIDs: [String]) throws {
    try delete(nodeIDs.map(DiskOwner.thumbnail))
  }

  /// - Returns: false if there is nothing.
  @discardableResult
  public func makeNodeThumbnailPersistent(_ isPersistent: Bool, forNodeID nodeID: String) throws -> Bool {
    try makePersistent(isPersistent, .thumbnail(nodeID))
  }
}

extension ZDCNode {
  /// Whether the app made it, for `insertNode`. A node that was read from the database has its tree.
  fileprivate var isUninserted: Bool { treeID.isEmpty }
}
