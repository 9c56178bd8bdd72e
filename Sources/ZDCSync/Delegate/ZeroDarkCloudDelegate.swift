public import Foundation
internal import ZDCAccounts
public import ZDCClientStore
public import ZDCTransfers
public import ZDCTreesystem

/// The app's part in pushing and pulling.
///
/// The framework keeps the local tree in sync with the cloud. The delegate supplies content when it is sent, and is
/// notified of changes by others. All calls with a transaction run inside it, on the database's queue. Return quickly,
/// and move slow work to `transaction.afterCommit` or an asynchronous ``ZDCData``. Non-throwing methods satisfy
/// throwing requirements.
///
/// The framework syncs several trees of a user at the same time. Calls with a read-write transaction never overlap.
/// Calls with a read transaction, such as ``data(for:at:transaction:)``, may overlap with each other and with all
/// others.
///
/// The delegate is not called for changes that the app makes on this device. It is called when the framework renames or
/// moves one of this device's nodes to resolve a conflict.
///
/// ## Topics
/// ### Pushing
/// - ``data(for:at:transaction:)``
/// - ``didPushNodeData(_:at:transaction:)``
/// ### Pulling
/// - ``didDiscoverNewNode(_:at:transaction:)``
/// - ``didDiscoverModifiedNode(_:with:at:transaction:)``
/// - ``didDiscoverMovedNode(_:from:to:transaction:)``
/// - ``didDiscoverDeletedNode(_:at:timestamp:transaction:)``
/// ### Conflicts
/// - ``didDiscoverConflict(_:forNode:atPath:transaction:)``
/// - ``didDiscoverDeletedDirtyNode(_:dirtyAncestors:timestamp:transaction:)``
public protocol ZeroDarkCloudDelegate: AnyObject, Sendable {
  // MARK: Pushing

  /// Returns the content to upload for a node.
  ///
  /// Called when the node is sent or comes next, not when the upload was queued, and again at every retry that needs
  /// the bytes. Return the newest state, and queue another upload for later changes.
  ///
  /// ```swift
  /// func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData {
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   guard let task = cloud?.linkedObject(forNodeID: node.uuid) as? Task else { return ZDCData() }  // a folder
  ///   return ZDCData(data: try JSONEncoder().encode(task))
  /// }
  /// ```
  ///
  /// - Throws: An error parks the upload as "no data from the app". The app is asked again after the next change or
  ///   launch.
  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData

  /// Returns a small metadata section that others can download without the data, or nil for none. The maximum is 16
  /// MiB.
  ///
  /// ```swift
  /// func metadata(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData? {
  ///   ZDCData(data: try JSONEncoder().encode(["width": 4032, "height": 3024]))
  /// }
  /// ```
  func metadata(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData?

  /// Returns a picture that others can download without the data, or nil for none. The maximum is 16 MiB.
  ///
  /// ```swift
  /// func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) -> ZDCData? {
  ///   ZDCData { try await renderer.preview(of: node.uuid) }  // awaited outside of the transaction
  /// }
  /// ```
  func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData?

  /// Notifies the app that a node's content is in the cloud. In this transaction the node has been updated, and its
  /// operation removed from the queue.
  ///
  /// ```swift
  /// func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
  ///   transaction.afterCommit { refreshCell() }
  /// }
  /// ```
  ///
  /// - Throws: An error rolls back only the changes made in this call. The call is repeated with the next pull and
  ///   after a launch, with the node's state at that time.
  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws

  // MARK: Messages

  /// Returns the content of an outgoing message. Called first; the default calls ``data(for:at:transaction:)``.
  ///
  /// - Returns: The content, or nil to park the message as "no data from the app".
  func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData?

  /// Notifies the app that a message has reached a recipient and its operation has left the queue. The default calls
  /// ``didPushNodeData(_:toRecipient:transaction:)``.
  func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction) throws

  /// A later name for ``didSendMessage(_:toRecipient:transaction:)``.
  func didPushNodeData(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction) throws

  // MARK: Pulling

