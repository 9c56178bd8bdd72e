/// The kind of conflict, with the actions that the app can take.
public enum ZDCNodeConflict: String, Sendable, Hashable, CaseIterable {
  /// Another node in the cloud has taken the path of this node, which was not uploaded yet.
  ///
  /// The app may rename, move or delete the node in this call. Otherwise the framework renames it to "Name 2" and calls
  /// `didDiscoverMovedNode`.
  ///
  /// A name of the app's own, instead of "Name 2":
  ///
  /// ```swift
  /// guard var node = cloud.node(id: node.uuid), let name = node.name else { return }
  /// node.name = "\(name) (from this phone)"
  /// try cloud.modifyNode(node)
  /// ```
  case path
  /// Another device changed the content that a queued upload is based on. The upload is held.
  ///
  /// The app downloads the newest version, merges `pendingChangesets(forNodeID:)` into it and calls
  /// `didMergeData(withETag:forNodeID:)`. Alternatively, it accepts the cloud's version with
  /// `skipDataUploads(forNodeID:)`.
  ///
  /// ```swift
  /// let (info, file) = try await session.downloadManager.downloadNodeData(node)
  /// let json = try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
  /// session.diskManager.deleteFileIfUnmanaged(file.fileURL)
  /// let theirs = try JSONDecoder().decode(Task.self, from: json)
  /// try await tree.write { transaction, cloud in
  ///   guard var task = try transaction.object(Task.self, forKey: theirs.uuid, inCollection: "tasks") else { return }
  ///   let pending = cloud.pendingChangesets(forNodeID: node.uuid)
  ///   let report = try task.mergeReporting(cloudVersion: theirs, pendingChangesets: pending)
  ///   transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
  ///   cloud.didMergeData(withETag: info.eTag, forNodeID: node.uuid, report: report)
  /// }
  /// ```
  case data
  /// The owner of a grafted node has closed their account, as their verified identity chain says. Reported once on each
  /// device.
  ///
  /// The branch can be read for 30 days, and not changed any more: queued changes wait with ``ZDCWaitReason/notAllowed``.
  /// Nodes and files stay on this device until the app deletes the grafted node. Download or copy everything that the user
  /// wants to keep.
  case graft_DstUserAccountDeleted
  /// A grafted node is no longer shared with this user. The node is deleted next, with `didDiscoverDeletedNode`, and the
  /// pointer to it in the cloud. The app need not do anything.
  case graft_DstNodeNotReadable
  /// The owner has deleted a grafted node. It is deleted here next, with `didDiscoverDeletedNode`, and so is the pointer to
  /// it in the cloud. The app need not do anything.
  case graft_DstNodeNotFound
}
