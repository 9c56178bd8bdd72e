internal import Foundation
internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCTransfers
internal import ZDCTreesystem

/// Wraps the app's delegate and forwards its callbacks to the listeners of ``ZDCSyncManager/nodeEvents``. All callbacks
/// pass through this one place, so both receive the same information.
final class DelegateProxy: ZeroDarkCloudDelegate {
  private let app: any ZeroDarkCloudDelegate
  private let hub: NodeEventHub

  package init(_ app: any ZeroDarkCloudDelegate, _ hub: NodeEventHub) {
    self.app = app
    self.hub = hub
  }

  /// Sends the event once the transaction has committed, and never if it rolls back.
  private func tell(_ event: ZDCNodeEvent, after transaction: ZDCReadWriteTransaction) {
    guard hub.count > 0 else { return }
    transaction.afterCommit { [hub] in hub.send(event) }
  }

  // MARK: Pushing

  package func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    try app.data(for: node, at: path, transaction: transaction)
  }

  package func metadata(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? {
    try app.metadata(for: node, at: path, transaction: transaction)
  }

  package func thumbnail(
    for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction
  ) throws -> ZDCData? {
    try app.thumbnail(for: node, at: path, transaction: transaction)
  }

  package func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws
  {
    try app.didPushNodeData(node, at: path, transaction: transaction)
    tell(.didPushNodeData(node, at: path), after: transaction)
  }

  // MARK: Messages

  package func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData? {
    try app.data(forMessage: message, transaction: transaction)
  }

  package func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {
    try app.didSendMessage(message, toRecipient: recipient, transaction: transaction)
  }

  package func didPushNodeData(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction
  ) throws {
    try app.didPushNodeData(message, toRecipient: recipient, transaction: transaction)
  }

  // MARK: Pulling

  package func didDiscoverNewNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    try app.didDiscoverNewNode(node, at: path, transaction: transaction)
    tell(.didDiscoverNewNode(node, at: path), after: transaction)
  }

  package func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws {
    try app.didDiscoverModifiedNode(node, with: change, at: path, transaction: transaction)
    tell(.didDiscoverModifiedNode(node, with: change, at: path), after: transaction)
  }

  package func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    try app.didDiscoverMovedNode(node, from: oldPath, to: newPath, transaction: transaction)
    tell(.didDiscoverMovedNode(node, from: oldPath, to: newPath), after: transaction)
  }

  package func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    try app.didDiscoverDeletedNode(node, at: path, timestamp: timestamp, transaction: transaction)
    tell(.didDiscoverDeletedNode(node, at: path, timestamp: timestamp), after: transaction)
  }

  package func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    try app.didDiscoverDeletedDirtyNode(
      node, dirtyAncestors: dirtyAncestors, timestamp: timestamp, transaction: transaction)
    tell(
      .didDiscoverDeletedDirtyNode(node, dirtyAncestors: dirtyAncestors, timestamp: timestamp), after: transaction)
  }

  package func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    try app.didDiscoverConflict(conflict, forNode: node, atPath: path, transaction: transaction)
    tell(.didDiscoverConflict(conflict, forNode: node, atPath: path), after: transaction)
  }

  package func didDiscoverModifiedUser(
    _ user: ZDCUser, forLocalUserID localUserID: String, transaction: ZDCReadWriteTransaction
  ) {
    app.didDiscoverModifiedUser(user, forLocalUserID: localUserID, transaction: transaction)
  }

  // MARK: Downloads and the network

  package func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with components: ZDCNodeMetaComponents, header: ZDCCloudDataInfo,
    metadata: Data?, thumbnail: Data?
  ) {
    app.didBackgroundDownloadNodeMeta(
      node, at: path, with: components, header: header, metadata: metadata, thumbnail: thumbnail)
  }

  package func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with cryptoFile: ZDCCryptoFile
  ) {
    app.didBackgroundDownloadNodeData(node, at: path, with: cryptoFile)
  }

  package func preferredNodeIDsForPullingRcrds() async -> Set<String>? {
    await app.preferredNodeIDsForPullingRcrds()
  }

  package func didReconnectToInternet() {
    app.didReconnectToInternet()
    hub.send(.didReconnectToInternet)
  }
}
