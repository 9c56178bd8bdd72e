internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Content
extension SQLiteTransaction {
  private static let blobQuery = """
    SELECT b.id, b.blob_id, b.zone, b.node, b.length, b.state, b.content IS NOT NULL, b.owner, b.root, b.touched_ms,
      b.replaced_ms
    FROM blobs b
    """

  private static let fileQuery = "\(blobQuery) WHERE b.content IS NULL AND b.blob_id = ?1"

  private func blobRow(_ row: SQLRow) throws -> BlobRow {
    guard let state = BlobRow.State(rawValue: row.int(5)) else { throw StoreError.damaged }
    return BlobRow(
      key: row.int(0), id: try row.id(1), zone: ZoneKey(row.int(2)), node: try row.id(3), cipherLength: row.unsigned(4),
      state: state, isInline: row.int(6) != 0, owner: try row.optionalInt(7).flatMap(userID),
      contentRoot: try row.isNull(8) ? nil : row.id(8), touchedMs: row.unsigned(9),
      replacedMs: row.isNull(10) ? nil : row.unsigned(10))
  }

  func blobs(_ keys: [Int64]) throws -> [BlobRow] {
    let small = try nodeKeys(keys.filter { $0 < 0 }.map(-)).map { -$0.node }
    return try (small + keys.filter { $0 > 0 }).compactMap(blob)
  }

  func blob(_ key: Int64) throws -> BlobRow? {
    if key < 0 { return try liveNode(-key).flatMap(smallContent) }
    return try db.first("\(Self.blobQuery) WHERE b.id = ?", .int(key), row: blobRow)
  }

  /// Returns the row of a live node's small content; nil if it has none.
  func smallContent(of node: LiveNode) throws -> BlobRow? {
    guard node.blob == 0, let named = try node.record.content() else { return nil }
    let length = try db.first("SELECT length(bytes) FROM contents WHERE node = ?", .int(node.key)) { $0.unsigned(0) }
    guard let length else { return nil }
    return BlobRow(
      key: -node.key, id: named.blobID, zone: node.commit.zone, node: try node.put().node, cipherLength: length,
      state: .attached, isInline: true, owner: nil, contentRoot: nil, touchedMs: node.dataReceivedMs)
  }

  func file(_ id: BlobID) throws -> BlobRow? {
    try db.first(Self.fileQuery, .id(id), row: blobRow)
  }

  func contents(_ names: [ContentName], in tree: TreeID) throws -> [ContentName: BlobRow] {
    // The node's own content takes precedence, so that another user's file with the same id cannot hide it.
    var contents = try key(of: tree).map { try ownContents(names, in: $0) } ?? [:]
    let file = try db.prepared(
      """
      \(Self.fileQuery)
      ORDER BY b.node = ?2 AND b.zone IN (SELECT z.id FROM zones z JOIN trees t ON t.id = z.tree WHERE t.tree_id = ?3) DESC
      LIMIT 1
      """)
    for name in names where contents[name] == nil {
      contents[name] = try file.first(.id(name.blob), .id(name.node), .id(tree), row: blobRow)
    }
    return contents
  }

  private func ownContents(_ names: [ContentName], in tree: Int64) throws -> [ContentName: BlobRow] {
    let kept = try db.prepared(
      """
      \(Self.blobQuery) JOIN zones z ON z.id = b.zone
      WHERE b.content IS NOT NULL AND b.replaced_ms IS NOT NULL AND b.blob_id = ?3 AND b.node = ?2 AND z.tree = ?1
      """)
    var contents: [ContentName: BlobRow] = [:]
    for name in try inOrderOfCommits(names, of: \.node, tree: tree) {
      contents[name] =
        try liveContent(name, in: tree) ?? kept.first(.int(tree), .id(name.node), .id(name.blob), row: blobRow)
    }
    return contents
  }

  private func liveContent(_ name: ContentName, in tree: Int64) throws -> BlobRow? {
    do {
      guard let node = try liveNode(name.node, tree: tree), var blob = try node.blobKey.flatMap(blob),
        blob.id == name.blob
      else { return nil }
      blob.zone = try zoneKey(of: node, tree: tree) ?? blob.zone
      blob.replacedMs = try closedMs(of: blob.zone)
      return blob
    } catch StoreError.damaged {
      // The commit that put the node is lost. Content that the node had before can still be read.
      return nil
    }
  }

  private func userID(_ key: Int64) throws -> UserID? {
    try db.first("SELECT user_id FROM users WHERE id = ?", .int(key)) { try $0.id(0) }
  }

