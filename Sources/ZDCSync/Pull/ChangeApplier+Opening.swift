package import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

// Opens records, and quarantines those that cannot be opened.

extension ChangeApplier {
  /// Returns nil if the record cannot be opened. The last good version then stays visible, and the node waits for a
  /// later put.
  package func open(_ record: NodeRecord, parent: NodeRow) throws -> OpenedRecord? {
    do {
      let keys = try nodes.keys(of: parent, keyGen: record.fields.parentKeyGen, tree: zoneRow.zone.tree)
      return try RecordOpener.open(record, parent: keys)
    } catch let error as ZDCSecurityError {
      try quarantine(record, error)
      return nil
    }
  }

  /// Opens the record of a known node whose parent is no longer here. Returns nil if the record cannot be opened.
  package func open(_ record: NodeRecord, key: NodeKey) throws -> OpenedRecord? {
    do throws(ZDCSecurityError) {
      return try RecordOpener.open(record, key: key)
    } catch {
      try quarantine(record, error)
      return nil
    }
  }

  /// Returns the tag under which the local tree finds the node, which always uses the parent's newest key.
  func localTag(_ opened: OpenedRecord, below parent: NodeRow) throws -> NameTag {
    let fields = opened.record.fields
    if fields.parentKeyGen == parent.keyGen { return fields.nameTag }
    return try nodes.keys(of: parent).nameTag(folded: opened.secrets.name)
  }

  // MARK: The zone's root

