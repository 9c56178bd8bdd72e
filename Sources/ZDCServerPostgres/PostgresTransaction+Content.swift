internal import ZDCProtocol
internal import ZDCServer

// Content. Small content of a live node is a column of the node's row; its number in the contract is that of the row,
// below zero.
extension PostgresTransaction {
  private static let blobColumns = """
    b.id, b.blob_id, b.zone, b.node, b.length, b.state, b.content IS NOT NULL, o.user_id, b.root, b.touched_ms,
      b.replaced_ms
    """
  private static let blobQuery = "SELECT \(blobColumns) FROM blobs b LEFT JOIN users o ON o.id = b.owner"
  private static let smallColumns = """
    -n.id, n.content_id, n.zone, n.node, length(n.content), 2, true, NULL::bytea, NULL::bytea, n.data_received_ms,
      NULL::int8
    """

  private func blobRow(_ row: PostgresRow) throws -> BlobRow {
    guard let state = BlobRow.State(rawValue: row.int(5)) else { throw PostgresError.damaged }
    return BlobRow(
      key: row.int(0), id: try row.id(1), zone: ZoneKey(row.int(2)), node: try row.id(3), cipherLength: row.unsigned(4),
      state: state, isInline: row.int(6) != 0, owner: try row.optionalID(7), contentRoot: try row.optionalID(8),
      touchedMs: row.unsigned(9), replacedMs: row.optionalUnsigned(10))
  }

  func blobs(_ keys: [Int64]) throws -> [BlobRow] {
    guard !keys.isEmpty else { return [] }
    let rows = try db.all(
      """
      SELECT \(Self.smallColumns) FROM nodes n WHERE n.id = ANY($1) AND n.blob = 0
      UNION ALL \(Self.blobQuery) WHERE b.id = ANY($2)
      """, .ints(keys.filter { $0 < 0 }.map { -$0 }), .ints(keys.filter { $0 > 0 }), row: blobRow)
    let rowsByKey = Dictionary(rows.map { ($0.key, $0) }, uniquingKeysWith: { first, _ in first })
    return keys.compactMap { rowsByKey[$0] }
  }

  func file(_ id: BlobID) throws -> BlobRow? {
    try db.first(
      "\(Self.blobQuery) WHERE b.blob_id = $1 AND b.content IS NULL ORDER BY b.id LIMIT 1", .id(id), row: blobRow)
  }

  func contents(_ names: [ContentName], in tree: TreeID) throws -> [ContentName: BlobRow] {
    guard !names.isEmpty else { return [:] }
    let key = try treeKey(tree) ?? 0
    var (own, others): ([BlobRow], [(ContentName, BlobRow)]) = ([], [])
    try db.fetch([
      liveContents(names, in: key) { own.append($0) }, storedContents(names, in: key) { others.append($0) },
    ])
    own = try inTheirZones(own, tree: key)
    // The node's own content takes precedence, so that another user's file with the same id cannot hide it.
    return Dictionary(
      own.map { (ContentName(node: $0.node, blob: $0.id), $0) } + others, uniquingKeysWith: { first, _ in first })
  }

  private func liveContents(
    _ names: [ContentName], in tree: Int64, row read: @escaping (BlobRow) -> Void
  ) -> PostgresQuery {
    PostgresQuery(
      """
      SELECT \(Self.smallColumns) FROM unnest($2::bytea[], $3::bytea[]) AS w(node, blob)
        CROSS JOIN LATERAL (SELECT * FROM nodes c WHERE c.tree = $1 AND c.node = w.node LIMIT 1) n
        WHERE n.blob = 0 AND n.content_id = w.blob
      UNION ALL
      SELECT \(Self.blobColumns) FROM unnest($2::bytea[], $3::bytea[]) AS w(node, blob)
        CROSS JOIN LATERAL (SELECT c.blob FROM nodes c WHERE c.tree = $1 AND c.node = w.node LIMIT 1) n
        JOIN blobs b ON b.id = n.blob
        LEFT JOIN users o ON o.id = b.owner WHERE b.blob_id = w.blob
      """, [.int(tree), .ids(names.map(\.node)), .ids(names.map(\.blob))]
    ) { read(try self.blobRow($0)) }
  }

  /// Returns small content and files of live nodes with the zones that these are in now: a split writes none of their rows.
  private func inTheirZones(_ rows: [BlobRow], tree: Int64) throws -> [BlobRow] {
    let places = try zones(ofNodes: rows.map(\.node), tree: tree)
    return rows.map { row in
      var row = row
      row.zone = places[row.node]?.zone ?? row.zone
      row.replacedMs = places[row.node]?.closedMs
      return row
    }
  }

