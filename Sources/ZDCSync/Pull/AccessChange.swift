internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// The effects of new versions of a zone's access list on this device, inside the transaction that applies their commits.
struct AccessChange {
  package let session: SyncSession
  package let zone: Int64
  package let transaction: ZDCReadWriteTransaction

  /// One version, with the commit that put it in force.
  struct Version {
    package var before: ZoneACL.Fields
    package var after: ZoneACL.Fields
    package var seq: UInt64
    package var commit: CommitHash
    package var receivedMs: UInt64
    package var isOwn: Bool
  }

  /// Call after the zone's row is stored.
  package func apply(_ versions: [Version]) throws {
    guard let first = versions.first, let last = versions.last else { return }
    transaction.cloudState.forget(zone: zone)
    for version in versions { try recordRemovals(version) }
    try ListChangeStore(transaction).retryNotAllowed(zone: zone)
    guard last.after.entry(for: session.user) != nil else {
      let lost = LostAccess(session: session, zone: zone, transaction: transaction, receivedMs: last.receivedMs)
      return try lost.settle(isOwnDecision: versions.last(where: removesUser)?.after.writer == session.user)
    }
    try queueRotation(last.after)
    let isChanged = ZDCShareList(members: first.before) != ZDCShareList(members: last.after)
    if isChanged, versions.contains(where: { !$0.isOwn }) { try announce() }
  }

  /// Whether a version removes this user. Others may follow it: the owner replaces the key after a member has left.
  private func removesUser(_ version: Version) -> Bool {
    version.before.entry(for: session.user) != nil && version.after.entry(for: session.user) == nil
  }

  private func recordRemovals(_ version: Version) throws {
    let removals = RemovalStore(transaction, zone: zone)
    for entry in version.before.entries where version.after.entry(for: entry.user) == nil {
      try removals.insert(
        RemovalStore.Removal(
          member: entry.user, seq: version.seq, commit: version.commit, writer: version.after.writer,
          receivedMs: version.receivedMs, keyGen: version.before.zoneKeyGen))
    }
  }

  // MARK: Rotations

  /// Queues a rotation if the key in force is known to others than the members, and this user may replace it. Also call
  /// this when the zone's root is read: a device whose first pull brings the list has no root before.
  func queueRotation(_ list: ZoneACL.Fields) throws {
    guard list.allows(.rotate(after: list.zoneKeyGen), by: session.user),
      try hasFormerMember(list) || transaction.isSealedForCompromisedKey(list),
      let row = try transaction.zones.zone(id: zone)
    else { return }
    try transaction.queueRotation(of: row, by: session.user, atMs: session.now(), random: session.time.random)
  }

  /// Whether a member who has left has the key in force.
  private func hasFormerMember(_ list: ZoneACL.Fields) throws -> Bool {
    try RemovalStore(transaction, zone: zone).removals().contains { removal in
      removal.keyGen == list.zoneKeyGen && list.entry(for: removal.member) == nil
    }
  }

  // MARK: The app

  /// Notifies the app that the access list of the zone's root has changed. Before the first pull has shown the root,
  /// there is nothing to report.
  package func announce() throws {
    guard let root = try transaction.nodes.root(zone: zone) else { return }
    try session.part(.access, of: zone, root.nodeID, in: transaction) {
      let node = try session.node(root, in: transaction)
      let path = try session.path(root, in: transaction)
      try session.tell(.didDiscoverModifiedNode, root.nodeID, in: transaction) {
        try $0.didDiscoverModifiedNode(node, with: .treesystem, at: path, transaction: transaction)
      }
      try transaction.delegateFailures.forgetAccess(zone: zone, node: root.nodeID)
    }
  }
}

extension ZDCShareList {
  fileprivate init(members list: ZoneACL.Fields) {
    self.init()
    for entry in list.entries { addShareItem(ZDCShareItem(entry.permissions), forUserID: entry.user.text) }
  }
}
