internal import ZDCProtocol
internal import ZDCServer

/// Writes the nodes of one commit, with their records and content, in a constant number of statements.
struct NodeWriter {
  private let store: PostgresTransaction
  private let delta: ZoneDelta
  private let zone: ZoneKey
  private let tree: Int64
  private let keeper: ContentKeeper
  private let attacher: ContentKeeper

  init(_ store: PostgresTransaction, _ delta: ZoneDelta, zone: ZoneKey, tree: Int64) {
    (self.store, self.delta, self.zone, self.tree) = (store, delta, zone, tree)
    keeper = ContentKeeper(store: store, zone: delta.origin ?? zone, now: delta.receivedMs)
    attacher = ContentKeeper(store: store, zone: zone, now: delta.receivedMs)
  }

  /// A put with the number that it has in the commit, and with its content as the node's row has it.
  private struct Put {
    var index: Int
    var put: NodePut
    /// Nil without content, 0 for small content, else the number of a file's row.
    var blob: Int64?
    var contentID: BlobID?
    var content: [UInt8]?
    /// Whether the row keeps the small content that it has.
    var keepsContent = false
  }

  private var db: PostgresConnection { store.db }

  func write() throws {
    let live = delta.puts.filter(\.isLive)
    let replaced = live.compactMap(\.replaced)
    keeper.keepRecords(of: delta.removed.map(\.record) + replaced.map(\.record))
    // Read before its rows move or change.
    let small = try store.smallBytes(delta.puts.compactMap(copiedContent))
    try keeper.keepContents(
      delta.removed.compactMap { row in row.blob.map { (row.leaf.node, $0) } }
        + live.compactMap { put in put.replacedBlob.map { (put.leaf.node, $0) } })
    removeNodes()
    freeNames(live)
    try keepDeleted(delta.puts.filter { !$0.isLive }, small)
    let puts = try contents(of: live, small)
    update(puts.filter { $0.put.replaced != nil })
    insert(puts.filter { $0.put.replaced == nil })
  }

  /// Returns the number of small content that a put takes from elsewhere.
  private func copiedContent(_ put: NodePut) -> Int64? {
    switch put.content {
    case .attached(let blob): blob.isInline && !isOwn(blob, put) ? blob.key : nil
    case .reference(let blob): blob.isInline ? blob.key : nil
    case .none, .unchanged, .inline: nil
    }
  }

  /// Whether the node's row has this content and stays.
  private func isOwn(_ blob: BlobRow, _ put: NodePut) -> Bool { put.replaced.map { blob.key == -$0.record } ?? false }

  private func removeNodes() {
    guard !delta.removed.isEmpty else { return }
    db.enqueue("DELETE FROM nodes WHERE id = ANY($1)", .ints(delta.removed.map(\.record)))
  }

  /// First all names that become free: two nodes may swap theirs.
  private func freeNames(_ puts: [NodePut]) {
    let renamed = puts.filter { !$0.keepsName && $0.replaced?.tag != nil }.compactMap(\.replaced?.record)
    guard !renamed.isEmpty else { return }
    db.enqueue("UPDATE nodes SET tag = NULL WHERE id = ANY($1)", .ints(renamed))
  }

  private func keepDeleted(_ puts: [NodePut], _ small: [Int64: [UInt8]]) throws {
    guard !puts.isEmpty else { return }
    keeper.insertRecords(puts)
    var rows: [(blob: BlobID, node: NodeID, bytes: [UInt8])] = []
    var (references, files) = ([ContentKeeper.Reference](), [BlobRow]())
    for put in puts {
      let node = put.leaf.node
      switch put.content {
      case .none, .unchanged: continue
      case .inline(let id, let bytes): rows.append((id, node, Array(bytes)))
      case .reference(let blob) where blob.isInline: rows.append((blob.id, node, try bytes(of: blob, small)))
      case .reference(let blob):
        references.append((blob.key, reference(to: blob, of: node, in: keeper.zone, replacedMs: delta.receivedMs)))
      // Small content of the node itself is kept with the node.
      case .attached(let blob): if blob.key > 0 { files.append(blob) }
      }
    }
    keeper.insertSmall(rows)
    _ = try keeper.insertReferences(references)
    try keeper.attach(files, replacedMs: delta.receivedMs)
  }

  /// - Throws: `blobGone` if another write has removed content that this one found before.
  private func bytes(of blob: BlobRow, _ small: [Int64: [UInt8]]) throws -> [UInt8] {
    guard let bytes = small[blob.key] else { throw ServerError.contentIsGone }
    return bytes
  }

  // MARK: - Live puts