  /// Returns small content that the nodes had, or else files with these ids; those of the node itself come first.
  private func storedContents(
    _ names: [ContentName], in tree: Int64, row read: @escaping ((ContentName, BlobRow)) -> Void
  ) -> PostgresQuery {
    PostgresQuery(
      """
      SELECT \(Self.blobColumns), w.node FROM unnest($2::bytea[], $3::bytea[]) AS w(node, blob)
      JOIN blobs b ON b.blob_id = w.blob JOIN zones z ON z.id = b.zone LEFT JOIN users o ON o.id = b.owner
      WHERE b.content IS NULL OR (b.replaced_ms IS NOT NULL AND b.node = w.node AND z.tree = $1)
      ORDER BY b.content IS NULL, b.node = w.node AND z.tree = $1 DESC, b.id
      """, [.int(tree), .ids(names.map(\.node)), .ids(names.map(\.blob))]
    ) { read((ContentName(node: try $0.id(11), blob: try $0.id(1)), try self.blobRow($0))) }
  }

  func inlineBytes(of blobs: [BlobRow]) throws -> [Int64: [UInt8]] { try smallBytes(blobs.map(\.key)) }

  /// Returns small content by its number in the contract, also of nodes that this transaction has replaced.
  func smallBytes(_ keys: [Int64]) throws -> [Int64: [UInt8]] {
    guard !keys.isEmpty else { return [:] }
    let actual = keys.map { movedContents[$0] ?? $0 }
    let rows = try db.all(
      """
      SELECT -id, content FROM nodes WHERE id = ANY($1) AND content IS NOT NULL
      UNION ALL SELECT id, content FROM blobs WHERE id = ANY($2) AND content IS NOT NULL
      """, .ints(actual.filter { $0 < 0 }.map { -$0 }), .ints(actual.filter { $0 > 0 })
    ) { ($0.int(0), $0.bytes(1)) }
    let bytesByKey = Dictionary(rows, uniquingKeysWith: { first, _ in first })
    return zip(keys, actual).reduce(into: [:]) { $0[$1.0] = bytesByKey[$1.1] }
  }

  func insertTicket(_ blob: BlobRow) throws -> Int64 {
    let key = try db.first(
      """
      INSERT INTO blobs(blob_id, zone, node, length, state, owner, root, touched_ms, replaced_ms)
      VALUES ($1, $2, $3, $4, $5, (SELECT id FROM users WHERE user_id = $6), $7, $8, $9) RETURNING id
      """, .id(blob.id), .int(blob.zone.rawValue), .id(blob.node), .ms(blob.cipherLength), .int(blob.state.rawValue),
      .id(blob.owner), .id(blob.contentRoot), .ms(blob.touchedMs), .ms(blob.replacedMs)
    ) { $0.int(0) }
    guard let key else { throw PostgresError.damaged }
    return key
  }

  func updateTicket(_ blob: BlobRow) throws {
    db.enqueue(
      """
      UPDATE blobs SET zone = $2, state = $3, owner = (SELECT id FROM users WHERE user_id = $4), root = $5,
        touched_ms = $6, replaced_ms = $7 WHERE id = $1
      """, .int(blob.key), .int(blob.zone.rawValue), .int(blob.state.rawValue), .id(blob.owner), .id(blob.contentRoot),
      .ms(blob.touchedMs), .ms(blob.replacedMs))
  }

  func insertPart(_ index: Int, hash: [UInt8], of blob: BlobRow, now: UInt64) throws {
    db.enqueue(
      """
      INSERT INTO parts(blob, idx, sha256) VALUES ($1, $2, $3) ON CONFLICT (blob, idx) DO UPDATE SET sha256 = $3
      """, .int(blob.key), .int(Int64(index)), .bytes(hash))
  }

  func parts(of blob: BlobRow) throws -> [BlobStatus.Part] {
    try db.all("SELECT idx, sha256 FROM parts WHERE blob = $1 ORDER BY idx", .int(blob.key)) {
      BlobStatus.Part(index: Int($0.int(0)), hash: WireBytes($0.bytes(1)))
    }
  }

  /// Removes uploads of the write's subjects, and retained content that no other write has attached again.
  func removeBlobs(_ blobs: [BlobRow]) throws {
    try removeBlobs(blobs.map(\.key), where: "state < 2 OR replaced_ms IS NOT NULL")
  }

