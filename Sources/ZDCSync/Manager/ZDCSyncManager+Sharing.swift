internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

/// A home tree of another user, or a branch of one, that this user may read, and has not accepted yet.
///
/// ```swift
/// for offer in try await session.syncManager.offeredTrees(forLocalUserID: user.uuid) {
///   guard let ownerID = offer.ownerID else { continue }
///   try await session.syncManager.acceptTree(ofUserID: ownerID, cloudID: offer.cloudID, forLocalUserID: user.uuid)
/// }
/// ```
public struct ZDCOfferedTree: Sendable, Hashable, Identifiable {
  /// The text of the owner's user ID; nil if this device does not know the owner.
  public let ownerID: String?
  /// The ``ZDCNode/cloudID`` of the tree's root.
  public let cloudID: String
  let zone: ZoneID

  /// The same as ``cloudID``.
  public var id: String { cloudID }
}

extension ZDCSyncManager {
  /// Asks the server which trees of other users the local user may read. Nothing of them is fetched.
  ///
  /// Anyone can name a user in an access list, so an offer means nothing by itself. Accept a tree only because its owner
  /// told the user about it.
  ///
  /// ```swift
  /// for offer in try await session.syncManager.offeredTrees(forLocalUserID: user.uuid) {
  ///   print(offer.id)
  /// }
  /// ```
  ///
  /// - Returns: The trees that were not accepted yet, up to 100.
  /// - Throws: `ZDCServerError`, `ZDCTransportError`.
  public func offeredTrees(forLocalUserID localUserID: String) async throws -> [ZDCOfferedTree] {
    do {
      let session = try await engine(for: localUserID).session
      let offered = try await session.api.offeredZones().zones
      return try await session.database.asyncRead { transaction in
        let known = try session.knownTrees(transaction)
        return try offered.compactMap { status in
          guard try transaction.zones.zone(localUser: session.localUser, status.zone) == nil else { return nil }
          return ZDCOfferedTree(
            ownerID: known[status.zone.tree]?.text, cloudID: status.zone.root.text, zone: status.zone)
        }
      }
    } catch { throw publicError(error) }
  }

  /// Accepts the home tree of another user, who must have given the local user access, and pulls it.
  ///
  /// From then on each pull includes the tree, and the delegate is notified of its nodes and changes as of those of the
  /// user's own tree. Its paths begin with `detached:/` and the root's ``ZDCNode/cloudID``. The owner's identity chain
  /// is fetched, verified and pinned first. Accepting a tree again does nothing but pull it.
  ///
  /// ```swift
  /// let root = try await session.syncManager.acceptTree(ofUserID: alicesUserID, forLocalUserID: user.uuid)
  /// ```
  ///
  /// - Parameters:
  ///   - ownerID: The text of the owner's user ID.
  ///   - localUserID: The local user who is a member.
  /// - Returns: The tree's root, which has no name.
  /// - Throws: ``ZDCCloudError`` with `unknownUser` if the server shows no valid identity of the owner; `ZDCServerError`
  ///   with `notFound` if the local user has no access; `ZDCSecurityError`, `ZDCTransportError`, or your delegate's error.
  @discardableResult
  public func acceptTree(ofUserID ownerID: String, forLocalUserID localUserID: String) async throws -> ZDCNode {
    try await asEngine { try await self.accept(ownerID, nil, localUserID) }
  }

  /// Accepts a branch of another user's home tree, as ``acceptTree(ofUserID:forLocalUserID:)`` accepts the whole tree.
  ///
  /// Branches of an accepted tree that are shared separately are accepted with it, if the user is a member of them.
  ///
  /// ```swift
  /// let list = try await session.syncManager.acceptTree(
  ///   ofUserID: alicesUserID, cloudID: sharedNodeID, forLocalUserID: user.uuid)
  /// ```
  ///
  /// - Parameters:
  ///   - ownerID: The text of the owner's user ID.
  ///   - cloudID: The ``ZDCNode/cloudID`` of the node that the owner shares.
  ///   - localUserID: The local user who is a member.
  /// - Returns: The shared node. Its path begins with `detached:/` and its `cloudID`, unless it is shown in a tree that the
  ///   user has accepted.
  /// - Throws: as ``acceptTree(ofUserID:forLocalUserID:)``; ``ZDCCloudError`` with `invalidParameter` if `cloudID` is none.
  @discardableResult
  public func acceptTree(
    ofUserID ownerID: String, cloudID: String, forLocalUserID localUserID: String
  ) async throws -> ZDCNode {
    try await asEngine {
      guard let root = NodeID(text: cloudID) else {
        throw ZDCCloudError(.invalidParameter, detail: "not a cloudID")
      }
      return try await self.accept(ownerID, root, localUserID)
    }
  }

