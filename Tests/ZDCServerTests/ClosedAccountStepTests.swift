import GRDB
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// The data of a closed account is removed in steps: no write of the server's only writer takes long.
@Suite struct ClosedAccountStepTests {
  private static let tables = ["members", "memberships", "envelopes", "senders", "zones", "closing"]
  private static let limit = 3

  private static func counts(_ reader: DatabaseQueue) throws -> [String: Int] {
    try reader.read { db in
      Dictionary(
        uniqueKeysWithValues: try tables.map {
          ($0, try Int.fetchOne(db, sql: "SELECT count(*) FROM \($0)") ?? 0)
        })
    }
  }

  /// Two accounts with ten zones each, which have each other's members and messages.
  private static let rows = """
    INSERT INTO trees(id, tree_id, owner, trunk, app) VALUES (1, x'01', 1, 1, 'a'), (2, x'02', 2, 1, 'a');
    WITH RECURSIVE n(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 10)
      INSERT INTO zones(id, tree, root, seq, head, feed_position, acl, retired)
      SELECT t.id * 100 + n, t.id, randomblob(16), 1, zeroblob(32), 0, 0, x'' FROM trees t, n;
    INSERT INTO closing SELECT id FROM zones;
    INSERT INTO members(user_id, zone, permissions, joined_seq, joined_ms)
      SELECT u.user_id, z.id, 3, 1, 1 FROM users u, zones z;
    INSERT INTO members(user_id, zone, permissions, joined_seq, joined_ms)
      SELECT zeroblob(32), id, 3, 1, 1 FROM zones;
    INSERT INTO memberships(user, zone, changed, mark, accepted_ms)
      SELECT u.id, z.id, z.id, 1, 1 FROM users u, zones z WHERE u.id <> z.tree;
    INSERT INTO envelopes(inbox, node, sender, message, length, is_request, received_ms, bytes)
      SELECT id, randomblob(16), zeroblob(32), randomblob(16), 1, 0, 1, x'00' FROM zones;
    INSERT INTO senders(inbox, user_id, state) SELECT id, zeroblob(32), 1 FROM zones;
    """

  @Test(.needsFolder) func noStepRemovesMoreThanItsLimit_andAllOfTheAccountGoes() async throws {
    let path = TestServer.newFolder() + ".sqlite"
    defer { for suffix in ["", "-wal", "-shm"] { TestServer.remove(path + suffix) } }
    let store = try SQLiteStore(path: path)
    for closedMs in [1, nil] as [UInt64?] {
      let account = try TestAccount()
      var row = UserRow(
        id: account.userID, lookup: account.lookupID, loginKey: [1], genesis: account.genesis.hash, linkSeq: 0,
        linkHead: account.genesis.hash, signGen: 1, encGen: 1, createdMs: 1)
      row.closedMs = closedMs
      try await store.write([.account(row.id)]) { [row] tx in
        try tx.insertUser(row)
        try tx.setKeyring([1], of: row.id)
        try tx.updateUser(row)
      }
    }
    let raw = try DatabaseQueue(path: path)
    try await raw.write { try $0.execute(sql: Self.rows) }
    var before = try Self.counts(raw)
    #expect(before == ["members": 60, "memberships": 20, "envelopes": 20, "senders": 20, "zones": 20, "closing": 20])
    var steps = 0
    while try await store.write([.upkeep], { try $0.removeClosedAccounts(closedBefore: 2, limit: Self.limit) }).isMore {
      let after = try Self.counts(raw)
      for table in Self.tables {
        let removed = (before[table] ?? 0) - (after[table] ?? 0)
        // Own memberships go beside those of the members.
        #expect(0...(table == "memberships" ? 2 : 1) * Self.limit ~= removed, "\(table) in step \(steps)")
      }
      // No member reads a part of the data: the zones go after their members.
      if (after["zones"] ?? 0) < 20 { #expect(after["members"] == 30) }
      (before, steps) = (after, steps + 1)
    }
    #expect(before == ["members": 30, "memberships": 0, "envelopes": 10, "senders": 10, "zones": 10, "closing": 10])
    #expect(steps > 10)
    try raw.close()
    try await store.close()
  }
}
