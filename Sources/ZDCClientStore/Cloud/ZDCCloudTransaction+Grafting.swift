internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

// Branches of other users in the user's own tree.

extension ZDCCloudReadTransaction {
  /// Returns what an invitation to a shared node has to contain.
  ///
  /// Call it in `data(forMessage:transaction:)`, and let the message depend on the operations that share the node:
  ///
  /// ```swift
  /// guard let invite = cloud.graftInvite(for: list) else { return }
  /// let invitation = ["cloudID": invite.cloudID, "cloudPath": invite.cloudPath.path()]
  /// let data = ZDCData(data: try JSONEncoder().encode(invitation))
  /// ```
  ///
  /// - Parameter node: A node below the root of the home trunk that is shared: the one that was named when it was shared.
  /// - Returns: nil for another node, and as long as the access list that the cloud has does not let the recipients of the
  ///   message read. Outside of `data(forMessage:transaction:)` one other member is enough.
  public final func graftInvite(for node: ZDCNode) -> ZDCGraftInvite? {
    transaction.poisoning {
      guard let row = try row(node.uuid).map(transaction.shown), row.parent == nil, row.pointer == nil else {
        return nil
      }
      return try invite(to: try transaction.cloudState.facts(ofZone: row.zone).row)
    } ?? nil
  }

  private final func invite(to zone: ZoneRow) throws -> ZDCGraftInvite? {
    guard zone.trunk == .home, !zone.isTrunk, let head = zone.head, let own = UserID(text: localUserID),
      isReadable(head.acl.fields, by: transaction.cloudState.recipients, own: own),
      let genesis = try CommitLogStore(db: transaction.database, zone: zone.id).hash(seq: 0)
    else { return nil }
    let target = PointerTarget(
      owner: zone.owner ?? own, zone: zone.zone, node: zone.zone.root, genesis: genesis, seq: head.seq, head: head.hash)
    return ZDCGraftInvite(cloudID: zone.zone.root.text, cloudPath: ZDCCloudPath(target))
  }

  private final func isReadable(_ list: ZoneACL.Fields, by recipients: [UserID], own: UserID) -> Bool {
    guard recipients.isEmpty else {
      return recipients.allSatisfy { list.entry(for: $0)?.permissions.contains(.read) ?? false }
    }
    return list.entries.contains { $0.user != own && $0.user != list.owner && $0.permissions.contains(.read) }
  }
}

extension ZDCCloudTransaction {
  /// Puts a branch of another user into the local user's tree, where it acts like a branch of their own.
  ///
  /// A pointer with the name is created at the path and queued, and the branch is accepted and read with the next pull.
  /// Then the delegate is notified of the node with `didDiscoverNewNode`, and of the nodes below it, parents first. The
  /// user's other devices find the pointer, and do the same. Name and place are the local user's own: the owner's renames and
  /// moves change nothing here, and renaming or moving the node changes nothing for the owner. Nodes that are created
  /// below it are created in the owner's tree, for all members.
  ///
  /// The returned node has its final ``ZDCNode/uuid``, so the app can link it at once. Until it was read it has no content,
  /// no share list, and takes no children.
  ///
  /// To end it, ``delete(_:)`` the node: the user leaves the branch. If the owner takes the access away, the delegate
  /// is notified with `didDiscoverConflict` (`graft_DstNodeNotReadable`) and `didDiscoverDeletedNode`.
  ///
  /// ```swift
  /// guard let cloudPath = ZDCCloudPath(path: invitation.cloudPath) else { return }
  /// let path = cloudTransaction.conflictFreePath(ZDCTreesystemPath(pathComponents: [invitation.title]))
  /// let node = try cloudTransaction.graftNode(
  ///   withLocalPath: path, remoteCloudPath: cloudPath, remoteCloudID: invitation.cloudID, remoteUser: sender)
  /// ```
  ///
  /// - Parameters:
  ///   - localPath: A path in the home trunk, outside of branches of other users.
  ///   - remoteCloudPath: The path from the invitation.
  ///   - remoteCloudID: The ``ZDCNode/cloudID`` from the invitation.
  ///   - remoteUser: The user who sent the invitation: the owner, or a member who may share.
  /// - Returns: The node at `localPath`.
  /// - Throws: ``ZDCCloudError``: `conflict` if the name is taken, `missingParent` if a node on the way is missing,
  ///   `alreadyGrafted` if the branch is in the tree already, `invalidParameter` for another trunk, a path inside of another
  ///   user's branch (a branch cannot be put below itself), a node of the user's own, of another app or of another trunk, or
  ///   a `remoteCloudID` that is not the path's.
  @discardableResult
  public func graftNode(
    withLocalPath localPath: ZDCTreesystemPath, remoteCloudPath: ZDCCloudPath, remoteCloudID: String,
    remoteUser: ZDCUser
  ) throws -> ZDCNode {
    let target = remoteCloudPath.target
    let own = try check(target, cloudID: remoteCloudID, sender: remoteUser)
    let parent = try graftParent(localPath)
    try checkIsNew(target)
    let name = try fold(localPath.nodeName, localPath)
    let pointer = try insertPointer(to: target, name, below: parent, localPath)
    let change = GraftChange(readWrite, localUser: localUser, user: own)
    guard let zone = try change.follow(target, appTreeID: treeID) else {
      throw ZDCCloudError(.invalidParameter, detail: "the cloud path names another history than the branch has")
    }
    try transaction.mounts.set(zone: zone, at: pointer.id)
    let create = try operations.create(ofNode: parent.id)
    try queue(.create, pointer, dependsOn: create.map { [$0] } ?? [])
    return try transaction.zdcNode(pointer)
  }

