package import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

// Changes of access lists. Each is a queued operation, like all other changes.

extension ZDCCloudTransaction {
  /// Gives a user permissions on a node and everything below it, now and in the future.
  ///
  /// The operation goes out with the next push: the user gets the key of the branch, sealed for them, and an entry in its
  /// signed access list. If the user has permissions already, these replace them, unless another device has removed the
  /// user in the meantime: a removal wins over a change of permissions. All changes of one branch that are queued
  /// go out together; a later call for the same user replaces an earlier one that was not sent yet.
  ///
  /// ```swift
  /// let item = ZDCShareItem()
  /// item.addPermission(.read)
  /// item.addPermission(.write)
  /// let operations = cloudTransaction.recursiveAddShareItem(item, forUserID: bobsUserID, nodeID: listNodeID)
  /// ```
  ///
  /// Misuse poisons the transaction: nothing in it is written, and its caller gets the ``ZDCCloudError`` that
  /// ``share(nodeID:withUserID:item:)`` throws. A message that depends on the operations is therefore never queued
  /// without them.
  ///
  /// Each node of the home trunk can be shared. It and everything below it then have a share list that is independent of
  /// that of the nodes above: it begins with the members that the branch has now. Only the owner of a tree can do that;
  /// the list can then be changed by each member who may share.
  ///
  /// Branches below that are shared separately have lists of their own. The call changes each of them in the same way, with
  /// one operation for each list: those that the node's owner owns, and whose list the local user may change. A permission
  /// that depends on the place below the node, as of `L` and `U`, is one to read
  /// there. Grafted branches of other users keep their members.
  ///
  /// - Parameters:
  ///   - shareItem: The permissions: read, read and write, or read, write and share. The others narrow read and write.
  ///   - userID: The text of the user's ID. This device must know the user.
  ///   - nodeID: The node's ``ZDCNode/uuid``: the root of the home trunk, or any node below it.
  /// - Returns: The queued operations, each before those of the branches inside of its own. Empty if the user has exactly
  ///   these permissions already.
  @discardableResult
  public func recursiveAddShareItem(
    _ shareItem: ZDCShareItem, forUserID userID: String, nodeID: String
  ) -> [ZDCCloudOperation] {
    readWrite.poisoning { try share(nodeID: nodeID, withUserID: userID, item: shareItem) } ?? []
  }

  /// Takes all permissions on a node and everything below it from a user.
  ///
  /// The operation goes out with the next push. It replaces the key of the branch in the same commit: the user can read
  /// nothing that is written afterwards, even together with the server. Nodes that are not written again keep the keys
  /// that the user had; see ``ZDCCloudReadTransaction/accessReceipts(forNodeID:)``.
  ///
  /// Branches below that are shared separately have lists of their own. Each that names the user is changed by one operation
  /// and gets a new key, as described for ``recursiveAddShareItem(_:forUserID:nodeID:)``. None of the operations waits for
  /// another one. Branches that another device splits off before the removal is sent are included. Each node has its own
  /// receipts.
  ///
  /// Misuse poisons the transaction, as in ``recursiveAddShareItem(_:forUserID:nodeID:)``.
  ///
  /// ```swift
  /// let operations = cloud.recursiveRemoveShareItem(forUserID: bobsUserID, nodeID: listNodeID)
  /// if operations.isEmpty { show(["Bob had no access."]) }
  /// ```
  ///
  /// - Parameters:
  ///   - userID: The text of the user's ID.
  ///   - nodeID: The node's ``ZDCNode/uuid``.
  /// - Returns: The queued operations, each before those of the branches inside of its own. Empty if the user has no
  ///   permissions.
  @discardableResult
  public func recursiveRemoveShareItem(forUserID userID: String, nodeID: String) -> [ZDCCloudOperation] {
    readWrite.poisoning { try unshare(nodeID: nodeID, withUserID: userID) } ?? []
  }