  /// Notifies the app of a new node in the cloud.
  ///
  /// The node is in the database, its parent was announced earlier, and none of its content has been downloaded.
  ///
  /// To get its content, mark the node, and let ``ZDCDownloadManager/downloadMarkedContents(forLocalUserID:treeID:)``
  /// fetch it: the mark is stored with the node, and holds until the content is there. A call of `downloadNodeData` in here
  /// begins its download after this transaction's commit. If the app ends before that, nothing begins it again.
  ///
  /// ```swift
  /// func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   cloud?.markNodeAsNeedsDownload(node.uuid, components: .data)
  /// }
  /// ```
  ///
  /// - Throws: An error rolls back the transaction. Its changes to other nodes are applied and announced again
  ///   immediately. This node, and new nodes below it, wait for the next pull. Until then, `explainDelegateFailures()`
  ///   lists the failure.
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws

  /// Notifies the app that a node was changed in the cloud: its record, its content, or both with one call for each.
  /// The database has the new state.
  ///
  /// ```swift
  /// func didDiscoverModifiedNode(
  ///   _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  /// ) {
  ///   guard change == .data else { return }  // access, burn date or keys
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   cloud?.markNodeAsNeedsDownload(node.uuid, components: .data)
  /// }
  /// ```
  ///
  /// - Throws: An error has the same effect as in ``didDiscoverNewNode(_:at:transaction:)``. The node stays as it was
  ///   until the next pull.
  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws

