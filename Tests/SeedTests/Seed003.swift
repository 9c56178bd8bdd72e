// swift-format-ignore-file
// Printed as in the document, spaces included.

import Foundation
import Synchronization
import ZeroDarkCloud

// Seed 003, the reference of ZeroDarkCloudDelegate. Each declaration is as printed there, except that `transaction:
// Any!` has the transaction's type and that the word `optional` of Objective-C is left out. Each method
// records its call.

final class Seed003: ZeroDarkCloudDelegate {
  private let noted = Mutex<[String]>([])

  var calls: [String] { noted.withLock { $0 } }

  private func note(_ call: String) { noted.withLock { $0.append(call) } }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData {
    note("data")
    return ZDCData(data: Data())
  }

  func metadata(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData? {
    note("metadata")
    return nil
  }

  func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadTransaction) -> ZDCData? {
    note("thumbnail")
    return nil
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    note("pushed")
  }

  func data(forMessage message: ZDCNode, transaction: YapDatabaseReadTransaction) -> ZDCData? {
    note("message")
    return nil
  }

  func didSendMessage(_ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: YapDatabaseReadWriteTransaction) {
    note("sent")
  }

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    note("new")
  }

  func didDiscoverModifiedNode(_ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    note("modified")
  }

  func didDiscoverMovedNode(_ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    note("moved")
  }

  func didDiscoverDeletedNode(_ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: YapDatabaseReadWriteTransaction) {
    note("deleted")
  }

  func didDiscoverDeletedDirtyNode(_ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: YapDatabaseReadWriteTransaction) {
    note("deletedDirty")
  }

  func didDiscoverConflict(_ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath, transaction: YapDatabaseReadWriteTransaction) {
    note("conflict")
  }

  func didBackgroundDownloadNodeMeta(_ node: ZDCNode, at path: ZDCTreesystemPath, with components: ZDCNodeMetaComponents, header: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?) {
    note("backgroundMeta")
  }

  func didBackgroundDownloadNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, with cryptoFile: ZDCCryptoFile) {
    note("backgroundData")
  }

  func preferredNodeIDsForPullingRcrds() -> Set<String>? {
    note("preferred")
    return nil
  }
}
