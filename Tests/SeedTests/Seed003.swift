// swift-format-ignore-file
// Printed as in the document, spaces included.

import Foundation
import ZeroDarkCloud

// Seed 003, the reference of ZeroDarkCloudDelegate: each declaration as it is printed there, with `transaction: Any!`
// replaced by the transaction's type (SETTLED.md) and, for what was optional in Objective-C, without the word.

final class Seed003: ZeroDarkCloudDelegate {
  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData {
    ZDCData(data: Data())
  }

  func metadata(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData? {
    nil
  }

  func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData? {
    nil
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {}

  func data(forMessage message: ZDCNode, transaction: YapDatabaseReadTransaction) -> ZDCData? { nil }

  func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {}

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: YapDatabaseReadWriteTransaction
  ) {}

  func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with components: ZDCNodeMetaComponents, header: ZDCCloudDataInfo,
    metadata: Data?, thumbnail: Data?
  ) {}

  func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with cryptoFile: ZDCCryptoFile
  ) {}

  func preferredNodeIDsForPullingRcrds() -> Set<String>? { nil }
}
