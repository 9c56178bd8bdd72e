import Foundation
import Synchronization
import ZDCTreesystem
import ZeroDarkCloud

/// An app that has content for every node and counts its callbacks.
final class BenchApp: ZeroDarkCloudDelegate {
  let pushed = Tally()
  let discovered = Tally()
  let modified = Tally()
  /// Recipients of messages who were served.
  let sent = Tally()
  private let nodes = Mutex<[ZDCNode]>([])
  private let content: ZDCData
  private let thumbnail: Data?
  private let large: (name: String, content: ZDCData)?

  /// - Parameters:
  ///   - content: the same for every node. The uploaded bytes differ, because each is sealed with its own key.
  ///   - large: other content, for nodes with that name.
  init(content: ZDCData, thumbnail: Data? = nil, large: (name: String, content: ZDCData)? = nil) {
    self.content = content
    self.thumbnail = thumbnail
    self.large = large
  }

  var discoveredNodes: [ZDCNode] { nodes.withLock { $0 } }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData {
    if let large, node.name == large.name { large.content } else { content }
  }

  func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData? {
    thumbnail.map { ZDCData(data: $0) }
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    pushed.add()
  }

  func didSendMessage(_ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction) {
    sent.add()
  }

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    nodes.withLock { $0.append(node) }
    discovered.add()
  }

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {
    if change == .data { modified.add() }
  }

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
