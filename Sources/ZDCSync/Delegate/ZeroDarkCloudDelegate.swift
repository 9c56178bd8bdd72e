public import Foundation
internal import ZDCAccounts
public import ZDCClientStore
public import ZDCTransfers
public import ZDCTreesystem

/// The app's part in pushing and pulling (seed 003).
///
/// The framework keeps the local tree in step with the cloud; the delegate supplies content when it is sent, and is
/// told what others
/// changed. All calls that take a transaction run inside it, on the database's queue: be quick, and put slow work in
/// `transaction.afterCommit` or an asynchronous ``ZDCData``. Methods that do not throw satisfy requirements that do.
///
/// The framework syncs several trees of a user at the same time. Calls with a read-write transaction never overlap; calls
/// with a read transaction, such as ``data(for:at:transaction:)``, may overlap with each other and with all others.
///
/// Not called for what this device does itself.
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

  /// The content to upload for a node.
  ///
  /// Asked when the node's turn has come or is next, not when the upload was queued, and again at every retry that
  /// needs the bytes: return the newest state. Queue the upload of what changes after that.
  ///
  /// - Throws: The upload is parked as "no data from the app" and asked for again after the next change or launch.
  func data(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData

  /// A small section that others can download without the data; nil for none. At most 16 MiB.
  func metadata(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData?

  /// A picture that others can download without the data; nil for none. At most 16 MiB.
  func thumbnail(for node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadTransaction) throws -> ZDCData?

  /// A node's content is in the cloud. The node has been updated, and its operation is gone from the queue, in this
  /// transaction.
  ///
  /// - Throws: What the call did is rolled back, and nothing else of the transaction. It is told again with the next pull
  ///   and after a launch, with the node as it is then.
  func didPushNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws

  // MARK: Messages

  /// The content of an outgoing message. Asked first; the default asks ``data(for:at:transaction:)``.
  ///
  /// - Returns: nil parks the message as "no data from the app".
  func data(forMessage message: ZDCNode, transaction: ZDCReadTransaction) throws -> ZDCData?

  /// A message has reached a recipient; its operation is gone from the queue. The default calls
  /// ``didPushNodeData(_:toRecipient:transaction:)``.
  func didSendMessage(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction) throws

  /// A later name of ``didSendMessage(_:toRecipient:transaction:)``.
  func didPushNodeData(
    _ message: ZDCNode, toRecipient recipient: ZDCUser, transaction: ZDCReadWriteTransaction) throws

  // MARK: Pulling

  /// A new node was found in the cloud.
  ///
  /// It is in the database, its parent was announced before it, and none of its content has been downloaded.
  ///
  /// - Throws: The transaction rolls back. What it had of other nodes is applied and announced again at once; this one,
  ///   and what is new below it, waits for the next pull. Meanwhile `explainDelegateFailures()` tells of it.
  func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) throws

  /// A node was changed in the cloud: its record or its content, or both, with a call for each. The database has the
  /// new state.
  ///
  /// - Throws: as ``didDiscoverNewNode(_:at:transaction:)``; the node stays as it was until the next pull.
  func didDiscoverModifiedNode(
    _ node: ZDCNode, with change: ZDCNodeChange, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction
  ) throws

  /// A node was moved or renamed, or both; also when the framework renamed it to solve a conflict. Nodes below it are
  /// not announced.
  ///
  /// - Throws: as ``didDiscoverNewNode(_:at:transaction:)``; the node stays where it was until the next pull.
  func didDiscoverMovedNode(
    _ node: ZDCNode, from oldPath: ZDCTreesystemPath, to newPath: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction) throws

  /// A node, and all below it, was deleted in the cloud.
  ///
  /// The rows are gone from the database, with their tags; links can still be looked up inside this call.
  ///
  /// - Parameters:
  ///   - node: As it was.
  ///   - path: Where it was.
  ///   - timestamp: When the server did it; nil if that is not known.
  ///   - transaction: The one in which it was deleted.
  /// - Throws: as ``didDiscoverNewNode(_:at:transaction:)``; the node, and all below it, stays as it was until the next
  ///   pull, and nothing of it is sent.
  func didDiscoverDeletedNode(
    _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction) throws

  /// A node was deleted in the cloud while changes of it, or of nodes below it, are still queued here.
  ///
  /// Everything is still in the database. Afterwards the clean branches go, each announced; the dirty nodes and the way
  /// to them stay, as nodes that were never uploaded, and their operations wait. Delete them, or keep them: with
  /// `insertNode(_:)`, `queueDataUpload(forNodeID:withChangeset:)`, or any other change of them or below them, here or
  /// later. What is kept is created anew, and so are the nodes above it, parents first.
  ///
  /// - Parameters:
  ///   - node: The one that was deleted.
  ///   - dirtyAncestors: The ``ZDCNode/uuid`` of the nodes with queued changes, parents before children.
  ///   - timestamp: When the server did it; nil if that is not known.
  ///   - transaction: The one in which it is deleted.
  /// - Throws: as ``didDiscoverDeletedNode(_:at:timestamp:transaction:)``.
  func didDiscoverDeletedDirtyNode(
    _ node: ZDCNode, dirtyAncestors: [String], timestamp: Date?, transaction: ZDCReadWriteTransaction) throws

  /// A change that is queued here does not go together with what is in the cloud. See ``ZDCNodeConflict`` for what to
  /// do.
  ///
  /// - Throws: What the call did is rolled back, and the conflict is announced again: one of content later each time,
  /// one of paths at the next pull.
  func didDiscoverConflict(
    _ conflict: ZDCNodeConflict, forNode node: ZDCNode, atPath path: ZDCTreesystemPath,
    transaction: ZDCReadWriteTransaction) throws

  // MARK: Downloads and the network

  /// A download of metadata or thumbnail with `canDownloadWhileInBackground` that was under way when the app ended has
  /// finished, and nobody waits for it any more. Successes only.
  ///
  /// Called once, on a thread of the framework and outside of transactions; again at the next launch only if the app
  /// ends within the call. The default calls ``didBackgroundDownloadNodeMeta(_:at:with:header:metadata:thumbnail:)``.
  func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withComponents components: ZDCNodeMetaComponents,
    header: ZDCCloudDataInfo, metadata: Data?, thumbnail: Data?)

  /// Like ``didBackgroundDownloadNodeMeta(_:at:withComponents:header:metadata:thumbnail:)``, for data. The file is the
  /// app's to delete, unless the disk manager keeps it.
  func didBackgroundDownloadNodeData(
    _ node: ZDCNode, at path: ZDCTreesystemPath, withCryptoFile cryptoFile: ZDCCryptoFile)

  /// The seeds' spelling of ``didBackgroundDownloadNodeMeta(_:at:withComponents:header:metadata:thumbnail:)``.
  func didBackgroundDownloadNodeMeta(
    _ node: ZDCNode, at path: ZDCTreesystemPath, with components: ZDCNodeMetaComponents, header: ZDCCloudDataInfo,
    metadata: Data?, thumbnail: Data?)

  /// The seeds' spelling of ``didBackgroundDownloadNodeData(_:at:withCryptoFile:)``.
  func didBackgroundDownloadNodeData(_ node: ZDCNode, at path: ZDCTreesystemPath, with cryptoFile: ZDCCryptoFile)

  /// The nodes below which new nodes should be fetched first, for example what is on the screen. Asked before every
  /// batch.
  func preferredNodeIDsForPullingRcrds() async -> Set<String>?

  /// The server can be reached again: a good time to restart downloads that are marked as needed.
  func didReconnectToInternet()
}