  /// Applies the root's record. The granted key opens the nodes below, whatever the root's record contains.
  mutating func applyRoot(_ item: PageContents.Record) throws -> Bool {
    let known = try nodes.root(zone: zoneRow.id)
    try checkAgainstPin(item.record, known)
    guard let key = zoneRow.unreadableReason == nil ? zoneRow.key : nil else {
      // The missing key was reported with the access list.
      try setAside(item.record, zoneRow.unreadableReason?.code ?? .grantMissing)
      return true
    }
    guard let opened = try openRoot(item.record, key) else {
      try applyUnreadableRoot(item, key, known)
      return true
    }
    try checkContinues(item.record, known)
    if var row = known {
      absorb(opened, item, into: &row)
      if let known { _ = try keepRestored(&row, before: known) }
      try storeRoot(row, before: known)
      if known?.isPlaceholder ?? false, try !isInnerBranch() {
        try announceNew(row)
      } else {
        try announceRoot(row, before: known, opened)
      }
    } else if var row = try showAtPointer() {
      let before = row
      absorb(opened, item, into: &row)
      try storeRoot(row, before: before)
      try announceRoot(row, before: before, opened)
    } else {
      let row = NodeRow(opened, item, uuid: try rootUUID(), zone: zoneRow.id, parent: nil, depth: 0)
      try storeRoot(row, before: nil)
      if let root = try nodes.root(zone: zoneRow.id), !zoneRow.isTrunk { try announceNew(root) }
    }
    if let list = zoneRow.head?.acl.fields {
      try AccessChange(session: session, zone: zoneRow.id, transaction: transaction).queueRotation(list)
    }
    return try finish(zoneRow.zone.root)
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
  private mutating func announceRoot(_ row: NodeRow, before: NodeRow?, _ opened: OpenedRecord) throws {
    guard !zoneRow.isTrunk, let before else { return }
    let isData = before.content?.content.blobID != row.content?.content.blobID
    let change = RemoteChange(moved: false, data: isData, record: before.burnMs != row.burnMs)
    try announce(change, row, oldPath: try places.path(row), opened)
  }

  private func openRoot(_ record: NodeRecord, _ key: NodeKey) throws -> OpenedRecord? {
    guard let commitments = zoneRow.head?.acl.fields.commitments else { return nil }
    do throws(ZDCSecurityError) {
      return try RecordOpener.open(zoneRoot: record, key: key, commitments: commitments)
    } catch {
      try quarantine(record, error)
      return nil
    }
  }

  /// Stores the root's key even though its record is quarantined.
  private func applyUnreadableRoot(_ item: PageContents.Record, _ key: NodeKey, _ known: NodeRow?) throws {
    let fields = item.record.fields
    var row =
      try nodes.root(zone: zoneRow.id)
      ?? NodeRow(
        uuid: try rootUUID(), zone: zoneRow.id, nodeID: fields.node, parent: nil, depth: 0, nameTag: .zero, name: [],
        key: key, keyGen: fields.keyGen, createdMs: fields.timeMs)
    (row.key, row.keyGen) = (key, fields.keyGen)
    row.quarantine = try transaction.unreadable.code(zone: zoneRow.id, node: fields.node)
    row.absorbPublic(item, name: [])
    try storeRoot(row, before: known)
  }

  private func storeRoot(_ root: NodeRow, before: NodeRow?) throws {
    var row = root
    // The access list contains the zone's old keys.
    row.historyWrap = zoneRow.head?.acl.fields.historyWrap ?? []
    guard let before else { return try nodes.insert(&row) }
    try nodes.update(row)
    if row.key != before.key { try places.retagChildren(of: row) }
  }

  private func rootUUID() throws -> String {
    if zoneRow.owner != nil {
      return "\(session.localUserID)|\(zoneRow.appTreeID)|\(zoneRow.zone.root.text)"
    }
    guard zoneRow.isTrunk else { return UUIDv7.make(atMs: session.now()) }
    return trunkUUID(localUserID: session.localUserID, treeID: zoneRow.appTreeID, trunk: zoneRow.trunk)
  }

  // MARK: Unreadable records

  /// Quarantines a record without rejecting its commit. The record's public fields are kept, because the next version
  /// follows it, on whichever device it is made.
  package func quarantine(_ record: NodeRecord, _ error: ZDCSecurityError) throws {
    let fields = record.fields
    let event = error.with(zone: zoneRow.zone, node: fields.node, user: fields.writer)
    try setAside(record, error.code)
    try transaction.record(event, localUser: session.localUser, zone: zoneRow.id, atMs: session.now())
    transaction.afterCommit { [events = session.events] in events.report(event) }
  }

  private func setAside(_ record: NodeRecord, _ code: ZDCSecurityError.Code) throws {
    let fields = record.fields
    try leaves.set(.quarantined, fields.node)
    let facts = UnreadableStore.PublicFacts(recordVersion: fields.recordVersion, content: fields.content)
    try note(code, node: fields.node, facts: facts)
  }

  /// Quarantines a leaf whose hash in the log matches bytes that are not a record, because the writer made them so.
  ///
  /// - Returns: False if the log names a different record by now.
  package func quarantine(_ error: ZDCSecurityError, leaf: LogNode) throws -> Bool {
    guard let expected = try leaves.pendingLeaf(leaf.node), expected.leaf.record == leaf.record else { return false }
    let event = error.with(zone: zoneRow.zone, node: leaf.node, user: expected.writer)
    try leaves.set(.quarantined, leaf.node)
    try note(error.code, node: leaf.node, facts: nil)
    try transaction.record(event, localUser: session.localUser, zone: zoneRow.id, atMs: session.now())
    transaction.afterCommit { [events = session.events] in events.report(event) }
    return true
  }

  private func note(_ code: ZDCSecurityError.Code, node: NodeID, facts: UnreadableStore.PublicFacts?) throws {
    if let leaf = try leaves.leaf(node) {
      try transaction.unreadable.record(code, leaf, zone: zoneRow.id, facts: facts)
    }
    guard var row = try nodes.node(zone: zoneRow.id, nodeID: node) else { return }
    row.quarantine = code.rawValue
    try nodes.update(row)
  }

  /// Ends the quarantine of a node whose version was read, and retries the queued changes that it blocked.
  func endQuarantine(of node: NodeID) throws {
    guard try transaction.unreadable.code(zone: zoneRow.id, node: node, isCurrent: false) != nil else { return }
    try transaction.unreadable.forget(zone: zoneRow.id, node: node)
    try transaction.operations.retryUnreadable(zone: zoneRow.id)
  }

  /// Quarantines a record with extras that this version does not know. It is shown but not overwritten, because an
  /// extra may matter.
  func settleUnknown(_ opened: OpenedRecord) throws {
    guard !opened.secrets.unknownExtras.isEmpty else { return }
    try quarantine(opened.record, ZDCSecurityError(.unsupportedVersion))
  }
}

extension ZoneRow {
  /// The reason why the zone's newest key is missing, or nil if it is present. The log is followed in either case.
  var unreadableReason: ZDCSecurityError? {
    guard let list = head?.acl.fields, key?.commitments != list.commitments else { return nil }
    return ZDCSecurityError(keyError ?? .grantMissing, zone: zone)
  }
}
