internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

/// A tree of another user that this user may read, and has not accepted yet.
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
  /// - Returns: The trees that were not accepted yet, up to 100.
  /// - Throws: `ServerError`, `TransportError`.
  public func offeredTrees(forLocalUserID localUserID: String) async throws -> [ZDCOfferedTree] {
    do {
      let session = try await engine(for: localUserID).session
      let offered = try await session.api.offeredZones().zones
      return try await session.database.asyncRead { transaction in
        let known = try session.knownTrees(transaction)
        return try offered.compactMap { status in
          guard try transaction.zones.zone(localUser: session.localUser, status.zone) == nil else { return nil }
          return ZDCOfferedTree(
            ownerID: known[status.zone]?.text, cloudID: status.zone.root.text, zone: status.zone)
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
  /// - Throws: ``ZDCCloudError`` with `unknownUser` if the server shows no valid identity of the owner; `ServerError`
  ///   with `notFound` if the local user has no access; `ZDCSecurityError`, `TransportError`, or your delegate's error.
  @discardableResult
  public func acceptTree(ofUserID ownerID: String, forLocalUserID localUserID: String) async throws -> ZDCNode {
    try await asEngine { try await self.accept(ownerID, localUserID) }
  }

  /// Replaces the keys of all nodes that were not written since a member lost access, in the user's own trees and in those
  /// that they may write. Content is not sent again.
  ///
  /// The owner's devices do this by themselves while they sync in the background, one commit a second, from a minute
  /// after a removal. Without either, each node gets a new key when it is written next.
  ///
  /// It pulls nothing and sends a commit for each thousand nodes. If it is interrupted, calling it again continues.
  ///
  /// - Returns: The number of nodes that still have old keys: those that this device cannot read, and those of trees that
  ///   are paused or frozen.
  /// - Throws: ``ZDCError`` with `syncedElsewhere` if another process syncs; `ServerError`, `TransportError`.
  @discardableResult
  public func replaceOldKeys(forLocalUserID localUserID: String) async throws -> Int {
    try await asEngine { try await self.engine(for: localUserID).replaceOldKeys() }
  }

  private func accept(_ ownerID: String, _ localUserID: String) async throws -> ZDCNode {
    let engine = try await engine(for: localUserID)
    let session = engine.session
    guard let owner = UserID(text: ownerID), owner != session.user,
      try await session.identities.recipients([owner], own: session.keys).keys[owner] != nil
    else { throw ZDCCloudError(.unknownUser) }
    let zone = ZoneID(trunkOf: .derive(owner: owner, trunk: .home, appTreeID: session.appTreeID))
    // Without access, nothing is stored.
    try await session.api.acceptZone(zone)
    let id = try await session.database.asyncReadWrite { transaction -> Int64 in
      if let known = try transaction.zones.zone(localUser: session.localUser, zone) { return known.id }
      var row = ZoneRow(
        localUser: session.localUser, appTreeID: session.appTreeID, trunk: .home, zone: zone, owner: owner)
      try transaction.zones.insert(&row)
      return row.id
    }
    await engine.follow(zone, row: id)
    _ = try await engine.pullRound(of: [id]) { try await $0.pull($1) }.get()
    return try await session.database.asyncRead { transaction in
      guard let root = try transaction.nodes.root(zone: id) else {
        throw ZDCSecurityError(.grantMissing, zone: zone, user: session.user)
      }
      return try transaction.zdcNode(root)
    }
  }
}

extension SyncSession {
  /// The home trees of all users whose identity this device has pinned, by zone.
  fileprivate func knownTrees(_ transaction: ZDCReadTransaction) throws -> [ZoneID: UserID] {
    var trees: [ZoneID: UserID] = [:]
    for user in try transaction.users.all() {
      trees[ZoneID(trunkOf: .derive(owner: user, trunk: .home, appTreeID: appTreeID))] = user
    }
    return trees
  }
}