  /// Like ``recursiveAddShareItem(_:forUserID:nodeID:)``, but throws where that poisons the transaction.
  ///
  /// - Throws: ``ZDCCloudError``: `invalidParameter` for an unknown node, an item that is empty or is no
  ///   valid combination, or the owner; `unknownUser`; `notAllowed` without the permission to share, or for permissions that the
  ///   local user does not have; `unsupportedShare` for a node of another trunk, or a pointer; `missingParent` before the
  ///   first pull. `ZDCSecurityError`: `splitNeedsOwner` for a node of another user's tree that has no dedicated share
  ///   list; `identityChangedNeedsAcceptance`.
  @discardableResult
  public func share(
    nodeID: String, withUserID userID: String, item: ZDCShareItem
  ) throws -> [ZDCCloudOperation] {
    let root = try sharedRoot(nodeID)
    let user = try knownUser(userID)
    let permissions = item.aclPermissions
    guard !item.isEmpty else {
      throw ZDCCloudError(.invalidParameter, detail: "the share item is empty: add a permission")
    }
    guard permissions.isCombination else {
      throw ZDCCloudError(
        .invalidParameter, detail: "the permissions must be r, rw, rws, or rw narrowed by R, L, U, W, or by W and B")
    }
    try checkMayShare(root, user: user, giving: permissions)
    if root.list.entry(for: user) == nil { try checkIdentity(of: user) }
    let inner = try branches(inside: root, allowing: .set(user, permissions.inherited))
      .filter { $0.list.entry(for: user) != nil || isAccepted(user) }
    return try queue(addition(of: user, permissions, to: root), root)
      + inner.flatMap { try queue(addition(of: user, permissions.inherited, to: $0), $0) }
  }

  /// Like ``recursiveRemoveShareItem(forUserID:nodeID:)``, but throws where that poisons the transaction.
  ///
  /// A member may remove themselves without the permission to share.
  ///
  /// ```swift
  /// try await tree.write { _, cloud in
  ///   _ = try cloud.unshare(nodeID: listNodeID, withUserID: bobsUserID)
  /// }
  /// ```
  ///
  /// - Throws: ``ZDCCloudError`` as ``share(nodeID:withUserID:item:)``.
  @discardableResult
  public func unshare(nodeID: String, withUserID userID: String) throws -> [ZDCCloudOperation] {
    let root = try sharedRoot(nodeID)
    guard let user = UserID(text: userID) else { throw ZDCCloudError(.unknownUser) }
    try checkMayShare(root, user: user, giving: [])
    let inner = try branches(inside: root, allowing: .remove(user))
    return try ([root] + inner).flatMap { try queue(.remove(user), $0) }
  }

  // MARK: Checks

  /// The top of a branch with its own list, or one that is about to get one.
  private struct SharedRoot {
    var row: NodeRow
    var zone: Int64
    var nodeID: NodeID
    /// The list in force, or the one with which the branch will begin.
    var list: ZoneACL.Fields
    /// Whether the list cannot be changed any more, because the owner has closed their account.
    var isFinal = false

    init(_ row: NodeRow, list: ZoneACL.Fields, isFinal: Bool = false) {
      (self.row, zone, nodeID) = (row, row.zone, row.nodeID)
      (self.list, self.isFinal) = (list, isFinal)
    }
  }

  private func sharedRoot(_ nodeID: String) throws -> SharedRoot {
    guard let row = try row(nodeID).map(transaction.shown) else {
      throw ZDCCloudError(.invalidParameter, detail: "the node is not in the tree")
    }
    return try sharedRoot(row)
  }