  func userKey(_ id: UserID?) throws -> Int64? {
    guard let id else { return nil }
    return try db.first("SELECT id FROM users WHERE user_id = ?", .id(id)) { $0.int(0) }
  }

  func inlineBytes(of blobs: [BlobRow]) throws -> [Int64: [UInt8]] {
    try blobs.reduce(into: [:]) { $0[$1.key] = try storedBytes(of: $1) }
  }

  private func storedBytes(of blob: BlobRow) throws -> [UInt8]? {
    if blob.key < 0 {
      return try db.first("SELECT bytes FROM contents WHERE node = ?", .int(-blob.key)) { $0.bytes(0) }
    }
    return try db.first("SELECT content FROM blobs WHERE id = ? AND content IS NOT NULL", .int(blob.key)) {
      $0.bytes(0)
    }
  }

  func insertTicket(_ blob: BlobRow) throws -> Int64 {
    try db.run(
      "UPDATE users SET upload_bytes = upload_bytes + ? WHERE id = ?", .ms(blob.cipherLength),
      .optional(try userKey(blob.owner)))
    try db.run(
      """
      INSERT INTO blobs(blob_id, zone, node, length, state, owner, root, touched_ms, replaced_ms)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, .id(blob.id), .int(blob.zone.rawValue), .id(blob.node), .ms(blob.cipherLength), .int(blob.state.rawValue),
      .optional(try userKey(blob.owner)), blob.contentRoot.map { .id($0) } ?? .null, .ms(blob.touchedMs),
      blob.replacedMs.map { .ms($0) } ?? .null)
    return db.lastInsertedRowID
  }

  /// Stores the row by which another node has a file that is stored already.
  func insertReference(_ blob: BlobRow) throws -> Int64 {
    try db.run(
      """
      INSERT INTO blobs(blob_id, zone, node, length, state, root, touched_ms, replaced_ms) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
      """, .id(blob.id), .int(blob.zone.rawValue), .id(blob.node), .ms(blob.cipherLength), .int(blob.state.rawValue),
      blob.contentRoot.map { .id($0) } ?? .null, .ms(blob.touchedMs), .optionalMs(blob.replacedMs))
    let key = db.lastInsertedRowID
    try count(contents: 1, bytes: Int64(clamping: blob.cipherLength), in: blob.zone)
    return key
  }

  /// Returns small content of a node that this transaction may have deleted.
  func smallBytes(of blob: BlobRow) throws -> [UInt8] {
    var blob = blob
    blob.key = movedContents[blob.key] ?? blob.key
    guard let bytes = try inlineBytes(of: blob) else { throw StoreError.damaged }
    return bytes
  }

  func count(contents: Int64, bytes: Int64, in zone: ZoneKey) throws {
    try db.run(
      "UPDATE zones SET content_bytes = content_bytes + ?, contents = contents + ? WHERE id = ?", .int(bytes),
      .int(contents), .int(zone.rawValue))
  }

  func updateTicket(_ blob: BlobRow) throws { try update(blob) }

  func update(_ blob: BlobRow) throws {
    try db.run(
      """
      UPDATE blobs SET zone = ?, state = ?, owner = ?, root = ?, touched_ms = ?, replaced_ms = ? WHERE id = ?
      """, .int(blob.zone.rawValue), .int(blob.state.rawValue), .optional(try userKey(blob.owner)),
      blob.contentRoot.map { .id($0) } ?? .null, .ms(blob.touchedMs), blob.replacedMs.map { .ms($0) } ?? .null,
      .int(blob.key))
    guard blob.state == .attached, !blob.isInline else { return }
    // The parts of an attached upload are no longer needed.
    try db.run("DELETE FROM parts WHERE blob = ?", .int(blob.key))
  }

  func removeBlobs(_ blobs: [BlobRow]) throws { for blob in blobs { try removeBlob(blob.key) } }

  private func removeBlob(_ key: Int64) throws {
    let key = movedContents[key] ?? key
    try db.run("DELETE FROM parts WHERE blob = ?", .int(key))
    try db.run("DELETE FROM blobs WHERE id = ?", .int(key))
  }

  func parts(of blob: BlobRow) throws -> [BlobStatus.Part] {
    try db.all("SELECT idx, sha256 FROM parts WHERE blob = ? ORDER BY idx", .int(blob.key)) {
      BlobStatus.Part(index: Int($0.int(0)), hash: WireBytes($0.bytes(1)))
    }
  }

  func insertPart(_ index: Int, hash: [UInt8], of blob: BlobRow, now: UInt64) throws {
    try db.run(
      "INSERT OR REPLACE INTO parts(blob, idx, sha256, received_ms) VALUES (?, ?, ?, ?)", .int(blob.key),
      .int(Int64(index)), .bytes(hash), .ms(now))
  }
}

// Garbage collection and counts
extension SQLiteTransaction {
  func collect(replacedBefore: UInt64, abandonedBefore: UInt64, limit: Int) throws -> Collected {
    let limit = Int64(limit)
    let records = try removeRecords(replacedBefore: replacedBefore, limit: limit)
    let replaced = try db.all(
      "SELECT id, blob_id, content IS NULL FROM blobs WHERE replaced_ms < ? LIMIT ?", .ms(replacedBefore), .int(limit),
      row: doomed)
    let abandoned = try db.all(
      "SELECT id, blob_id, content IS NULL FROM blobs WHERE state < 2 AND touched_ms < ? LIMIT ?", .ms(abandonedBefore),
      .int(limit), row: doomed)
    for blob in replaced + abandoned { try removeBlob(blob.key) }
    return Collected(
      files: replaced.filter(\.isFile).map(\.id), uploads: abandoned.map(\.id),
      isMore: max(records, replaced.count, abandoned.count) >= limit)
  }

  private func removeRecords(replacedBefore: UInt64, limit: Int64) throws -> Int {
    let doomed = "SELECT id FROM records WHERE replaced_ms < ?1 ORDER BY replaced_ms, id LIMIT ?2"
    let sums = try db.all(
      "SELECT zone, count(*), sum(length(bytes)) FROM records WHERE id IN (\(doomed)) GROUP BY zone",
      .ms(replacedBefore), .int(limit)
    ) { (zone: $0.int(0), records: $0.int(1), bytes: $0.int(2)) }
    for sum in sums {
      try db.run(
        "UPDATE zones SET records = records - ?, record_bytes = record_bytes - ? WHERE id = ?", .int(sum.records),
        .int(sum.bytes), .int(sum.zone))
    }
    try db.run("DELETE FROM records WHERE id IN (\(doomed))", .ms(replacedBefore), .int(limit))
    return db.changesCount
  }

  private struct Doomed {
    var key: Int64
    var id: BlobID
    var isFile: Bool
  }

  private func doomed(_ row: SQLRow) throws -> Doomed {
    Doomed(key: row.int(0), id: try row.id(1), isFile: row.int(2) != 0)
  }

  private static let ownZones = """
    SELECT z.id FROM users u JOIN trees t ON t.owner = u.id JOIN zones z ON z.tree = t.id WHERE u.user_id = ?
    """

  func contentBytes(of user: UserID) throws -> UInt64 {
    let usage = try usage(of: user)
    return usage.contentBytes + usage.uploadBytes
  }

  func recordBytes(of user: UserID) throws -> UInt64 {
    let usage = try usage(of: user)
    return usage.recordBytes + usage.logBytes
  }

  func replacedContents(of user: UserID, bytes: UInt64) throws -> [BlobRow] {
    var found: [BlobRow] = []
    var free: UInt64 = 0
    let sql = """
      \(Self.blobQuery) WHERE b.replaced_ms IS NOT NULL AND b.zone IN (\(Self.ownZones))
      ORDER BY b.replaced_ms, b.id
      """
    try db.each(sql, [.id(user)]) { row in
      guard free < bytes else { return false }
      let blob = try blobRow(row)
      found.append(blob)
      free += blob.cipherLength
      return true
    }
    return found
  }

  func probeFreeSpace() throws { try db.run("INSERT INTO room(bytes) VALUES (zeroblob(65536))") }
  func releaseProbe() throws { try db.run("DELETE FROM room") }

  func usage(of user: UserID) throws -> UsageRow {
    let usage = try db.first(
      """
      SELECT coalesce(sum(z.live_nodes), 0), coalesce(sum(z.seq + 1), 0), coalesce(sum(z.records), 0),
        coalesce(sum(z.record_bytes), 0), coalesce(sum(z.log_bytes), 0), coalesce(sum(z.contents), 0),
        coalesce(sum(z.content_bytes), 0), coalesce(max(u.upload_bytes), 0), count(z.closed_ms)
      FROM users u LEFT JOIN trees t ON t.owner = u.id LEFT JOIN zones z ON z.tree = t.id WHERE u.user_id = ?
      """, .id(user)
    ) { row in
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
    return usage ?? UsageRow()
  }
}
