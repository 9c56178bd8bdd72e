package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// Inserts the rows of an app's four trunks.
package struct TrunkRows {
  package let transaction: ZDCReadWriteTransaction
  package let localUser: Int64
  package let appTreeID: String
  package let owner: UserID

  /// Inserts the trunks after a login. Their IDs are known, their content is not; the first pull fills them.
  package func insertUnknown() throws {
    for trunk in Trunk.allCases {
      var row = zoneRow(trunk)
      guard try transaction.zones.zone(localUser: localUser, row.zone) == nil else { continue }
      try transaction.zones.insert(&row)
    }
  }

  /// Inserts the trunks after a creation. This device made them, so nodes can be put into them before the first pull.
  ///
  /// - Parameter bundles: The bundles of the registration request, in trunk order. They are verified like any others.
  package func insertGenesis(_ bundles: [[UInt8]], keys: UserKeys) throws {
    guard bundles.count == Trunk.allCases.count else { throw ZDCError(.corruptDatabase) }
    for (trunk, bundle) in zip(Trunk.allCases, bundles) {
      try insertGenesis(trunk, PageContents(bundle), keys: keys)
    }
  }

  private func insertGenesis(_ trunk: Trunk, _ birth: PageContents, keys: UserKeys) throws {
    guard let commit = birth.commits.first?.commit, let acl = birth.acl(of: commit),
      let grant = birth.grants.values.first, let root = birth.records.values.first
    else { throw ZDCError(.corruptDatabase) }
    var row = zoneRow(trunk)
    try require(commit.fields.zone == row.zone, .recordBindingMismatch)
    let key = try keys.open(grant, in: acl)
    row.key = key
    try transaction.zones.insert(&row)
    var leaves = LogNodeStore(db: transaction.database, zone: row.id, commit: commit, pending: false)
    row.head = try ZoneReplay(identities: keys).apply(commit, acl: acl, after: nil, to: &leaves)
    try transaction.zones.update(row)
    try CommitLogStore(db: transaction.database, zone: row.id).insert(commit, isOwn: true, raisesKeys: false)
    let opened = try RecordOpener.open(zoneRoot: root.record, key: key, commitments: acl.fields.commitments)
    let uuid = trunkUUID(localUserID: owner.text, treeID: appTreeID, trunk: trunk)
    var node = NodeRow(opened, root, uuid: uuid, zone: row.id, parent: nil, depth: 0)
    try transaction.nodes.insert(&node)
  }

  private func zoneRow(_ trunk: Trunk) -> ZoneRow {
    let tree = TreeID.derive(owner: owner, trunk: trunk, appTreeID: appTreeID)
    return ZoneRow(localUser: localUser, appTreeID: appTreeID, trunk: trunk, zone: ZoneID(trunkOf: tree))
  }
}
