internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

/// Changes to a local user's tree.
///
/// Each call changes the local tree immediately and queues the operations to send. These changes and the app's own rows
/// commit together or not at all. The push engine starts when the commit is on disk.
///
/// Calls that throw ``ZDCCloudError`` have done nothing. Calls without `try` poison the transaction if the database
/// fails.
///
/// The `write` functions of ``ZDCUserTree`` pass one to their block. `cloudTransaction` of ``ZeroDarkCloud`` returns
/// one for a transaction that began otherwise.
///
/// ```swift
/// try await tree.write { transaction, cloud in
///   let node = try cloud.createNode(withPath: path)
///   try cloud.linkNodeID(node.uuid, toKey: task.uuid, inCollection: "tasks")
///   transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
/// }
/// ```
///
/// ## Topics
/// ### Nodes
/// - ``createNode(withPath:)``
/// - ``insertNode(_:)``
/// - ``modifyNode(_:)``
/// - ``moveNode(_:to:)``
/// - ``delete(_:)``
/// ### Content
/// - ``queueDataUpload(forNodeID:withChangeset:)``
public final class ZDCCloudTransaction: ZDCCloudReadTransaction {
  package let readWrite: ZDCReadWriteTransaction
  private var nodeIDs = NodeIDRun()

  package init(_ transaction: ZDCReadWriteTransaction, localUserID: String, localUser: Int64, treeID: String) {
    readWrite = transaction
    super.init(transaction, localUserID: localUserID, localUser: localUser, treeID: treeID)
  }

  package var nodes: NodeStore { transaction.nodes }
  package var operations: OperationStore { transaction.operations }

  // MARK: Creating

  /// Creates a node, and queues its record and its content.
  ///
  /// It has the access list of its parent. The content is asked for with `data(for:at:transaction:)` when its turn has
  /// come.
  ///
  /// After a login nothing can be created before the first pull, because the trunk's key comes with it: `missingParent`
  /// then says that the trunk has not been pulled yet.
  ///
  /// Any node can have children, so a folder is a node like any other:
  ///
  /// ```swift
  /// let photos = ZDCTreesystemPath(pathComponents: ["Photos"])
  /// if cloud.node(path: photos) == nil { try cloud.createNode(withPath: photos) }
  /// try cloud.createNode(withPath: photos.appendingComponent("beach.jpg"))
  /// ```
  ///
  /// - Throws: ``ZDCCloudError``: `missingParent` if a node on the way is missing, `conflict` if a node is there
  ///   already, `notAllowed` in a tree of another user that the local user may only read, `invalidParameter` for a trunk, a name that is empty, has a zero byte or more than 1,024 bytes, or a
  ///   depth above 128.
  @discardableResult
  public func createNode(withPath path: ZDCTreesystemPath) throws -> ZDCNode {
    try createNode(withPath: path, dependencies: nil)
  }

  /// Another name of ``createNode(withPath:)``.
  @discardableResult
  public func createNode(with path: ZDCTreesystemPath) throws -> ZDCNode {
    try createNode(withPath: path, dependencies: nil)
  }

