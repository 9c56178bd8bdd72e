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
      // Permissions of a folder: the newest put holds.
      return keepOurs(node, cloud)
    }
    let free = cloud.conflictFreePath(path)
    var copy = ZDCNode(localUserID: node.localUserID)
    copy.parentID = parent
    copy.name = free.nodeName
    let stored = try cloud.insertNode(copy)
    try cloud.linkNodeID(stored.uuid, toKey: stored.uuid, inCollection: FileRecord.collection)
    record.eTag = nil
    transaction.setObject(record, forKey: stored.uuid, inCollection: FileRecord.collection)
    cloud.skipDataUploads(forNodeID: node.uuid, keptAs: stored.uuid)
    // Nothing here describes the version that is in the cloud now. Unlinked first: removing a linked object would
    // delete its node.
    cloud.unlinkNodeID(node.uuid)
    transaction.removeObject(forKey: node.uuid, inCollection: FileRecord.collection)
    report({ RemoteEvent(.conflict, node, path, from: free.fullPath(), at: $0) }, transaction)
  }

  private func keepOurs(_ node: ZDCNode, _ cloud: ZDCCloudTransaction) {
    guard let current = cloud.node(id: node.uuid)?.eTag_data else { return }
    cloud.didMergeData(withETag: current, forNodeID: node.uuid)
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
