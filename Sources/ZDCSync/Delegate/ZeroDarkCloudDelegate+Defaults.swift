public import Foundation
internal import ZDCAccounts
public import ZDCClientStore
public import ZDCTransfers
public import ZDCTreesystem

// Defaults for methods that are optional in the original framework. The others have none, so that a mistyped method is not silently
// ignored.

extension ZeroDarkCloudDelegate {
  /// Returns nil: the node has no metadata section.
  public func metadata(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? { nil }

  /// Returns nil: the node has no thumbnail.
  public func thumbnail(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? { nil }

  /// Returns what ``data(for:at:transaction:)`` returns for the message's node.
  public func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData? {
    guard let row = try transaction.nodes.node(uuid: message.uuid) else { return nil }
    return try data(for: message, at: try transaction.zdcPath(row), transaction: transaction)
  }

  /// Calls ``didPushNodeData(_:toRecipient:transaction:)``.
  public func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {
    try didPushNodeData(message, toRecipient: recipient, transaction: transaction)
  }

  /// Does nothing.
  public func didPushNodeData(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {}

  /// Does nothing.
  public func didDiscoverModifiedUser(
    _ user: ZDCUser, forLocalUserID localUserID: String, transaction: ZDCReadWriteTransaction
  ) {}

  /// Does nothing.
  public func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {}

  /// Calls ``didBackgroundDownloadNodeMeta(_:at:with:header:metadata:thumbnail:)``, the spelling of the seeds.
  public func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withComponents components: ZDCNodeMetaComponents,
    header: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?
  ) {
    didBackgroundDownloadNodeMeta(
      node, at: path, with: components, header: header, metadata: metadata, thumbnail: thumbnail)
  }

  /// Calls ``didBackgroundDownloadNodeData(_:at:with:)``, the spelling of the seeds.
  public func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile
  ) {
    didBackgroundDownloadNodeData(node, at: path, with: cryptoFile)
  }

  /// Does nothing.
  public func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with components: ZDCNodeMetaComponents, header: ZDCCloudDataInfo,
    metadata: Data?, thumbnail: Data?
  ) {}

  /// Does nothing.
  public func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with cryptoFile: ZDCCryptoFile
  ) {}

  /// Returns nil: the framework chooses the order in which records are fetched.
  public func preferredNodeIDsForPullingRcrds() async -> Set<String>? { nil }

  /// Does nothing.
  public func didReconnectToInternet() {}
}