  /// Notifies the app that a node was moved, renamed or both, including when the framework renamed it to resolve a
  /// conflict. Nodes below it are not announced.
  ///
  /// If another device moved the node to another branch and also changed its content,
  /// ``didDiscoverModifiedNode(_:with:at:transaction:)`` is called next. The same holds for nodes below it.
  ///
  /// An app that takes its titles from the nodes' names has nothing to do. One that stores them updates its object:
  ///
  /// ```swift
  /// func didDiscoverMovedNode(
  ///   _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
  ///   transaction: ZDCReadWriteTransaction
  /// ) throws {
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   guard var task = cloud?.linkedObject(forNodeID: node.uuid) as? Task else { return }
  ///   task.title = newPath.nodeName
  ///   transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
  /// }
  /// ```
  ///
  /// - Throws: An error has the same effect as in ``didDiscoverNewNode(_:at:transaction:)``. The node stays where it
  ///   was until the next pull.
  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction) throws

  /// Notifies the app that a node and its subtree were deleted in the cloud.
  ///
  /// The rows and their tags are no longer in the database. Links can still be looked up inside this call.
  ///
  /// ```swift
  /// func didDiscoverDeletedNode(
  ///   _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  /// ) {
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   guard let link = cloud?.linkedCollectionAndKey(forNodeID: node.uuid) else { return }
  ///   transaction.removeObject(forKey: link.key, inCollection: link.collection)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - node: The node before its deletion.
  ///   - path: The node's path before its deletion.
  ///   - timestamp: The time at which the server deleted it, or nil if unknown.
  ///   - transaction: The transaction in which the node was deleted.
  /// - Throws: An error has the same effect as in ``didDiscoverNewNode(_:at:transaction:)``. The node and its subtree
  ///   stay as they were until the next pull, and no changes of them are sent.
  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction) throws

  /// Notifies the app that a node was deleted in the cloud while changes of it, or of nodes below it, are still queued
  /// here.
  ///
  /// All nodes are still in the database. Afterwards the clean branches are deleted, each with an announcement. The
  /// dirty nodes and their ancestors stay as if they had never been uploaded, and their operations wait. Delete these
  /// nodes or keep them. To keep them, call `insertNode(_:)` or `queueDataUpload(forNodeID:withChangeset:)`, or change
  /// them or nodes below them in any other way, here or later. Kept nodes and their ancestors are created again,
  /// parents first.
  ///
  /// If the owner has ended a shared branch, `node` is its top, and the decision must be made in this call: the nodes to
  /// keep become new nodes at the top of the local user's home trunk, with the nodes above them, and the top is announced as
  /// moved. All others are deleted and announced, and their changes end in the merge journal.
  ///
  /// ```swift
  /// func didDiscoverDeletedDirtyNode(
  ///   _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction
  /// ) {
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   for nodeID in dirtyAncestors { cloud?.queueDataUpload(forNodeID: nodeID, withChangeset: nil) }  // keeps them
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - node: The deleted node.
  ///   - dirtyAncestors: The ``ZDCNode/uuid`` of each node with queued changes, parents before children.
  ///   - timestamp: The time at which the server deleted it, or nil if unknown.
  ///   - transaction: The transaction in which the node is deleted.
  /// - Throws: An error has the same effect as in ``didDiscoverDeletedNode(_:at:timestamp:transaction:)``.
  func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction) throws

  /// Notifies the app that a queued change conflicts with the cloud. See ``ZDCNodeConflict`` for possible actions.
  ///
  /// ```swift
  /// func didDiscoverConflict(
  ///   _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
  ///   transaction: ZDCReadWriteTransaction
  /// ) {
  ///   guard conflict == .data else { return }  // .path: the framework renames the node
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   cloud?.markNodeAsNeedsDownload(node.uuid, components: .data)  // and merge the version that arrives
  /// }
  /// ```
  ///
  /// - Throws: An error rolls back the changes made in this call, and the conflict is announced again. A content
  ///   conflict is announced after growing pauses, a path conflict at the next pull.
  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction) throws

  /// Notifies the app that a user has another name or avatar: a person with whom the local user shares, or the local user
  /// themselves, if the change is in the log.
  ///
  /// ```swift
  /// func didDiscoverModifiedUser(
  ///   _ user: ZDCUser, forLocalUserID localUserID: String, transaction: ZDCReadWriteTransaction
  /// ) {
  ///   transaction.afterCommit { refreshCell() }  // shows user.displayName
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - user: The user, with the new ``ZDCUser/name``. The avatar is in ``ZDCReadTransaction/profile(ofUserID:)``.
  ///   - localUserID: The local user to whom the other one has sent the profile.
  ///   - transaction: The transaction in which the profile is stored.
  func didDiscoverModifiedUser(
    _ user: ZDCUser, forLocalUserID localUserID: String, transaction: ZDCReadWriteTransaction)

  // MARK: Downloads and the network

  /// Notifies the app of a finished background download of metadata or thumbnail. The download had
  /// `canDownloadWhileInBackground`, was running when the app exited, and has no waiting caller. Only successful
  /// downloads are reported.
  ///
  /// Called once, on a thread of the framework and outside of transactions. It is repeated at the next launch only if
  /// the app exits during the call. The default calls
  /// ``didBackgroundDownloadNodeMeta(_:at:with:header:metadata:thumbnail:)``.
  func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withComponents components: ZDCNodeMetaComponents,
    header: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?)

  /// Notifies the app of a finished background download of data, like
  /// ``didBackgroundDownloadNodeMeta(_:at:withComponents:header:metadata:thumbnail:)``. The app must delete the file,
  /// unless the disk manager keeps it.
  ///
  /// ```swift
  /// func didBackgroundDownloadNodeData(
  ///   _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile
  /// ) {
  ///   defer { zdc.diskManager?.deleteFileIfUnmanaged(cryptoFile.fileURL) }
  ///   importDocument(cryptoFile, of: node)
  /// }
  /// ```
  func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile)

  /// The seeds' spelling of ``didBackgroundDownloadNodeMeta(_:at:withComponents:header:metadata:thumbnail:)``.
  func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with components: ZDCNodeMetaComponents, header: ZDCCloudDataInfo,
    metadata: Data?, thumbnail: Data?)

  /// The seeds' spelling of ``didBackgroundDownloadNodeData(_:at:withCryptoFile:)``.
  func didBackgroundDownloadNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, with cryptoFile: ZDCCryptoFile)

  /// Returns the nodes below which new nodes are fetched first, such as those on the screen. Called before every batch.
  ///
  /// ```swift
  /// func preferredNodeIDsForPullingRcrds() async -> Set<String>? {
  ///   await screen.visibleFolderIDs  // nil: the framework's order
  /// }
  /// ```
  func preferredNodeIDsForPullingRcrds() async -> Set<String>?

  /// Notifies the app that the server is reachable again. This is a good time to restart downloads that are marked as
  /// needed.
  func didReconnectToInternet()
}
