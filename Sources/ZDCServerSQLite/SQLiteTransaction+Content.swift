internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Content
extension SQLiteTransaction {
  func blob(_ id: BlobID) throws -> BlobRow? {
    try db.first(
      """
      SELECT b.id, b.zone, b.node, b.length, b.state, b.content IS NOT NULL, b.owner, b.root, b.touched_ms, b.replaced_ms
      FROM blobs b WHERE b.blob_id = ?
      """, .id(id)
    ) { row in
      guard let state = BlobRow.State(rawValue: row.int(4)) else { throw StoreError.damaged }
      return BlobRow(
        key: row.int(0), id: id, zone: ZoneKey(row.int(1)), node: try row.id(2), cipherLength: row.unsigned(3),
        state: state, isInline: row.int(5) != 0, owner: try row.optionalInt(6).flatMap(userID),
        contentRoot: try row.isNull(7) ? nil : row.id(7), touchedMs: row.unsigned(8),
        replacedMs: row.isNull(9) ? nil : row.unsigned(9))
    }
  }

  private func userID(_ key: Int64) throws -> UserID? {
    try db.first("SELECT user_id FROM users WHERE id = ?", .int(key)) { try $0.id(0) }
  }

  private func userKey(_ id: UserID?) throws -> Int64? {
    guard let id else { return nil }
    return try db.first("SELECT id FROM users WHERE user_id = ?", .id(id)) { $0.int(0) }
  }

  func inlineContent(_ id: BlobID) throws -> [UInt8]? {
    try db.first("SELECT content FROM blobs WHERE blob_id = ? AND content IS NOT NULL", .id(id)) { $0.bytes(0) }
  }

  func insertBlob(_ blob: BlobRow, content: ArraySlice<UInt8>?) throws -> Int64 {
    try db.run(
      """
      INSERT INTO blobs(blob_id, zone, node, length, state, owner, root, touched_ms, content)
      VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
      """, .id(blob.id), .int(blob.zone.rawValue), .id(blob.node), .ms(blob.cipherLength), .int(blob.state.rawValue),
      .optional(try userKey(blob.owner)), blob.contentRoot.map { .id($0) } ?? .null, .ms(blob.touchedMs),
      content.map { .slice($0) } ?? .null)
    let key = db.lastInsertedRowID
    try db.run(
      "UPDATE zones SET content_bytes = content_bytes + ? WHERE id = ?", .ms(blob.cipherLength),
      .int(blob.zone.rawValue))
    return key
  }

  func updateBlob(_ blob: BlobRow) throws {
    try db.run(
      """
      UPDATE blobs SET zone = ?, state = ?, owner = ?, root = ?, touched_ms = ?, replaced_ms = ? WHERE blob_id = ?
      """, .int(blob.zone.rawValue), .int(blob.state.rawValue), .optional(try userKey(blob.owner)),
      blob.contentRoot.map { .id($0) } ?? .null, .ms(blob.touchedMs), blob.replacedMs.map { .ms($0) } ?? .null,
      .id(blob.id))
    guard blob.state == .attached, !blob.isInline else { return }
    // An upload that is over is not asked for its parts.
    try db.run("DELETE FROM parts WHERE blob = ?", .int(blob.key))
  }

  func markReplaced(blob: Int64, now: UInt64) throws {
    try db.run("UPDATE blobs SET replaced_ms = ? WHERE id = ?", .ms(now), .int(blob))
  }

  func removeBlob(_ id: BlobID) throws {
    try db.run("DELETE FROM parts WHERE blob = (SELECT id FROM blobs WHERE blob_id = ?)", .id(id))
    try db.run("DELETE FROM blobs WHERE blob_id = ?", .id(id))
  }

  func parts(of blob: BlobID) throws -> [BlobStatus.Part] {
    try db.all(
      "SELECT p.idx, p.sha256 FROM parts p JOIN blobs b ON b.id = p.blob WHERE b.blob_id = ? ORDER BY p.idx", .id(blob)
    ) { BlobStatus.Part(index: Int($0.int(0)), sha256: WireBytes($0.bytes(1))) }
  }

