public import Foundation
internal import ZDCAccounts
public import ZDCClientStore
public import ZDCTransfers
public import ZDCTreesystem

// Defaults for methods that are optional in the original framework. The others have none, so that a mistyped method is not silently
// ignored.

extension ZeroDarkCloudDelegate {
  public func metadata(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? { nil }

  public func thumbnail(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? { nil }

  public func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData? {
    guard let row = try transaction.nodes.node(uuid: message.uuid) else { return nil }
    return try data(for: message, at: try transaction.zdcPath(row), transaction: transaction)
  }

  public func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {
    try didPushNodeData(message, toRecipient: recipient, transaction: transaction)
  }

  public func didPushNodeData(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {}

  public func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {}

  public func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withComponents components: ZDCNodeMetaComponents,
    header: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?
  ) {
    didBackgroundDownloadNodeMeta(
      node, at: path, with: components, header: header, metadata: metadata, thumbnail: thumbnail)
  }

  public func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile
  ) {
    didBackgroundDownloadNodeData(node, at: path, with: cryptoFile)
  }

  public func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with components: ZDCNodeMetaComponents, header: ZDCCloudDataInfo,
    metadata: Data?, thumbnail: Data?
  ) {}

  public func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with cryptoFile: ZDCCryptoFile
  ) {}

  public func preferredNodeIDsForPullingRcrds() async -> Set<String>? { nil }

  public func didReconnectToInternet() {}
}
