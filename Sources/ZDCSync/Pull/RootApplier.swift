internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Applies the record of a zone's root. Its key comes with the access list, and its place is that of the zone.
struct RootApplier {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction
  let zoneRow: ZoneRow
  let leaves: LogNodeStore
  let places: LocalTreeResolver
  let quarantine: Quarantine

  private var nodes: NodeStore { transaction.nodes }

  /// Applies the root's record. The granted key opens the nodes below, whatever the root's record contains.
  ///
  /// - Parameter known: The root's row before.
  /// - Returns: The number of callbacks; nil if the record is quarantined.
  func apply(_ item: PageContents.Record, _ known: NodeRow?) throws -> Int? {
    guard let key = zoneRow.unreadableReason == nil ? zoneRow.key : nil else {
      // The missing key was reported with the access list.
      try quarantine.setAside(item.record, zoneRow.unreadableReason?.code ?? .grantMissing)
      return nil
    }
    guard let opened = try quarantine.openRoot(item.record, key) else {
      try applyUnreadable(item, key, known)
      return nil
    }
    try checkContinues(item.record, known)
    var callbacks = 0
    if var row = known {
      row.absorb(opened, item, user: session.user)
      if let known { _ = try QueuedRestoration.keep(&row, before: known, transaction) }
      try store(row, before: known)
      if known?.isPlaceholder ?? false, try !isInnerBranch() {
        callbacks = try places.announceNew(row)
      } else {
        callbacks = try announce(row, before: known)
      }
    } else if var row = try showAtPointer() {
      let before = row
      row.absorb(opened, item, user: session.user)
      try store(row, before: before)
      callbacks = try announce(row, before: before)
    } else {
      let row = NodeRow(opened, item, uuid: try uuid(), zone: zoneRow.id, parent: nil, depth: 0)
      try store(row, before: nil)
      if let root = try nodes.root(zone: zoneRow.id), !zoneRow.isTrunk {
        callbacks = try places.announceNew(root)
      }
    }
    if let list = zoneRow.head?.acl.fields {
      try AccessChange(session: session, zone: zoneRow.id, transaction: transaction).queueRotation(list)
    }
    return callbacks
  }

  /// Shows a branch in the place of a pointer that this device read before it knew of the branch: the branch was split off
  /// another one, whose log was read later.
  ///
  /// - Returns: The placeholder for the root; nil without such a pointer.
  private func showAtPointer() throws -> NodeRow? {
    guard !zoneRow.isTrunk,
      let pointer = try Mounting(session: session, transaction: transaction).pointer(to: zoneRow)
    else { return nil }
    try GraftChange(transaction, localUser: session.localUser, user: session.user)
      .show(zoneRow, root: zoneRow.zone.root, at: pointer)
    return try nodes.root(zone: zoneRow.id)
  }

  /// Whether the zone is shown in another user's: the app knows the root already, as the pointer to it.
  private func isInnerBranch() throws -> Bool {
    guard let pointer = try transaction.mounts.pointer(ofZone: zoneRow.id) else { return false }
    return try transaction.nodes.node(id: pointer).flatMap { try transaction.zones.zone(id: $0.zone)?.owner } != nil
  }

  /// Checks the record with which the genesis of a branch continues the versions of its root, against the one that this
  /// device had before.
  private func checkContinues(_ record: NodeRecord, _ known: NodeRow?) throws {
    guard !zoneRow.isTrunk, let known, let cloud = known.cloud, cloud.recordHash == record.fields.prevRecord,
      try leaves.leaf(record.fields.node)?.putSeq == 0
    else { return }
    let version = try RecordRules.version(after: cloud.recordVersion)
    // The row already has content that the cloud does not: the user has restored it, or sends it again.
    let isAhead = try QueuedRestoration(known, transaction) != nil || Resending(known, transaction) != nil
    let isSame = isAhead || record.fields.content == known.content?.content
    let continues = record.fields.recordVersion == version && isSame
    try require(continues, .splitMismatch, node: record.fields.node)
  }

  /// Notifies the app that the root of a branch has other content or another burn date. Its key is no change for the app.
  ///
  /// - Returns: The number of callbacks.
  private func announce(_ row: NodeRow, before: NodeRow?) throws -> Int {
    guard !zoneRow.isTrunk, let before else { return 0 }
    let isData = before.content?.content.blobID != row.content?.content.blobID
    let change = RemoteChange(moved: false, data: isData, record: before.burnMs != row.burnMs)
    return try places.announce(change, row, oldPath: try places.path(row))
  }

  /// Stores the root's key even though its record is quarantined.
  private func applyUnreadable(_ item: PageContents.Record, _ key: NodeKey, _ known: NodeRow?) throws {
    let fields = item.record.fields
    var row =
      try nodes.root(zone: zoneRow.id)
      ?? NodeRow(
        uuid: try uuid(), zone: zoneRow.id, nodeID: fields.node, parent: nil, depth: 0, nameTag: .zero, name: [],
        key: key, keyGen: fields.keyGen, createdMs: fields.timeMs)
    (row.key, row.keyGen) = (key, fields.keyGen)
    row.quarantine = try transaction.unreadable.code(zone: zoneRow.id, node: fields.node)
    row.absorbPublic(item, name: [])
    try store(row, before: known)
  }

  private func store(_ root: NodeRow, before: NodeRow?) throws {
    var row = root
    // The access list contains the zone's old keys.
    row.historyWrap = zoneRow.head?.acl.fields.historyWrap ?? []
    if before == nil { try nodes.insert(&row) } else { try nodes.update(row) }
  }

  private func uuid() throws -> String {
    if zoneRow.owner != nil {
      return "\(session.localUserID)|\(zoneRow.appTreeID)|\(zoneRow.zone.root.text)"
    }
    guard zoneRow.isTrunk else { return UUIDv7.make(atMs: session.now()) }
    return trunkUUID(localUserID: session.localUserID, treeID: zoneRow.appTreeID, trunk: zoneRow.trunk)
  }
}