  /// Replaces the keys of all nodes that were not written since a member lost access, in the user's own trees and in those
  /// that they may write. Content is not sent again.
  ///
  /// The owner's devices do this by themselves while they sync in the background, one commit a second, from a minute
  /// after a removal. Without either, each node gets a new key when it is written next.
  ///
  /// It pulls nothing and sends a commit for each thousand nodes. If it is interrupted, calling it again continues.
  ///
  /// ```swift
  /// let replaced = try await session.syncManager.replaceOldKeys(forLocalUserID: user.uuid)
  /// print(replaced, "nodes have new keys")
  /// ```
  ///
  /// - Returns: The number of nodes that still have old keys: those that this device cannot read, and those of trees that
  ///   are paused or frozen.
  /// - Throws: ``ZDCError`` with `syncedElsewhere` if another process syncs; `ZDCServerError`, `ZDCTransportError`.
  @discardableResult
  public func replaceOldKeys(forLocalUserID localUserID: String) async throws -> Int {
    try await asEngine { try await self.engine(for: localUserID).replaceOldKeys() }
  }

  /// Tries the keys that a removed member had on everything that was written to a node's tree after the removal: records,
  /// access lists, and the headers of content.
  ///
  /// The keys are those of the generations that the member had, as far as the tree still has them, and the keys of nodes
  /// that they opened. Each is tried where a device that breaks the rules could have used it: on the node that it
  /// belonged to, on the nodes below, and those of the tree on all. The log and the records are read again from the
  /// server, up to the newest commit that this device has verified, so pull before. Takes memory for one page of the log.
  ///
  /// Only the named node's tree is verified. Branches inside that are shared separately are trees of their own.
  ///
  /// ```swift
  /// let check = try await session.syncManager.verifyRemoval(
  ///   ofUserID: bobsUserID, forNodeID: list.uuid, forLocalUserID: user.uuid)
  /// if !check.isPassed { show(check.readable.map(\.cloudID)) }
  /// ```
  ///
  /// - Parameters:
  ///   - userID: The text of the removed user's ID. Their newest removal is verified.
  ///   - nodeID: The ``ZDCNode/uuid`` of any node in the tree.
  ///   - localUserID: The local user, who must be a member.
  /// - Throws: ``ZDCError`` with `nodeNotFound`; ``ZDCCloudError`` with `unknownUser` if the user was not removed from the
  ///   tree; `ZDCSecurityError` with `commitChainBroken` if the server shows another log than this device has verified;
  ///   `ZDCServerError`, `ZDCTransportError`.
  public func verifyRemoval(
    ofUserID userID: String, forNodeID nodeID: String, forLocalUserID localUserID: String
  ) async throws -> ZDCAccessCheck {
    do {
      let session = try await engine(for: localUserID).session
      let check = try await session.database.asyncRead { transaction in
        guard let node = try transaction.nodes.node(uuid: nodeID),
          let zone = try transaction.zones.zone(id: node.zone), zone.localUser == session.localUser
        else { throw ZDCError(.nodeNotFound) }
        guard let member = UserID(text: userID) else { throw ZDCCloudError(.unknownUser) }
        return try RemovalCheck(session: session, zone: zone, member: member, transaction)
      }
      return try await check.run()
    } catch { throw publicError(error) }
  }

  private func accept(_ ownerID: String, _ root: NodeID?, _ localUserID: String) async throws -> ZDCNode {
    let engine = try await engine(for: localUserID)
    let session = engine.session
    guard let owner = UserID(text: ownerID), owner != session.user,
      try await session.identities.recipients([owner], own: session.keys).keys[owner] != nil
    else { throw ZDCCloudError(.unknownUser) }
    let tree = TreeID.derive(owner: owner, trunk: .home, appTreeID: session.appTreeID)
    let zone = root.map { ZoneID(tree: tree, root: $0) } ?? ZoneID(trunkOf: tree)
    // Without access, nothing is stored.
    try await session.api.acceptZone(zone)
    let id = try await session.database.asyncReadWrite { try session.follow(zone, of: owner, $0) }
    await engine.follow(zone, row: id)
    _ = try await engine.pullRound(of: [id]) { try await $0.pull($1) }.get()
    return try await session.database.asyncRead { transaction in
      guard try transaction.zones.zone(id: id) != nil else {
        throw ServerError(.notFound, "the owner has ended the branch")
      }
      guard let root = try transaction.nodes.root(zone: id) else {
        throw ZDCSecurityError(.grantMissing, zone: zone, user: session.user)
      }
      return try transaction.zdcNode(root)
    }
  }
}

extension SyncSession {
  /// The home trees of all users whose identity this device has pinned.
  fileprivate func knownTrees(_ transaction: ZDCReadTransaction) throws -> [TreeID: UserID] {
    var trees: [TreeID: UserID] = [:]
    for user in try transaction.users.all() {
      trees[.derive(owner: user, trunk: .home, appTreeID: appTreeID)] = user
    }
    return trees
  }

  /// Inserts the row of a zone of another user, unless it is there. A pointer to it that is here is shown as its root.
  fileprivate func follow(_ zone: ZoneID, of owner: UserID, _ transaction: ZDCReadWriteTransaction) throws -> Int64 {
    if let known = try transaction.zones.zone(localUser: localUser, zone) { return known.id }
    var row = ZoneRow(localUser: localUser, appTreeID: appTreeID, trunk: .home, zone: zone, owner: owner)
    try transaction.zones.insert(&row)
    try Mounting(session: self, transaction: transaction).mount(zone: row.id)
    return row.id
  }
}