  struct RemovedBlob {
    var key, zone, length, state: Int64
    var id: BlobID
    var isFile: Bool
  }

  /// - Parameters:
  ///   - condition: leaves blobs that no longer meet it. PostgreSQL evaluates it once it has locked a row, so it sees
  ///     what other writes have done since the keys were read.
  ///   - values: of the condition, from `$2`.
  @discardableResult
  func removeBlobs(
    _ keys: [Int64], where condition: String = "true", _ values: PostgresValue...
  ) throws -> [RemovedBlob] {
    guard !keys.isEmpty else { return [] }
    let actual = PostgresValue.ints(keys.map { movedContents[$0] ?? $0 })
    let gone = try db.all(
      """
      DELETE FROM blobs WHERE id = ANY($1) AND (\(condition))
      RETURNING id, zone, length, state, blob_id, content IS NULL
      """, [actual] + values
    ) { row in
      RemovedBlob(
        key: row.int(0), zone: row.int(1), length: row.int(2), state: row.int(3), id: try row.id(4),
        isFile: row.int(5) != 0)
    }
    db.enqueue("DELETE FROM parts WHERE blob = ANY($1)", .ints(gone.map(\.key)))
    for blob in gone where blob.state == BlobRow.State.attached.rawValue {
      sums[blob.zone, default: ZoneSums()].add(contents: -1, bytes: -blob.length)
    }
    return gone
  }
}

// Counts
extension PostgresTransaction {
  func contentBytes(of user: UserID) throws -> UInt64 {
    let usage = try usage(of: user)
    return usage.contentBytes + usage.uploadBytes
  }

  func recordBytes(of user: UserID) throws -> UInt64 {
    let usage = try usage(of: user)
    return usage.recordBytes + usage.logBytes
  }

  func replacedContents(of user: UserID, bytes: UInt64) throws -> [BlobRow] {
    try db.all(
      """
      SELECT s.* FROM (
        SELECT \(Self.blobColumns), sum(b.length) OVER (ORDER BY b.replaced_ms, b.id) - b.length AS before
        FROM users u JOIN trees t ON t.owner = u.id JOIN zones z ON z.tree = t.id
        JOIN blobs b ON b.zone = z.id AND b.replaced_ms IS NOT NULL LEFT JOIN users o ON o.id = b.owner
        WHERE u.user_id = $1) s
      WHERE s.before < $2 ORDER BY s.replaced_ms, s.id
      """, .id(user), .ms(bytes), row: blobRow)
  }

  func usage(of user: UserID) throws -> UsageRow {
    try flush()
    let usage = try db.first(
      """
      SELECT coalesce(sum(s.nodes), 0)::int8, coalesce(sum(z.seq + 1), 0)::int8, coalesce(sum(s.records), 0)::int8,
        coalesce(sum(s.record_bytes), 0)::int8, coalesce(sum(s.log_bytes), 0)::int8,
        coalesce(sum(s.contents), 0)::int8, coalesce(sum(s.content_bytes), 0)::int8,
        (SELECT coalesce(sum(b.length), 0)::int8 FROM blobs b
          WHERE b.state < 2 AND b.owner = (SELECT id FROM users WHERE user_id = $1)), count(z.closed_ms)
      FROM users u JOIN trees t ON t.owner = u.id JOIN zones z ON z.tree = t.id JOIN sums s ON s.zone = z.id
      WHERE u.user_id = $1
      """, .id(user), row: usageRow)
    return usage ?? UsageRow()
  }

  private func usageRow(_ row: PostgresRow) -> UsageRow {
    var usage = UsageRow()
    usage.liveNodes = row.unsigned(0)
    usage.commits = row.unsigned(1)
    usage.records = row.unsigned(2)
    usage.recordBytes = row.unsigned(3)
    usage.logBytes = row.unsigned(4)
    usage.blobs = row.unsigned(5)
    usage.contentBytes = row.unsigned(6)
    usage.uploadBytes = row.unsigned(7)
    usage.closedZones = row.unsigned(8)
    return usage
  }

  func probeFreeSpace() throws {
    // Random bytes: others would be compressed.
    db.enqueue(
      "INSERT INTO room VALUES ($1)", .bytes((0..<8_192).flatMap { _ in UInt64.random(in: 0...UInt64.max).bytes }))
  }

  func releaseProbe() throws { db.enqueue("DELETE FROM room") }
}

extension UInt64 {
  fileprivate var bytes: [UInt8] { withUnsafeBytes(of: self) { Array($0) } }
}
