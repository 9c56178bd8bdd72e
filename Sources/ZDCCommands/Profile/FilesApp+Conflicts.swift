package import Foundation
package import ZeroDarkCloud

// Conflicting changes of two devices: both versions stay, under two names.

extension FilesApp {
  package func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction
  ) throws {
    // For a path conflict, the framework renames the later node and reports it.
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
    // The local record no longer describes the version in the cloud. Unlink first: removing a linked object would
    // delete its node.
    cloud.unlinkNodeID(node.uuid)
    transaction.removeObject(forKey: node.uuid, inCollection: FileRecord.collection)
    report({ RemoteEvent(.conflict, node, path, from: free.fullPath(), at: $0) }, transaction)
  }

  /// Settles a conflict over a folder's permissions and times: the cloud's version stays, because it may be another
  /// device's file.
  private func settleFolder(
    _ node: ZDCNode, _ path: ZDCTreesystemPath, _ cloud: ZDCCloudTransaction, _ transaction: ZDCReadWriteTransaction
  ) {
    cloud.skipDataUploads(forNodeID: node.uuid)
    cloud.unlinkNodeID(node.uuid)
    transaction.removeObject(forKey: node.uuid, inCollection: FileRecord.collection)
    guard let size = cloud.node(id: node.uuid)?.cloudDataInfo?.dataSize, size > 0 else { return }
    report({ RemoteEvent(.conflict, node, path, from: path.fullPath(), at: $0) }, transaction)
  }

  /// Handles a branch that another device deleted while something in it is queued here. Nodes that this device can send
  /// stay, as new nodes, with the folders above them. The others were only moved or renamed here, and are deleted.
  package func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  ) throws {
    guard let cloud = zdc?.cloudTransaction(transaction, forLocalUserID: node.localUserID) else { return }
    var kept: Set<String> = []
    // Children first: a node that stays keeps the folders above it.
    for dirty in dirtyAncestors.reversed().compactMap(cloud.node(id:)) {
      if try kept.contains(dirty.uuid) || canSend(dirty, cloud, transaction) {
        var above: ZDCNode? = dirty
        while let next = above, kept.insert(next.uuid).inserted { above = next.parentID.flatMap(cloud.node(id:)) }
      } else {
        let path = cloud.path(forNodeID: dirty.uuid)
        _ = try WritableTree(cloud, transaction).delete(dirty)
        if let path { report({ RemoteEvent(.deleted, dirty, path, at: $0) }, transaction) }
      }
    }
    for dirty in dirtyAncestors.compactMap(cloud.node(id:)) { try cloud.insertNode(dirty) }
  }

  /// Whether this device can send the content of a node that the cloud has deleted. If the file that the user put is
  /// gone, it may come back, so its node is kept until the user decides.
  private func canSend(
    _ node: ZDCNode, _ cloud: ZDCCloudTransaction, _ transaction: ZDCReadWriteTransaction
  ) throws -> Bool {
    guard
      let record = try transaction.object(FileRecord.self, forKey: node.uuid, inCollection: FileRecord.collection)
    else { return false }
    return try record.kind == .folder || cloud.hasPendingDataUploads(forNodeID: node.uuid) || source(of: record) != nil
  }
}
