import Foundation
import Synchronization
import ZeroDarkCloud

/// The app's part in syncing, as the documentation describes it. Each node is linked to an object. The app downloads
/// discovered content and merges it if there are local edits. A node that others deleted stays if it has unsent
/// changes.
final class SheetsDelegate: ZeroDarkCloudDelegate {
  private let framework = Mutex<ZeroDarkCloud?>(nil)
  private let told = Mutex<[String]>([])

  func attach(_ zdc: ZeroDarkCloud?) { framework.withLock { $0 = zdc } }

  /// Returns the events since the last call.
  func takeLog() -> [String] {
    told.withLock { told in
      defer { told = [] }
      return told
    }
  }

  private func note(_ line: String) { told.withLock { $0.append(line) } }

  private func cloud(_ node: ZDCNode, _ transaction: ZDCReadWriteTransaction) -> ZDCCloudTransaction? {
    framework.withLock { $0 }?.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  }

  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
    guard
      let cloud = framework.withLock({ $0 })?.cloudTransaction(transaction, forLocalUserID: node.localUserID),
      let sheet = cloud.linkedObject(forNodeID: node.uuid) as? Sheet
    else { throw SheetMissing() }
    return ZDCData(data: try sheet.json)
  }

  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    note("pushed \(path.relativePath())")
  }

  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
    note("new \(path.relativePath())")
    cloud(node, transaction)?.markNodeAsNeedsDownload(node.uuid, components: .data)
  }

  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) {
    note("modified \(path.relativePath())")
    if change == .data { cloud(node, transaction)?.markNodeAsNeedsDownload(node.uuid, components: .data) }
  }

  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {
    note("moved \(oldPath.relativePath()) -> \(newPath.relativePath())")
  }

  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {
    note("deleted \(path.relativePath())")
    guard let link = cloud(node, transaction)?.linkedCollectionAndKey(forNodeID: node.uuid) else { return }
    transaction.removeObject(forKey: link.key, inCollection: link.collection)
  }

  func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) {
    note("deleted but edited here: \(node.name ?? "")")
    guard let cloud = cloud(node, transaction) else { return }
    for nodeID in dirtyAncestors { cloud.queueDataUpload(forNodeID: nodeID, withChangeset: nil) }
  }

  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) {
    note("conflict \(conflict) \(path.relativePath())")
    if conflict == .data { cloud(node, transaction)?.markNodeAsNeedsDownload(node.uuid, components: .data) }
  }
}

struct SheetMissing: Error {}
