internal import ZDCAccounts
package import ZDCClientStore
package import ZDCCrypto
package import ZDCProtocol

/// Drafts of the nodes' next records, based on the database state in one transaction.
package struct RecordDrafts {
  package let session: SyncSession
  package let zone: ZoneRow
  private let unreadable: UnreadableStore
  private let leaves: LogNodeStore
  private let nodes: NodeStore
  private let operations: OperationStore

  package init(session: SyncSession, zone: ZoneRow, transaction: ZDCReadTransaction) {
    self.session = session
    self.zone = zone
    leaves = LogNodeStore(db: transaction.database, zone: zone.id)
    nodes = transaction.nodes
    unreadable = transaction.unreadable
    operations = transaction.operations
  }

  /// The reason why a node's next version cannot be made on this device.
  package struct Refusal: Equatable {
    package var reason: OperationRow.Reason
    package var code: ZDCSecurityError.Code
  }

  package func refusal(of row: NodeRow, content: SuppliedContent?) throws -> Refusal? {
    if row.unused?.unknownExtras.isEmpty == false {
      return Refusal(reason: .unreadable, code: .unsupportedVersion)
    }
    // Content that this device cannot open is kept: only new content may replace it.
    if content == nil, let newest = try newestFacts(row), newest.content != row.content?.content {
      return Refusal(reason: .unreadable, code: code(of: row))
    }
    return nil
  }

  /// Returns the row with the content that the log names, for a put that replaces the node's key and changes nothing else.
  /// Such a put must not wait: a member could prevent their own removal with content that no device can open.
  ///
  /// The key of that content is not known. Readers notice when they open it, as if the member had put it with a wrong key.
  package func withNewestContent(_ row: NodeRow) throws -> NodeRow {
    guard let newest = try newestFacts(row), newest.content != row.content?.content else { return row }
    let author = try leaves.leaf(row.nodeID).flatMap { try leaves.writer(of: $0) }
    var next = row
    next.content = newest.content.map { content in
      NodeRow.RemoteContent(
        content: content, secrets: .unknown(), writer: author ?? session.user, timeMs: session.now(),
        receivedMs: session.now())
    }
    return next
  }

  private func code(of row: NodeRow) -> ZDCSecurityError.Code {
    row.quarantine.flatMap(ZDCSecurityError.Code.init(rawValue:)) ?? .recordAuthFailed
  }

  /// - Parameter parent: The parent, with the key that the record must be wrapped with.
  /// - Throws: `ZDCSecurityError` with `limitExceeded` if a version cannot be incremented any more.
  package func draft(_ row: NodeRow, parent: NodeRow, content: SuppliedContent?) throws -> RecordDraft {
    var draft = try draft(row, below: parent.nodeID, .keys(try keys(of: parent)), content)
    draft.historyWrap = row.historyWrap
    return draft
  }

  /// Returns the draft of a zone's root, which has no place and no name. The access list holds its old keys.
  ///
  /// - Throws: as ``draft(_:parent:content:)``.
  package func rootDraft(_ row: NodeRow, content: SuppliedContent?) throws -> RecordDraft {
    var draft = try draft(row, below: .zero, .none, content)
    draft.isZoneRoot = true
    draft.secrets.name = []
    return draft
  }

  private func draft(
    _ row: NodeRow, below parent: NodeID, _ link: RecordDraft.ParentLink, _ content: SuppliedContent?
  ) throws -> RecordDraft {
    let versions = try nextVersions(row, hasContent: content != nil)
    let newContent = content?.fields(dataVersion: versions.data)
    var draft = RecordDraft(
      tree: zone.zone.tree, node: row.nodeID, parent: parent,
      recordVersion: versions.record, prevRecord: try leaves.leaf(row.nodeID)?.record ?? .zero,
      key: row.key, keyGen: row.keyGen, parentLink: link,
      secrets: row.secrets(content: content?.secrets ?? row.content?.secrets),
      content: newContent ?? row.content?.content, writer: session.user, writerGen: session.keys.signGen,
      timeMs: session.now())
    draft.burnMs = row.burnMs
    if newContent == nil, let old = row.content {
      draft.dataAuthor = NodeRecord.DataAuthor(writer: old.writer, timeMs: old.timeMs)
    }
    return draft
  }

  /// Returns the parent's keys. The store does not have the fresh key that the commit gives the parent.
  private func keys(of parent: NodeRow) throws -> ParentKeys {
    try nodes.parent(id: parent.id)?.key == parent.key ? nodes.keys(of: parent) : parent.parentKeys
  }

  /// Returns the facts of the newest version in the log, if this device has only read an older one.
  private func newestFacts(_ row: NodeRow) throws -> UnreadableStore.PublicFacts? {
    try unreadable.publicFacts(zone: row.zone, node: row.nodeID)
  }

  /// Returns the latest versions that the server has or had lost. The next versions are higher, so other devices can
  /// tell which is newer.
  private func lastVersions(_ row: NodeRow) throws -> (record: UInt64, data: UInt64) {
    var (record, data) = (row.cloud?.recordVersion ?? 0, row.content?.content.dataVersion ?? 0)
    if let newest = try newestFacts(row) {
      record = max(record, newest.recordVersion)
      data = max(data, newest.content?.dataVersion ?? 0)
    }
    let lost = try operations.lostVersions(node: row.id)
    return (max(record, lost.record), max(data, lost.data))
  }

  /// Returns the next versions. A new node always starts at 1.
  private func nextVersions(_ row: NodeRow, hasContent: Bool) throws -> (record: UInt64, data: UInt64) {
    let last = try lastVersions(row)
    let record = row.isUploaded ? try RecordRules.version(after: last.record) : 1
    return (record, hasContent ? try RecordRules.version(after: last.data) : last.data)
  }
}

/// A record that was sealed ahead of time, with its draft.
package struct PresealedRecord: Sendable {
  private let draft: RecordDraft
  private let record: NodeRecord

  package init(_ draft: RecordDraft) throws {
    self.draft = draft
    record = try RecordSealer.seal(draft)
  }

  /// Returns the record if it matches the current draft. Only its time may be older.
  package func record(for now: RecordDraft) -> NodeRecord? {
    var now = now
    now.timeMs = draft.timeMs
    return now == draft ? record : nil
  }
}
