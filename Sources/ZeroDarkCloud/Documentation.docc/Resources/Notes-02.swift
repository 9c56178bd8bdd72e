import Foundation
import Synchronization
import ZeroDarkCloud

/// A note as the app stores it. The cloud receives its JSON.
struct Note: Codable, Sendable, Equatable {
  static let collection = "notes"

  var id = UUID().uuidString
  var title: String
  var lines: [String] = []
}

/// Provides content to the framework and handles changes from other devices.
final class NotesDelegate: ZeroDarkCloudDelegate {
  /// Weak: the framework holds its delegate strongly, so a strong reference would be a retain cycle.
  struct Framework { weak var zdc: ZeroDarkCloud? }

  let framework = Mutex(Framework())

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    let cloud = framework.withLock { $0.zdc }?.cloudTransaction(transaction, forLocalUserID: node.localUserID)
    guard let note = cloud?.linkedObject(forNodeID: node.uuid) as? Note else { throw ZDCError(.noContent) }
    return ZDCData(data: try JSONEncoder().encode(note))
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {}

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {}

  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}

  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {}

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {}
}