  private func contents(of puts: [NodePut], _ small: [Int64: [UInt8]]) throws -> [Put] {
    let references = try attacher.insertReferences(puts.compactMap(newReference))
    var result: [Put] = []
    var (attached, moved) = ([BlobRow](), [Int64]())
    for (index, put) in delta.puts.enumerated() where put.isLive {
      var row = Put(index: index, put: put)
      switch put.content {
      case .none: break
      case .unchanged(let key): (row.blob, row.keepsContent) = (max(key, 0), key < 0)
      case .inline(let id, let bytes): (row.blob, row.contentID, row.content) = (0, id, Array(bytes))
      case .reference(let blob) where !blob.isInline: row.blob = references[put.leaf.node]
      case .attached(let blob) where !blob.isInline:
        row.blob = blob.key
        attached.append(blob)
      case .attached(let blob) where isOwn(blob, put): (row.blob, row.keepsContent) = (0, true)
      case .attached(let blob):
        (row.blob, row.contentID, row.content) = (0, blob.id, try bytes(of: blob, small))
        moved.append(blob.key)
      case .reference(let blob): (row.blob, row.contentID, row.content) = (0, blob.id, try bytes(of: blob, small))
      }
      result.append(row)
    }
    try attacher.attach(attached, replacedMs: nil)
    try store.removeBlobs(moved)
    attacher.count(result.compactMap { $0.content.map { Int64($0.count) } })
    return result
  }

  private func newReference(_ put: NodePut) -> ContentKeeper.Reference? {
    guard case .reference(let blob) = put.content, !blob.isInline else { return nil }
    return (blob.key, reference(to: blob, of: put.leaf.node, in: zone, replacedMs: nil))
  }

  private func reference(to blob: BlobRow, of node: NodeID, in zone: ZoneKey, replacedMs: UInt64?) -> BlobRow {
    blob.reference(for: node, in: zone, now: delta.receivedMs, replacedMs: replacedMs)
  }

  private static let arrays = """
    unnest($4::int8[], $5::bytea[], $6::bytea[], $7::bytea[], $8::int8[], $9::int8[], $10::int8[], $11::bytea[],
      $12::int8[], $13::bytea[], $14::int8[], $15::bytea[], $16::bytea[], $17::int8[])
      AS w(id, node, parent, tag, put, key_gen, parent_key_gen, hash, data, record, blob, content_id, content, keeps)
    """

  private func values(_ puts: [Put]) -> [PostgresValue] {
    let leaves = puts.map(\.put.leaf)
    return [
      .int(zone.rawValue), .ms(delta.head.seq), .ms(delta.receivedMs), .ints(puts.map { $0.put.replaced?.record ?? 0 }),
      .ids(leaves.map(\.node)), .ids(leaves.map(\.parent)), .byteArrays(puts.map { $0.put.tag?.bytes }),
      .ints(puts.map { Int64($0.index) }), .ints(leaves.map { Int64($0.keyGen) }),
      .ints(leaves.map { Int64($0.parentKeyGen) }), .ids(leaves.map(\.record)),
      .ints(puts.map { Int64(clamping: $0.put.record.dataReceivedMs) }), .byteArrays(puts.map(\.put.record.bytes)),
      .ints(puts.map(\.blob)), .byteArrays(puts.map { $0.contentID?.bytes }), .byteArrays(puts.map(\.content)),
      .ints(puts.map { $0.keepsContent ? 1 : 0 }),
    ]
  }

  private func update(_ puts: [Put]) {
    guard !puts.isEmpty else { return }
    db.enqueue(
      """
      UPDATE nodes n SET parent = w.parent, tag = w.tag, zone = $1, put_seq = $2, put = w.put, key_gen = w.key_gen,
        parent_key_gen = w.parent_key_gen, hash = w.hash, received_ms = $3, data_received_ms = w.data,
        record = w.record, blob = w.blob, content_id = CASE WHEN w.keeps = 1 THEN n.content_id ELSE w.content_id END,
        content = CASE WHEN w.keeps = 1 THEN n.content ELSE w.content END
      FROM \(Self.arrays) WHERE n.id = w.id
      """, values(puts))
  }

  private func insert(_ puts: [Put]) {
    guard !puts.isEmpty else { return }
    db.enqueue(
      """
      INSERT INTO nodes(tree, node, parent, tag, zone, put_seq, put, key_gen, parent_key_gen, hash, received_ms,
        data_received_ms, record, blob, content_id, content)
      SELECT $18, w.node, w.parent, w.tag, $1, $2, w.put, w.key_gen, w.parent_key_gen, w.hash, $3, w.data, w.record,
        w.blob, w.content_id, w.content FROM \(Self.arrays)
      """, values(puts) + [.int(tree)])
  }
}
