internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

/// Moves records and content that a commit replaces to where they are kept until they are collected. From then on they
/// belong to the zone that they were replaced in.
struct NodeReplacer {
  private let store: SQLiteTransaction
  private let zone: ZoneKey
  private let now: UInt64
  private let insertRecord: SQLStatement
  private let insertContent: SQLStatement
  private let moveContent: SQLStatement
  private let removeContent: SQLStatement
  private let markFile: SQLStatement

  init(_ store: SQLiteTransaction, zone: ZoneKey, now: UInt64) throws {
    self.store = store
    self.zone = zone
    self.now = now
    let db = store.db
    insertRecord = try db.prepared(
      """
      INSERT INTO records(zone, node, hash, received_ms, data_received_ms, replaced_ms, bytes)
      VALUES (?, ?, ?, ?, ?, ?, ?)
      """)
    let columns = "blob_id, zone, node, length, state, touched_ms, replaced_ms, content"
    let attached = BlobRow.State.attached.rawValue
    insertContent = try db.prepared("INSERT INTO blobs(\(columns)) VALUES (?, ?, ?, ?, \(attached), ?, ?, ?)")
    moveContent = try db.prepared(
      """
      INSERT INTO blobs(\(columns)) SELECT ?, ?, ?, length(bytes), \(attached), ?, ?, bytes FROM contents WHERE node = ?
      """)
    removeContent = try db.prepared("DELETE FROM contents WHERE node = ?")
    markFile = try db.prepared("UPDATE blobs SET replaced_ms = ?, zone = ? WHERE id = ?")
  }

  /// A damaged record is kept as it is: a delete must not fail because of it, and a check finds it.
  func keepRecord(of row: NodeRow) throws {
    guard let node = try store.liveNode(row.record) else { throw StoreError.damaged }
    let bytes = (try? node.rebuilt()) ?? node.record.bytes
    try insertRecord.run(
      .int(zone.rawValue), .id(row.leaf.node), .id(row.leaf.record), .ms(node.commit.receivedMs),
      .ms(node.dataReceivedMs), .ms(now), .bytes(bytes))
  }

  func keepContent(of row: NodeRow) throws {
    guard let blob = row.blob else { return }
    guard blob < 0 else { return try markFile.run(.ms(now), .int(zone.rawValue), .int(blob)) }
    let content = try? store.liveNode(row.record)?.record.content()
    try moveContent.run(
      .id(content?.blobID ?? .zero), .int(zone.rawValue), .id(row.leaf.node), .ms(now), .ms(now), .int(-blob))
    store.movedContents[blob] = store.db.lastInsertedRowID
    try removeContent.run(.int(-blob))
  }

  /// Stores a record that a later operation of the same commit deletes.
  func keep(_ put: NodePut) throws {
    try insertRecord.run(
      .int(zone.rawValue), .id(put.leaf.node), .id(put.leaf.record), .ms(now), .ms(put.record.dataReceivedMs),
      .ms(now), .bytes(put.record.bytes))
    switch put.content {
    case .none, .unchanged: return
    case .attached(let blob):
      // Small content of the node itself is kept with the node.
      guard blob.key > 0 else { return }
      try store.update(blob.attached(in: zone, replacedMs: now))
    case .reference(let source) where source.isInline:
      try insertContent.run(
        .id(source.id), .int(zone.rawValue), .id(put.leaf.node), .ms(source.cipherLength), .ms(now), .ms(now),
        .bytes(try store.smallBytes(of: source)))
      try store.count(contents: 1, bytes: Int64(clamping: source.cipherLength), in: zone)
    case .reference(let source):
      _ = try store.insertReference(source.reference(for: put.leaf.node, in: zone, now: now, replacedMs: now))
    case .inline(let id, let bytes):
      try insertContent.run(
        .id(id), .int(zone.rawValue), .id(put.leaf.node), .ms(UInt64(bytes.count)), .ms(now), .ms(now), .slice(bytes))
    }
  }
}