  // MARK: Checks

  /// - Returns: The local user.
  private func check(_ target: PointerTarget, cloudID: String, sender: ZDCUser) throws -> UserID {
    guard let own = UserID(text: localUserID) else { throw ZDCError(.corruptDatabase) }
    guard target.node.text == cloudID, target.node == target.zone.root else {
      throw ZDCCloudError(.invalidParameter, detail: "the cloud path is that of another node")
    }
    guard target.owner != own, sender.uuid != localUserID else {
      throw ZDCCloudError(.invalidParameter, detail: "the node is the local user's own")
    }
    let home = TreeID.derive(owner: target.owner, trunk: .home, appTreeID: treeID)
    guard target.zone.tree == home, target.zone != ZoneID(trunkOf: home) else {
      throw ZDCCloudError(.invalidParameter, detail: "the node is not in the home trunk of this app")
    }
    return own
  }

  private func graftParent(_ path: ZDCTreesystemPath) throws -> NodeRow {
    guard path.trunk == .home, let parentPath = path.parent() else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "a branch can be grafted below the home trunk only")
    }
    guard let parent = try parentRow(at: parentPath) else { throw try missingParent(path) }
    guard try transaction.cloudState.facts(ofZone: parent.zone).row.owner == nil else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "the parent is in a branch of another user")
    }
    return parent
  }

  private func checkIsNew(_ target: PointerTarget) throws {
    guard let zone = try transaction.zones.zone(localUser: localUser, target.zone),
      try transaction.mounts.pointer(ofZone: zone.id) != nil, let root = try transaction.nodes.root(zone: zone.id)
    else { return }
    throw ZDCCloudError(.alreadyGrafted, path: try transaction.zdcPath(root))
  }

  // MARK: The pointer

  private func insertPointer(
    to target: PointerTarget, _ name: FoldedName, below parent: NodeRow, _ path: ZDCTreesystemPath
  ) throws -> NodeRow {
    try checkMayCreate(below: parent, path)
    let tag = try nodes.nameKeys(of: parent).nameTag(name)
    guard try !nodes.hasChild(of: parent.id, tag: tag) else {
      throw ZDCCloudError(.conflict, path: path, detail: "the name is taken")
    }
    var row = NodeRow(
      uuid: UUIDv7.make(atMs: now), zone: parent.zone, nodeID: .random(), parent: parent.id, depth: parent.depth + 1,
      nameTag: tag, name: name.utf8, key: .random(), keyGen: 1, createdMs: now)
    row.unused = RecordPrivate(name: nil, createdMs: 0, pointer: target)
    try nodes.insert(&row)
    return row
  }

  /// Leaves a grafted branch: deletes its pointer, then removes the user from its access list.
  func leave(_ root: NodeRow, at pointer: NodeRow) throws -> OperationRow? {
    try checkMayWrite(zone: pointer.zone)
    guard let own = UserID(text: localUserID) else { throw ZDCError(.corruptDatabase) }
    let change = GraftChange(readWrite, localUser: localUser, user: own)
    let delete = try change.delete(pointer)
    try change.leave(zone: root.zone, after: delete?.id)
    return delete
  }

  /// Leaves grafted branches whose pointers are deleted with a node above them.
  func leave(_ roots: [NodeRow], after delete: OperationRow?) throws {
    guard !roots.isEmpty else { return }
    guard let own = UserID(text: localUserID) else { throw ZDCError(.corruptDatabase) }
    let change = GraftChange(readWrite, localUser: localUser, user: own)
    for root in roots { try change.leave(zone: root.zone, after: delete?.id) }
  }
}