  /// Like ``createNode(withPath:)``; both queued operations wait until the given ones are done.
  ///
  /// ```swift
  /// let upload = cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
  /// try cloud.createNode(withPath: path, dependencies: [upload].compactMap(\.self))  // not sent before the upload
  /// ```
  @discardableResult
  public func createNode(
    withPath path: ZDCTreesystemPath, dependencies: [ZDCCloudOperation]?
  ) throws -> ZDCNode {
    guard let parentPath = path.parent() else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "a trunk cannot be created")
    }
    try check(trunk: path.trunk, path)
    guard let parent = try parentRow(at: parentPath) else { throw try missingParent(path) }
    let name = try fold(path.nodeName, path)
    return try create(
      Draft(uuid: UUIDv7.make(atMs: now), nodeID: nodeIDs.next()), name: name, below: parent, path: path,
      dependsOn: rowIDs(dependencies ?? []))
  }

  /// Adds a node that the app created. ``ZDCNode/parentID`` and ``ZDCNode/name`` must be set.
  ///
  /// Files that the disk manager imported for it earlier now belong to it.
  ///
  /// A node that was kept after its deletion in the cloud is queued again, together with the nodes above it.
  ///
  /// Use it instead of ``createNode(withPath:)`` where something has to know the node's ``ZDCNode/uuid`` earlier:
  ///
  /// ```swift
  /// var photo = ZDCNode(localUserID: user.uuid)
  /// photo.parentID = folder.uuid
  /// photo.name = "beach.jpg"
  /// try session.diskManager.importNodeData(ZDCDiskImport(cleartextFileURL: url), for: photo)  // sealed outside
  /// try await tree.write { [photo] transaction, cloud in try cloud.insertNode(photo) }
  /// ```
  ///
  /// - Returns: The node as stored.
  /// - Throws: ``ZDCCloudError``: `missingParent`, `conflict` if the name is taken or the node is in the tree already,
  ///   `invalidParameter`, `unsupportedShare` for a node with a dedicated access list.
  @discardableResult
  public func insertNode(_ node: ZDCNode) throws -> ZDCNode {
    guard node.localUserID == localUserID else {
      throw ZDCCloudError(.invalidParameter, detail: "the node belongs to another local user")
    }
    if let row = try row(node.uuid) { return try requeue(row) }
    guard let parent = try node.parentID.flatMap({ try transaction.cloudState.parent(uuid: $0) }).flatMap(ours) else {
      throw ZDCCloudError(.missingParent, detail: "the node's parent is not in the tree")
    }
    let name = try fold(node.name ?? "", nil)
    let facts = try transaction.cloudState.facts(ofZone: parent.zone)
    try check(trunk: facts.trunk, nil)
    guard node.shareList.isEmpty || node.shareList == facts.shareList else { throw Self.unsupportedShare }
    let draft = Draft(
      uuid: node.uuid, nodeID: try isUsed(node.nodeID, zone: parent.zone) ? nodeIDs.next() : node.nodeID,
      burnMs: node.burnDate?.ms)
    let inserted = try create(draft, name: name, below: parent, path: nil, dependsOn: [])
    try readWrite.context.observers.nodeInserted(readWrite, inserted.uuid)
    return inserted
  }

  /// A nodeID is never used twice, not even for a node that was deleted.
  private func isUsed(_ nodeID: NodeID, zone: Int64) throws -> Bool {
    if try nodes.node(zone: zone, nodeID: nodeID) != nil { return true }
    if try !operations.operations(zone: zone, nodeID: nodeID).isEmpty { return true }
    return try LogNodeStore(db: transaction.database, zone: zone).leaf(nodeID) != nil
  }

  /// A member with the right `U` puts one node of a branch, whose ID follows from the member's (PROTOCOL 3.9).
  private func nodeID(of draft: Draft, below parent: NodeRow, _ path: ZDCTreesystemPath?) throws -> NodeID {
    let facts = try transaction.cloudState.facts(ofZone: parent.zone)
    guard facts.row.owner != nil, let user = UserID(text: facts.localUserID),
      facts.row.permissions(of: user).contains(.userOnly)
    else { return draft.nodeID }
    let own = NodeID.child(of: facts.row.zone, for: user)
    guard parent.nodeID == facts.row.zone.root, try !isUsed(own, zone: parent.zone) else {
      throw ZDCCloudError(
        .notAllowed, path: path, detail: "the access list lets the user create one node below the top")
    }
    return own
  }

  struct Draft {
    package var uuid: String
    package var nodeID: NodeID
    package var burnMs: UInt64?
  }

  private func create(
    _ draft: Draft, name: FoldedName, below parent: NodeRow, path: ZDCTreesystemPath?, dependsOn: [Int64]
  ) throws -> ZDCNode {
    try checkMayCreate(below: parent, path)
    let tag = try nodes.nameKeys(of: parent).nameTag(name)
    guard try !nodes.hasChild(of: parent.id, tag: tag) else {
      throw ZDCCloudError(.conflict, path: path, detail: "the name is taken")
    }
    var row = NodeRow(
      uuid: draft.uuid, zone: parent.zone, nodeID: try nodeID(of: draft, below: parent, path), parent: parent.id,
      depth: parent.depth + 1, nameTag: tag, name: name.utf8, key: .random(), keyGen: 1, createdMs: now,
      burnMs: draft.burnMs)
    try nodes.insert(&row)
    let parentCreate = try operations.create(ofNode: parent.id)
    // A kept node that gets a child is wanted.
    if parentCreate != nil, try operations.isParkedAsDeleted(node: parent.id) { try revive(parent) }
    let create = try queue(.create, row, dependsOn: dependsOn + (parentCreate.map { [$0] } ?? []))
    try queue(.putData, row, dependsOn: dependsOn + [create.id])
    return try transaction.zdcNode(row)
  }
}
