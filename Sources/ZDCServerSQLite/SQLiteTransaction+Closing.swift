internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

// Removing the data of closed accounts.
extension SQLiteTransaction {
  /// The newest position that was ever given to a commit, including those of commits that were removed.
  func lastPosition() throws -> Int64 {
    let query = """
      SELECT max(coalesce((SELECT max(feed_position) FROM commits), 0),
        coalesce((SELECT position FROM removed_positions), 0))
      """
    return try db.first(query) { $0.int(0) } ?? 0
  }

  func removeClosedAccounts(closedBefore: UInt64, limit: Int) throws -> Collected {
    // An account without a keyring was removed before; its chain stays.
    let query = "SELECT id FROM users WHERE closed_ms < ? AND keyring IS NOT NULL LIMIT 1"
    guard let user = try db.first(query, .ms(closedBefore), row: { $0.int(0) }) else {
      return Collected(files: [], isMore: false)
    }
    try removeLogin(of: user)
    // First the entries of members, so that no reader sees a part of the data.
    let entries = max(try removeMembers(of: user, limit: limit), try removeMessages(of: user, limit: limit))
    guard entries < limit else { return Collected(files: [], isMore: true) }
    let blobs = try removeBlobs(of: user, limit: limit)
    let nodes = try removeNodes(of: user, limit: limit)
    let rows = try removeLogRows(of: user, limit: limit)
    if max(blobs.count, nodes, rows) < limit { try removeTrees(of: user, limit: limit) }
    return Collected(
      files: blobs.filter { $0.isFile && !$0.isUpload }.map(\.id), uploads: blobs.filter(\.isUpload).map(\.id),
      isMore: true)
  }

  private static let trees = "SELECT id FROM trees WHERE owner = ?1"
  private static let zones = "SELECT z.id FROM trees t JOIN zones z ON z.tree = t.id WHERE t.owner = ?1"

  private func removeLogin(of user: Int64) throws {
    for table in ["devices", "sessions", "handles"] { try db.run("DELETE FROM \(table) WHERE user = ?", .int(user)) }
    // No words have a random lookup ID. The column must be unique and not null.
    try db.run(
      "UPDATE users SET lookup_id = randomblob(16), login_key = x'' WHERE id = ? AND login_key <> x''", .int(user))
  }

  /// Removes the members of the user's zones with their memberships, and the user's own memberships, at most `limit` of
  /// each.
  ///
  /// - Returns: the larger number of rows. Each membership has a row in `members`, also after its end, by which it is
  ///   found.
  private func removeMembers(of user: Int64, limit: Int) throws -> Int {
    let members = try db.all(
      """
      SELECT m.user_id, m.zone, u.id FROM members m LEFT JOIN users u ON u.user_id = m.user_id
      WHERE m.zone IN (\(Self.zones)) LIMIT ?2
      """, .int(user), .int(Int64(limit))
    ) { row in (id: try row.id(0) as UserID, zone: row.int(1), key: row.optionalInt(2)) }
    for member in members {
      if let key = member.key {
        try db.run("DELETE FROM memberships WHERE user = ? AND zone = ?", .int(key), .int(member.zone))
      }
      try db.run("DELETE FROM members WHERE user_id = ? AND zone = ?", .id(member.id), .int(member.zone))
    }
    try db.run(
      "DELETE FROM memberships WHERE user = ?1 AND zone IN (SELECT zone FROM memberships WHERE user = ?1 LIMIT ?2)",
      .int(user), .int(Int64(limit)))
    return max(members.count, db.changesCount)
  }

  /// Removes waiting messages and known senders, at most `limit` of each.
  ///
  /// - Returns: the larger number of rows.
  private func removeMessages(of user: Int64, limit: Int) throws -> Int {
    try db.run(
      "DELETE FROM envelopes WHERE id IN (SELECT id FROM envelopes WHERE inbox IN (\(Self.zones)) LIMIT ?2)",
      .int(user), .int(Int64(limit)))
    let envelopes = db.changesCount
    try db.run(
      """
      DELETE FROM senders WHERE (inbox, user_id) IN (
        SELECT inbox, user_id FROM senders WHERE inbox IN (\(Self.zones)) LIMIT ?2)
      """, .int(user), .int(Int64(limit)))
    return max(envelopes, db.changesCount)
  }

  private typealias RemovedBlob = (key: Int64, id: BlobID, isFile: Bool, isUpload: Bool)

  private func removeBlobs(of user: Int64, limit: Int) throws -> [RemovedBlob] {
    let doomed: [RemovedBlob] = try db.all(
      """
      SELECT id, blob_id, content IS NULL, state < 2 FROM blobs
      WHERE zone IN (\(Self.zones)) OR (state < 2 AND owner = ?1) LIMIT ?2
      """, .int(user), .int(Int64(limit))
    ) { row in
      (key: row.int(0), id: try row.id(1), isFile: row.int(2) != 0, isUpload: row.int(3) != 0)
    }
    for blob in doomed {
      try db.run("DELETE FROM parts WHERE blob = ?", .int(blob.key))
      try db.run("DELETE FROM blobs WHERE id = ?", .int(blob.key))
    }
    return doomed
  }

  private func removeNodes(of user: Int64, limit: Int) throws -> Int {
    let doomed = try db.all(
      "SELECT tree, node, key FROM node_ids WHERE tree IN (\(Self.trees)) LIMIT ?2", .int(user), .int(Int64(limit))
    ) { row in (tree: row.int(0), node: try row.id(1) as NodeID, key: row.int(2)) }
    for node in doomed {
      try db.run("DELETE FROM contents WHERE node = ?", .int(node.key))
      try db.run("DELETE FROM node_names WHERE parent = ?", .int(node.key))
      try db.run("DELETE FROM nodes WHERE id = ?", .int(node.key))
      try db.run("DELETE FROM node_ids WHERE tree = ? AND node = ?", .int(node.tree), .id(node.node))
    }
    return doomed.count
  }

  /// Removes replaced records, grants, lists, states and commits, at most `limit` of each.
  ///
  /// - Returns: the largest number of rows removed from one table.
  private func removeLogRows(of user: Int64, limit: Int) throws -> Int {
    var most = 0
    for (table, key) in [
      ("records", "id"), ("grants", "id"), ("acls", "id"), ("states", "id"), ("commits", "feed_position"),
    ] {
      if table == "commits" { try keepPosition() }
      try db.run(
        """
        DELETE FROM \(table) WHERE \(key) IN (SELECT \(key) FROM \(table) WHERE zone IN (\(Self.zones)) LIMIT ?2)
        """, .int(user), .int(Int64(limit)))
      most = max(most, db.changesCount)
    }
    return most
  }

  private func keepPosition() throws {
    try db.run("INSERT OR REPLACE INTO removed_positions(id, position) VALUES (1, ?)", .int(try lastPosition()))
  }

  /// Removes empty zones, at most `limit`, and after the last one the trees and the keyring, which ends the removal.
  private func removeTrees(of user: Int64, limit: Int) throws {
    let zones = try db.all("\(Self.zones) LIMIT ?2", .int(user), .int(Int64(limit))) { $0.int(0) }
    for zone in zones {
      try db.run("DELETE FROM closing WHERE zone = ?", .int(zone))
      try db.run("DELETE FROM zones WHERE id = ?", .int(zone))
    }
    guard zones.count < limit else { return }
    try db.run("DELETE FROM trees WHERE owner = ?", .int(user))
    try db.run("UPDATE users SET keyring = NULL WHERE id = ?", .int(user))
  }
}
