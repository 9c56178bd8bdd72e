internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

/// Writes the nodes of one commit, with their records and content. Its statements run once per node, so each is
/// prepared only once.
struct NodeWriter {
  private let store: SQLiteTransaction
  private let zone: ZoneKey
  private let tree: Int64
  private let now: UInt64
  private let insertRecord: SQLStatement
  private let replaceRecord: SQLStatement
  private let insertContent: SQLStatement
  private let replaceContent: SQLStatement
  private let putNode: SQLStatement

  init(_ store: SQLiteTransaction, zone: ZoneKey, now: UInt64) throws {
    self.store = store
    self.zone = zone
    self.now = now
    tree = try store.tree(of: zone)
    let db = store.db
    insertRecord = try db.prepared(
      "INSERT INTO records(zone, hash, received_ms, data_received_ms, replaced_ms, bytes) VALUES (?, ?, ?, ?, ?, ?)")
    replaceRecord = try db.prepared("UPDATE records SET replaced_ms = ? WHERE id = ?")
    insertContent = try db.prepared(
      """
      INSERT INTO blobs(blob_id, zone, node, length, state, touched_ms, replaced_ms, content)
      VALUES (?, ?, ?, ?, \(BlobRow.State.attached.rawValue), ?, ?, ?)
      """)
    replaceContent = try db.prepared("UPDATE blobs SET replaced_ms = ? WHERE id = ?")
    putNode = try db.prepared(
      """
      INSERT INTO nodes(tree, node, zone, parent, tag, record, blob, put_seq, key_gen, parent_key_gen)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
      ON CONFLICT(tree, node) DO UPDATE SET zone = excluded.zone, parent = excluded.parent, tag = excluded.tag,
        record = excluded.record, blob = excluded.blob, put_seq = excluded.put_seq, key_gen = excluded.key_gen,
        parent_key_gen = excluded.parent_key_gen
      """)
  }

  func remove(_ nodes: [NodeRow]) throws {
    let delete = try store.db.prepared("DELETE FROM nodes WHERE tree = ? AND node = ?")
    for node in nodes {
      try replaceRecord.run(.ms(now), .int(node.record))
      if let blob = node.blob { try replaceContent.run(.ms(now), .int(blob)) }
      try delete.run(.int(tree), .id(node.leaf.node))
    }
  }

  /// - Returns: the keys of the records, which are consecutive.
  func put(_ puts: [NodePut]) throws -> ClosedRange<Int64>? {
    try clearNames(of: puts)
    var keys: ClosedRange<Int64>?
    for put in puts {
      let record = try insertRecord(of: put)
      keys = (keys?.lowerBound ?? record)...record
      let blob = try content(of: put)
      guard put.isLive else { continue }
      if let old = put.replaced { try replaceRecord.run(.ms(now), .int(old.record)) }
      if let old = put.replacedBlob { try replaceContent.run(.ms(now), .int(old)) }
      try write(put, record: record, blob: blob)
    }
    try countContents(of: puts)
    return keys
  }

  /// Clears the names of renamed nodes. Two nodes may swap names: the first one written would briefly have the other's
  /// name, which the unique index refuses.
  private func clearNames(of puts: [NodePut]) throws {
    let clear = try store.db.prepared("UPDATE nodes SET tag = NULL WHERE tree = ? AND node = ?")
    for put in puts where put.isLive && put.replaced?.tag != nil && !put.keepsName {
      try clear.run(.int(tree), .id(put.leaf.node))
    }
  }

  private func insertRecord(of put: NodePut) throws -> Int64 {
    try insertRecord.run(
      .int(zone.rawValue), .id(put.leaf.record), .ms(put.record.recordReceivedMs), .ms(put.record.dataReceivedMs),
      put.isLive ? .null : .ms(now), .bytes(put.record.bytes))
    return store.db.lastInsertedRowID
  }

  private func content(of put: NodePut) throws -> Int64? {
    switch put.content {
    case .none: return nil
    case .unchanged(let key): return key
    case .attached(let blob):
      try store.update(blob.attached(replacedMs: put.isLive ? nil : now))
      return blob.key
    case .inline(let id, let bytes):
      try insertContent.run(
        .id(id), .int(zone.rawValue), .id(put.leaf.node), .ms(UInt64(bytes.count)), .ms(now),
        put.isLive ? .null : .ms(now), .slice(bytes))
      return store.db.lastInsertedRowID
    }
  }

  private func write(_ put: NodePut, record: Int64, blob: Int64?) throws {
    let leaf = put.leaf
    try putNode.run(
      .int(tree), .id(leaf.node), .int(zone.rawValue), .id(leaf.parent), put.tag.map { .id($0) } ?? .null,
      .int(record), .optional(blob), .ms(leaf.putSeq), .int(Int64(leaf.keyGen)), .int(Int64(leaf.parentKeyGen)))
  }

  /// Counts the commit's small content in one statement: a trigger would run one more statement for each blob.
  private func countContents(of puts: [NodePut]) throws {
    let lengths = puts.compactMap { put in
      if case .inline(_, let content) = put.content { Int64(content.count) } else { nil }
    }
    guard !lengths.isEmpty else { return }
    try store.count(contents: Int64(lengths.count), bytes: lengths.reduce(0, +), in: zone)
  }
}