  private func sharedRoot(_ row: NodeRow) throws -> SharedRoot {
    let zone = try transaction.cloudState.facts(ofZone: transaction.destination(of: row) ?? row.zone).row
    guard zone.trunk == .home, row.pointer == nil else {
      throw ZDCCloudError(.unsupportedShare, detail: "only the home trunk and nodes below it can be shared")
    }
    guard let list = zone.head?.acl.fields else {
      throw ZDCCloudError(.missingParent, detail: "the trunk has not been pulled yet")
    }
    guard row.parent != nil else {
      return SharedRoot(row, list: list, isFinal: zone.ownerAccount != .open)
    }
    guard list.owner.text == localUserID else { throw ZDCSecurityError(.splitNeedsOwner, node: row.nodeID) }
    return SharedRoot(row, list: list.inherited())
  }

  private func knownUser(_ userID: String) throws -> UserID {
    guard let user = UserID(text: userID) else { throw ZDCCloudError(.unknownUser) }
    let isLocal = try transaction.localUsers.readyIDs().contains(user)
    guard try isLocal || transaction.users.chain(of: user) != nil else { throw ZDCCloudError(.unknownUser) }
    return user
  }

  /// A member whose words were changed keeps their access. A new member must be accepted first.
  private func checkIdentity(of user: UserID) throws {
    switch transaction.user(id: user.text)?.identity {
    case .changed: throw ZDCSecurityError(.identityChangedNeedsAcceptance, user: user)
    case .closed: throw ZDCCloudError(.invalidParameter, detail: "the user has closed the account")
    default: return
    }
  }

  private func isAccepted(_ user: UserID) -> Bool {
    ![.changed, .closed].contains(transaction.user(id: user.text)?.identity)
  }

  private func checkMayShare(_ root: SharedRoot, user: UserID, giving permissions: ZoneACL.Permissions) throws {
    guard user != root.list.owner else {
      throw ZDCCloudError(.invalidParameter, detail: "the owner always has all permissions")
    }
    let change = permissions.isEmpty ? ListChange.remove(user) : .set(user, permissions)
    guard try mayMake(change, root) else { throw ZDCCloudError(.notAllowed) }
  }

  private func mayMake(_ change: ListChange, _ root: SharedRoot) throws -> Bool {
    guard let own = UserID(text: localUserID) else { throw ZDCError(.corruptDatabase) }
    return root.list.allows(change, by: own) && !root.isFinal
  }

  /// Whether the list names the user, and no removal is on its way that could make a change of permissions void.
  private func isMember(_ user: UserID, _ root: SharedRoot) throws -> Bool {
    guard root.list.entry(for: user) != nil else { return false }
    return try !ListChangeStore(transaction).isInFlight(node: root.row, member: user)
  }

  // MARK: Branches inside

  /// Returns the branches below with lists of their own that belong to the same owner, and those that are about to get one,
  /// if the local user may make the change there. Each precedes those inside of it.
  private func branches(inside root: SharedRoot, allowing change: ListChange) throws -> [SharedRoot] {
    try branches(inside: root, splits: queuedSplits(by: root.list.owner)).filter { try mayMake(change, $0) }
  }

  private func branches(inside root: SharedRoot, splits: [NodeRow]) throws -> [SharedRoot] {
    let split = try splits.filter { try $0.id != root.row.id && nodes.isNode($0.id, atOrBelow: root.row.id) }
    let inner = try transaction.mounts.zones(below: root.row.id).flatMap { zone in
      guard let branch = try branch(ofZone: zone, in: root) else { return [SharedRoot]() }
      // Without its root, nothing below it is known.
      return try [branch] + (branch.row.zone == zone ? branches(inside: branch, splits: splits) : [])
    }
    return try split.map(sharedRoot) + inner
  }

