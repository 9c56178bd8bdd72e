internal import ZDCProtocol
internal import ZDCServer

/// Moves records and content that a commit replaces to where they stay until they are collected. They belong to the zone
/// that they were replaced in. The bytes do not leave the database.
struct ContentKeeper {
  let store: PostgresTransaction
  let zone: ZoneKey
  let now: UInt64

  private var db: PostgresConnection { store.db }

  /// - Parameter nodes: keys of live nodes.
  func keepRecords(of nodes: [Int64]) {
    guard !nodes.isEmpty else { return }
    db.enqueue(
      """
      INSERT INTO records(zone, node, hash, received_ms, data_received_ms, replaced_ms, bytes)
      SELECT $2, node, hash, received_ms, data_received_ms, $3, record FROM nodes WHERE id = ANY($1)
      """, .ints(nodes), .int(zone.rawValue), .ms(now))
  }

  /// - Parameter contents: numbers of the contract, each with its node; those below zero are of live nodes.
  func keepContents(_ contents: [(node: NodeID, blob: Int64)]) throws {
    let files = contents.map(\.blob).filter { $0 > 0 }
    if !files.isEmpty {
      db.enqueue(
        "UPDATE blobs SET replaced_ms = $2, zone = $3 WHERE id = ANY($1)", .ints(files), .ms(now), .int(zone.rawValue))
    }
    let small = contents.filter { $0.blob < 0 }
    guard !small.isEmpty else { return }
    let blobs = Dictionary(small.map { ($0.node, $0.blob) }, uniquingKeysWith: { first, _ in first })
    // NB: a join of the nodes with the new rows would compare each with each.
    let moved = try db.all(
      """
      INSERT INTO blobs(blob_id, zone, node, length, state, touched_ms, replaced_ms, content)
      SELECT content_id, $2, node, length(content), 2, $3, $3, content FROM nodes WHERE id = ANY($1)
      RETURNING node, id
      """, .ints(small.map { -$0.blob }), .int(zone.rawValue), .ms(now)
    ) { (node: try $0.id(0) as NodeID, blob: $0.int(1)) }
    for (node, blob) in moved { if let key = blobs[node] { store.movedContents[key] = blob } }
  }

  /// Stores the records of puts that a later operation of the same commit deletes.
  func insertRecords(_ puts: [NodePut]) {
    guard !puts.isEmpty else { return }
    db.enqueue(
      """
      INSERT INTO records(zone, node, hash, received_ms, data_received_ms, replaced_ms, bytes)
      SELECT $1, w.node, w.hash, $2, w.data, $2, w.bytes
      FROM unnest($3::bytea[], $4::bytea[], $5::int8[], $6::bytea[]) AS w(node, hash, data, bytes)
      """, .int(zone.rawValue), .ms(now), .ids(puts.map(\.leaf.node)), .ids(puts.map(\.leaf.record)),
      .ints(puts.map { Int64(clamping: $0.record.dataReceivedMs) }), .byteArrays(puts.map(\.record.bytes)))
  }

  /// Stores rows of small content that no live node has.
  func insertSmall(_ rows: [(blob: BlobID, node: NodeID, bytes: [UInt8])]) {
    guard !rows.isEmpty else { return }
    db.enqueue(
      """
      INSERT INTO blobs(blob_id, zone, node, length, state, touched_ms, replaced_ms, content)
      SELECT w.id, $1, w.node, length(w.bytes), 2, $2, $2, w.bytes
      FROM unnest($3::bytea[], $4::bytea[], $5::bytea[]) AS w(id, node, bytes)
      """, .int(zone.rawValue), .ms(now), .ids(rows.map(\.blob)), .ids(rows.map(\.node)),
      .byteArrays(rows.map(\.bytes)))
    count(rows.map { Int64($0.bytes.count) })
  }

  /// A new row by which a node has a file, and the number of the row that has it already.
  typealias Reference = (source: Int64, row: BlobRow)

  /// Stores the rows by which other nodes have files that are stored already; returns their numbers, by node.
  ///
  /// - Throws: `blobGone` if another write has removed a file since it was found.
  func insertReferences(_ references: [Reference]) throws -> [NodeID: Int64] {
    guard !references.isEmpty else { return [:] }
    try holdSources(Set(references.map(\.source)))
    let rows = references.map(\.row)
    let keys = try db.all(
      """
      INSERT INTO blobs(blob_id, zone, node, length, state, root, touched_ms, replaced_ms)
      SELECT w.id, w.zone, w.node, w.length, 2, w.root, w.touched, w.replaced
      FROM unnest($1::bytea[], $2::int8[], $3::bytea[], $4::int8[], $5::bytea[], $6::int8[], $7::int8[])
        AS w(id, zone, node, length, root, touched, replaced)
      RETURNING node, id
      """, .ids(rows.map(\.id)), .ints(rows.map(\.zone.rawValue)), .ids(rows.map(\.node)),
      .ints(rows.map { Int64(clamping: $0.cipherLength) }), .byteArrays(rows.map { $0.contentRoot?.bytes }),
      .ints(rows.map { Int64(clamping: $0.touchedMs) }), .ints(rows.map { $0.replacedMs.map { Int64(clamping: $0) } })
    ) { (try $0.id(0) as NodeID, $0.int(1)) }
    count(rows.map { Int64(clamping: $0.cipherLength) })
    return Dictionary(keys, uniquingKeysWith: { first, _ in first })
  }

  /// Keeps the rows of other zones until this transaction has ended. A write that deletes one of them waits, and the
  /// removal of its file then finds the new row.
  private func holdSources(_ keys: Set<Int64>) throws {
    let held = try db.all("SELECT id FROM blobs WHERE id = ANY($1) ORDER BY id FOR KEY SHARE", .ints(Array(keys))) {
      $0.int(0)
    }
    guard held.count == keys.count else { throw ServerError.contentIsGone }
  }

  /// Attaches uploads, and files that the nodes had before.
  ///
  /// - Throws: `blobGone` if another write has removed one since it was found: retained files belong to no subject.
  func attach(_ blobs: [BlobRow], replacedMs: UInt64?) throws {
    guard !blobs.isEmpty else { return }
    let keys = PostgresValue.ints(blobs.map(\.key))
    let found = try db.run(
      "UPDATE blobs SET zone = $2, state = 2, owner = NULL, replaced_ms = $3 WHERE id = ANY($1)", keys,
      .int(zone.rawValue), .ms(replacedMs))
    guard found == Set(blobs.map(\.key)).count else { throw ServerError.contentIsGone }
    // The parts of an attached upload are no longer needed.
    db.enqueue("DELETE FROM parts WHERE blob = ANY($1)", keys)
    count(blobs.filter { $0.state != .attached }.map { Int64(clamping: $0.cipherLength) })
  }

  func count(_ lengths: [Int64]) {
    guard !lengths.isEmpty else { return }
    store.sums[zone.rawValue, default: ZoneSums()].add(contents: Int64(lengths.count), bytes: lengths.reduce(0, +))
  }
}
