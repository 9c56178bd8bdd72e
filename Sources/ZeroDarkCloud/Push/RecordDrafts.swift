internal import ZDCCrypto
internal import ZDCProtocol

/// Drafts of the next records of nodes, as the database of one transaction has them.
struct RecordDrafts {
  let session: SyncSession
  let zone: ZoneRow
  private let leaves: LeafStore
  private let nodes: NodeStore
  private let operations: OperationStore

  init(session: SyncSession, zone: ZoneRow, transaction: ZDCReadTransaction) {
    self.session = session
    self.zone = zone
    leaves = LeafStore(db: transaction.database, zone: zone.id)
    nodes = transaction.nodes
    operations = transaction.operations
  }

  func draft(_ row: NodeRow, parent: NodeRow, content: SuppliedContent?) throws -> RecordDraft {
    let versions = try nextVersions(row)
    let newContent = content?.fields(dataVersion: versions.data)
    var draft = RecordDraft(
      tree: zone.zone.tree, node: row.nodeID, parent: parent.nodeID,
      recordVersion: versions.record, prevRecord: try leaves.leaf(row.nodeID)?.record ?? .zero,
      key: row.key, keyGen: row.keyGen, parentLink: .keys(try nodes.keys(of: parent)),
      secrets: RecordPrivate(
        folded: row.name, createdMs: row.createdMs, content: content?.secrets ?? row.content?.secrets),
      content: newContent ?? row.content?.content, writer: session.user, writerGen: session.keys.signGen,
      timeMs: session.now())
    draft.historyWrap = row.historyWrap
    draft.burnMs = row.burnMs
    if newContent == nil, let old = row.content {
      draft.dataAuthor = NodeRecord.DataAuthor(writer: old.writer, timeMs: old.timeMs)
    }
    return draft
  }

  /// One more than what the server has, and than what it had lost: so other devices see which is newer. A new node
  /// always begins with 1.
  private func nextVersions(_ row: NodeRow) throws -> (record: UInt64, data: UInt64) {
    var (record, data) = (row.cloud?.recordVersion ?? 0, row.content?.content.dataVersion ?? 0)
    for operation in try operations.operations(node: row.id) {
      guard let lost = operation.resend else { continue }
      if operation.kind == .putData { data = max(data, lost) } else { record = max(record, lost) }
    }
    return (row.isUploaded ? record + 1 : 1, data + 1)
  }
}

/// A record that was sealed before its turn, with what it was made of.
struct SealedAhead: Sendable {
  private let draft: RecordDraft
  private let record: NodeRecord

  init(_ draft: RecordDraft) throws {
    self.draft = draft
    record = try RecordSealer.seal(draft)
  }

  /// The record, if it says what is to be said now. Only its time may be older.
  func record(for now: RecordDraft) -> NodeRecord? {
    var now = now
    now.timeMs = draft.timeMs
    return now == draft ? record : nil
  }
}

extension RecordPrivate {
  /// The private part for a name that is folded already.
  fileprivate init(folded name: [UInt8], createdMs: UInt64, content: ContentSecrets?) {
    self.init(name: nil, createdMs: createdMs, content: content)
    self.name = name
  }
}
