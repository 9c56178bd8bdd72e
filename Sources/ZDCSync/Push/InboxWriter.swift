internal import ZDCAccounts
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Makes the commits with which the framework writes to the inbox on its own: messages that it takes over, and profiles.
struct InboxWriter: Sendable {
  let session: SyncSession
  let row: ZoneRow
  private(set) var head: ZoneHead
  let root: NodeRow

  var tree: TreeID { row.zone.tree }

  /// - Returns: Nil before the first pull of the inbox, and while it is frozen or its key is missing.
  init?(session: SyncSession, zone: Int64, _ transaction: ZDCReadTransaction) throws {
    guard let row = try transaction.zones.zone(id: zone), row.frozen == nil, let head = row.head,
      row.unreadableReason == nil, let root = try transaction.nodes.root(zone: zone)
    else { return nil }
    (self.session, self.row, self.head, self.root) = (session, row, head, root)
  }

  /// Returns the record of a message's node, which is below the inbox's root.
  func record(
    of received: ReceivedMessage, timeMs: UInt64, content: SuppliedContent? = nil, profile: UserProfile? = nil
  ) throws -> NodeRecord {
    var secrets = RecordPrivate(
      name: try FoldedName(received.node.text), createdMs: timeMs, content: content?.secrets)
    (secrets.received, secrets.profile) = (received, profile)
    let draft = RecordDraft(
      tree: tree, node: received.node, parent: row.zone.root, key: .random(), parentLink: .keys(root.parentKeys),
      secrets: secrets, content: content?.fields(dataVersion: 1), writer: session.user,
      writerGen: session.keys.signGen, timeMs: session.now())
    return try RecordSealer.seal(draft)
  }

  /// A node that a commit deletes.
  struct Deletion: Sendable {
    var node: NodeID
    var record: RecordHash
    var descendants: UInt64 = 0
  }

  /// - Parameter replaced: Nodes without nodes below them, which the commit deletes.
  func commit(_ records: [NodeRecord], replacing replaced: [LogNode] = []) throws -> ZoneCommit {
    try commit(records, deleting: replaced.map { Deletion(node: $0.node, record: $0.record) })
  }

  func commit(_ records: [NodeRecord], deleting deletions: [Deletion]) throws -> ZoneCommit {
    let keys = session.keys
    let puts = records.map { ZoneOperation.put(ZoneOperation.Put($0)) }
    let deletes = deletions.map {
      ZoneOperation.delete(node: $0.node, record: $0.record, liveDescendants: $0.descendants)
    }
    let fields = ZoneCommit.Fields(
      zone: head.zone, seq: head.seq + 1, prev: head.hash, aclHash: head.acl.hash, writer: session.user,
      writerGen: keys.signGen, timeMs: session.now(), operations: puts + deletes)
    return try ZoneCommit(fields) { try keys.signingKey.sign(label: "commit", message: $0) }
  }

  /// Makes commits that follow one of its own.
  func following(_ commit: ZoneCommit) -> InboxWriter {
    var next = self
    (next.head.seq, next.head.hash) = (commit.fields.seq, commit.hash)
    return next
  }
}