  /// - Returns: nil for a branch of another user than the owner of the one around it, and one that has ended.
  private func branch(ofZone id: Int64, in outer: SharedRoot) throws -> SharedRoot? {
    guard let zone = try transaction.zones.zone(id: id), !zone.isClosed,
      zone.owner ?? UserID(text: localUserID) == outer.list.owner,
      let row = try nodes.root(zone: id) ?? transaction.mounts.pointer(ofZone: id).flatMap({ try nodes.node(id: $0) })
    else { return nil }
    // Before the first pull, the list is likely to be that of the branch around it.
    var branch = SharedRoot(
      row, list: zone.head?.acl.fields ?? outer.list.inherited(), isFinal: zone.ownerAccount != .open)
    (branch.zone, branch.nodeID) = (id, zone.zone.root)
    return branch
  }

  /// Returns the nodes that are to get a list of their own, the outer ones first. Only the owner makes such lists.
  private func queuedSplits(by owner: UserID) throws -> [NodeRow] {
    guard owner.text == localUserID else { return [] }
    return try ListChangeStore(transaction).splitNodes(localUser: localUser).filter { row in
      try transaction.zones.zone(id: transaction.destination(of: row) ?? row.zone)?.owner == nil
    }
  }

  // MARK: Queueing

  private func addition(
    of user: UserID, _ permissions: ZoneACL.Permissions, to root: SharedRoot
  ) throws -> ListChange {
    try isMember(user, root) ? .modify(user, permissions) : .set(user, permissions)
  }

  private func queue(_ change: ListChange, _ root: SharedRoot) throws -> [ZDCCloudOperation] {
    guard let member = change.member else { return [] }
    let store = ListChangeStore(transaction)
    let isKnown = try root.list.has(change) && !store.isInFlight(node: root.row, member: member)
    let waiting = try store.waiting(node: root.row, member: member)
    if !waiting.isEmpty { signalQueue() }
    if isKnown {
      for operation in waiting { try operations.delete(id: operation.id) }
      return []
    }
    if var last = waiting.last {
      (last.listChange, last.reason, last.reasonDetail, last.notBeforeMs) = (change, .ready, nil, 0)
      try operations.update(last)
      return [try transaction.zdcOperation(last)]
    }
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: root.zone, kind: .changeList, node: root.row.id,
      nodeUUID: root.row.uuid, nodeID: root.nodeID, createdMs: now)
    operation.listChange = change
    // A node that is not in the cloud yet has nothing to split off.
    let create = try operations.create(ofNode: root.row.id)
    try operations.insert(&operation, dependsOn: create.map { [$0] } ?? [])
    signalQueue()
    return [try transaction.zdcOperation(operation)]
  }
}

extension ZoneACL.Fields {
  /// The list with which a branch of this zone begins that is split off: the same members.
  ///
  /// The rights `L` and `U` depend on the place below the zone's root, so in the branch they allow no change.
  package func inherited() -> ZoneACL.Fields {
    var list = self
    for index in list.entries.indices { list.entries[index].permissions = list.entries[index].permissions.inherited }
    return list
  }

  /// Whether the list already has the state that the change wants.
  package func has(_ change: ListChange) -> Bool {
    switch change {
    case .set(let user, let permissions): entry(for: user)?.permissions == permissions
    case .modify(let user, let permissions): entry(for: user).map { $0.permissions == permissions } ?? true
    case .remove(let user): entry(for: user) == nil
    case .rotate(let generation): zoneKeyGen > generation
    }
  }

  /// Whether a user may make the change. A member can only give permissions that they have, and the owner's never change.
  package func allows(_ change: ListChange, by writer: UserID) -> Bool {
    guard change.member != owner else { return false }
    if writer == owner { return true }
    let own = entry(for: writer)?.permissions ?? []
    switch change {
    case .set(_, let permissions), .modify(_, let permissions):
      return own.contains(.share) && own.mayGive(permissions)
    case .remove(let user): return own.contains(.share) || user == writer
    case .rotate: return own.contains(.share)
    }
  }
}

extension ZoneACL.Permissions {
  /// The permissions in a branch inside of the one for which they were given.
  package var inherited: ZoneACL.Permissions { isDisjoint(with: [.leafsOnly, .userOnly]) ? self : .read }
}