  func insertPart(_ index: Int, sha256: [UInt8], of blob: BlobID, now: UInt64) throws {
    try db.run(
      "INSERT OR REPLACE INTO parts(blob, idx, sha256, received_ms) SELECT id, ?, ?, ? FROM blobs WHERE blob_id = ?",
      .int(Int64(index)), .bytes(sha256), .ms(now), .id(blob))
  }
}

// Waste and counts
extension SQLiteTransaction {
  func collect(replacedBefore: UInt64, abandonedBefore: UInt64, limit: Int) throws -> Collected {
    let limit = Int64(limit)
    try db.run(
      "DELETE FROM records WHERE id IN (SELECT id FROM records WHERE replaced_ms < ? LIMIT ?)", .ms(replacedBefore),
      .int(limit))
    let records = db.changesCount
    let replaced = try db.all(
      "SELECT blob_id, content IS NULL FROM blobs WHERE replaced_ms < ? LIMIT ?", .ms(replacedBefore), .int(limit),
      row: doomed)
    let abandoned = try db.all(
      "SELECT blob_id, content IS NULL FROM blobs WHERE state < 2 AND touched_ms < ? LIMIT ?", .ms(abandonedBefore),
      .int(limit), row: doomed)
    for blob in replaced + abandoned { try removeBlob(blob.id) }
    return Collected(
      files: (replaced + abandoned).filter(\.isFile).map(\.id),
      isMore: max(records, replaced.count, abandoned.count) >= limit)
  }

  private func doomed(_ row: SQLRow) throws -> (id: BlobID, isFile: Bool) { (try row.id(0), row.int(1) != 0) }

  private static let zonesOfOwner = """
    SELECT z.id FROM zones z JOIN trees t ON t.id = z.tree
    WHERE t.owner = (SELECT o.owner FROM trees o JOIN zones p ON p.tree = o.id WHERE p.id = ?)
    """

  func contentBytes(ofOwnerOf zone: ZoneKey) throws -> UInt64 {
    try db.first(
      "SELECT coalesce(sum(content_bytes), 0) FROM zones WHERE id IN (\(Self.zonesOfOwner))", .int(zone.rawValue)
    ) { $0.unsigned(0) } ?? 0
  }

  func releaseReplaced(ofOwnerOf zone: ZoneKey, bytes: UInt64) throws -> [BlobID] {
    var doomed: [(id: BlobID, isFile: Bool)] = []
    var free: UInt64 = 0
    let sql = """
      SELECT blob_id, content IS NULL, length FROM blobs
      WHERE replaced_ms IS NOT NULL AND zone IN (\(Self.zonesOfOwner)) ORDER BY replaced_ms, id
      """
    try db.each(sql, [.int(zone.rawValue)]) { row in
      guard free < bytes else { return false }
      doomed.append(try self.doomed(row))
      free += row.unsigned(2)
      return true
    }
    for blob in doomed { try removeBlob(blob.id) }
    return doomed.filter(\.isFile).map(\.id)
  }

  func takeRoom() throws { try db.run("INSERT INTO room(bytes) VALUES (zeroblob(65536))") }
  func clearRoom() throws { try db.run("DELETE FROM room") }

  func usage(of user: UserID) throws -> UsageRow {
    let zones = """
      (SELECT z.id FROM zones z JOIN trees t ON t.id = z.tree JOIN users u ON u.id = t.owner WHERE u.user_id = ?)
      """
    var usage = UsageRow()
    usage.liveNodes = try count("count(*)", "nodes", zones, user)
    usage.commits = try count("count(*)", "commits", zones, user)
    usage.records = try count("count(*)", "records", zones, user)
    usage.recordBytes = try count("total(length(bytes))", "records", zones, user)
    usage.blobs = try count("count(*)", "blobs", zones, user)
    usage.contentBytes = try count("total(length)", "blobs", zones, user)
    return usage
  }

  private func count(_ what: String, _ table: String, _ zones: String, _ user: UserID) throws -> UInt64 {
    try db.first("SELECT \(what) FROM \(table) WHERE zone IN \(zones)", .id(user)) { $0.unsigned(0) } ?? 0
  }
}
