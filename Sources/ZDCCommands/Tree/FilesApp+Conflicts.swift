package import Foundation
package import ZeroDarkCloud

// Two devices changed the same: both versions stay, under two names.

extension FilesApp {
  package func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    // For a path the framework renames the node that came later, and tells.
    guard conflict == .data, let cloud = zdc?.cloudTransaction(transaction, forLocalUserID: node.localUserID) else {
      return
    }
    guard var record = try transaction.object(FileRecord.self, forKey: node.uuid, inCollection: FileRecord.collection)
    else { return cloud.skipDataUploads(forNodeID: node.uuid) }
    guard record.kind == .file, let parent = node.parentID else {
      return settleFolder(node, path, cloud, transaction)
    }
    let free = cloud.conflictFreePath(path)
    var copy = ZDCNode(localUserID: node.localUserID)
    copy.parentID = parent
    copy.name = free.nodeName
    let stored = try cloud.insertNode(copy)
    try cloud.linkNodeID(stored.uuid, toKey: stored.uuid, inCollection: FileRecord.collection)
    record.eTag = nil
    if record.isSpooled, let source = record.source { SpooledFile.store(source, stored.uuid, transaction) }
    transaction.setObject(record, forKey: stored.uuid, inCollection: FileRecord.collection)
    cloud.skipDataUploads(forNodeID: node.uuid, keptAs: stored.uuid)
    // Nothing here describes the version that is in the cloud now. Unlinked first: removing a linked object would
    // delete its node.
    cloud.unlinkNodeID(node.uuid)
    transaction.removeObject(forKey: node.uuid, inCollection: FileRecord.collection)
    report({ RemoteEvent(.conflict, node, path, from: free.fullPath(), at: $0) }, transaction)
  }

  /// Permissions and times of a folder: the cloud's stay, for what is in the cloud may be another device's file.
  private func settleFolder(
    _ node: ZDCNode, _ path: ZDCTreesystemPath, _ cloud: ZDCCloudTransaction, _ transaction: ZDCReadWriteTransaction
  ) {
    cloud.skipDataUploads(forNodeID: node.uuid)
    cloud.unlinkNodeID(node.uuid)
    transaction.removeObject(forKey: node.uuid, inCollection: FileRecord.collection)
    guard let size = cloud.node(id: node.uuid)?.cloudDataInfo?.dataSize, size > 0 else { return }
    report({ RemoteEvent(.conflict, node, path, from: path.fullPath(), at: $0) }, transaction)
  }

  /// Somebody deleted a branch in which something is queued here: what is queued stays, as new nodes, with the folders
  /// above it.
  package func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    guard let cloud = zdc?.cloudTransaction(transaction, forLocalUserID: node.localUserID) else { return }
    for dirty in dirtyAncestors.compactMap(cloud.node(id:)) { try cloud.insertNode(dirty) }
  }
}
