internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// The nodes of a zone whose newest record cannot be opened. Each keeps its last good version until a later put opens.
struct Quarantine {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction
  let zoneRow: ZoneRow
  let leaves: LogNodeStore

  private var nodes: NodeStore { transaction.nodes }

  // MARK: Opening

  /// Returns nil if the record cannot be opened. The last good version then stays visible, and the node waits for a
  /// later put.
  func open(_ record: NodeRecord, parent: NodeRow) throws -> OpenedRecord? {
    try open(record) { try nodes.keys(of: parent, keyGen: record.fields.parentKeyGen, tree: zoneRow.zone.tree) }
  }

  /// Opens a record with its parent's keys, which may not be at hand either.
  func open(_ record: NodeRecord, parentKeys: () throws -> ParentKeys) throws -> OpenedRecord? {
    do {
      return try RecordOpener.open(record, parent: try parentKeys())
    } catch let error as ZDCSecurityError {
      try add(record, error)
      return nil
    }
  }

  /// Opens the record of a known node whose parent is no longer here. Returns nil if the record cannot be opened.
  func open(_ record: NodeRecord, key: NodeKey) throws -> OpenedRecord? {
    do throws(ZDCSecurityError) {
      return try RecordOpener.open(record, key: key)
    } catch {
      try add(record, error)
      return nil
    }
  }

  /// Opens the root's record. Returns nil if it cannot be opened.
  func openRoot(_ record: NodeRecord, _ key: NodeKey) throws -> OpenedRecord? {
    guard let commitments = zoneRow.head?.acl.fields.commitments else { return nil }
    do throws(ZDCSecurityError) {
      return try RecordOpener.open(zoneRoot: record, key: key, commitments: commitments)
    } catch {
      try add(record, error)
      return nil
    }
  }

  // MARK: Beginning and ending

  /// Quarantines a record without rejecting its commit. The record's public fields are kept, because the next version
  /// follows it, on whichever device it is made.
  func add(_ record: NodeRecord, _ error: ZDCSecurityError) throws {
    let fields = record.fields
    let event = error.with(zone: zoneRow.zone, node: fields.node, user: fields.writer)
    try setAside(record, error.code)
    try transaction.record(event, localUser: session.localUser, zone: zoneRow.id, atMs: session.now())
    transaction.afterCommit { [events = session.events] in events.report(event) }
  }

  /// Quarantines a record without a report: the reason was reported before.
  func setAside(_ record: NodeRecord, _ code: ZDCSecurityError.Code) throws {
    let fields = record.fields
    try leaves.set(.quarantined, fields.node)
    let facts = UnreadableStore.PublicFacts(recordVersion: fields.recordVersion, content: fields.content)
    try note(code, node: fields.node, facts: facts)
  }

  /// Quarantines a leaf whose hash in the log matches bytes that are not a record, because the writer made them so.
  ///
  /// - Returns: False if the log names a different record by now.
  func add(_ error: ZDCSecurityError, leaf: LogNode) throws -> Bool {
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
  func end(of node: NodeID) throws {
    guard try transaction.unreadable.code(zone: zoneRow.id, node: node, isCurrent: false) != nil else { return }
    try transaction.unreadable.forget(zone: zoneRow.id, node: node)
    try transaction.operations.retryUnreadable(zone: zoneRow.id)
  }

  /// Quarantines a record with extras that this version does not know. It is shown but not overwritten, because an
  /// extra may matter.
  func addUnknown(_ opened: OpenedRecord) throws {
    guard !opened.secrets.unknownExtras.isEmpty else { return }
    try add(opened.record, ZDCSecurityError(.unsupportedVersion))
  }
}

extension ZoneRow {
  /// The reason why the zone's newest key is missing, or nil if it is present. The log is followed in either case.
  var unreadableReason: ZDCSecurityError? {
    guard let list = head?.acl.fields, key?.commitments != list.commitments else { return nil }
    return ZDCSecurityError(keyError ?? .grantMissing, zone: zone)
  }
}
