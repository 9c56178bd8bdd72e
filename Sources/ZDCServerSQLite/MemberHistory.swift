internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

/// The step of the schema that stores since when users are members of a zone, former members, the zones that users
/// follow, and each user's newest decryption key.
///
/// The members are replayed from the stored lists.
enum MemberHistory {
  static func migrate(_ db: Database) throws {
    try db.execute(sql: tables)
    let store = SQLiteTransaction(db)
    defer { store.invalidate() }
    try readLists(store)
    try readKeys(store)
  }

  private static let tables = """
    DROP TABLE members;
    -- A row stays when its user is removed: then the permissions are 0, and `left_seq` is the commit that did it.
    CREATE TABLE members(
      user_id BLOB NOT NULL, zone INTEGER NOT NULL, permissions INTEGER NOT NULL, joined_seq INTEGER NOT NULL,
      joined_ms INTEGER NOT NULL, left_seq INTEGER, PRIMARY KEY(user_id, zone)) WITHOUT ROWID;
    CREATE INDEX members_of_zone ON members(zone);

    -- The zones of others that users have accepted. `changed` counts the changes of a user's rows, `mark` is random.
    CREATE TABLE memberships(
      user INTEGER NOT NULL, zone INTEGER NOT NULL, changed INTEGER NOT NULL, mark INTEGER NOT NULL,
      accepted_ms INTEGER NOT NULL, ended_seq INTEGER, PRIMARY KEY(user, zone)) WITHOUT ROWID;

    ALTER TABLE users ADD COLUMN enc_gen INTEGER NOT NULL DEFAULT 1;
    """

  private static func readLists(_ store: SQLiteTransaction) throws {
    let sql = """
      SELECT c.zone, c.seq, c.received_ms, a.bytes FROM commits c JOIN acls a ON a.id = c.acl ORDER BY c.zone, c.seq
      """
    try store.db.each(sql, []) { row in
      let list: ZoneACL
      do { list = try ZoneACL(row.bytes(3)) } catch { throw StoreError.damaged }
      try store.changeMembers(
        of: ZoneKey(row.int(0)), to: list.fields.entries, seq: row.unsigned(1), at: row.unsigned(2))
      return true
    }
  }

  private static func readKeys(_ store: SQLiteTransaction) throws {
    let sql = "SELECT u.id, l.bytes FROM users u JOIN links l ON l.user = u.id AND l.seq = u.link_seq"
    let update = try store.db.prepared("UPDATE users SET enc_gen = ? WHERE id = ?")
    try store.db.each(sql, []) { row in
      let link: IdentityLink
      do { link = try IdentityLink(row.bytes(1)) } catch { throw StoreError.damaged }
      if link.encGen > 1 { try update.run(.int(Int64(link.encGen)), .int(row.int(0))) }
      return true
    }
  }
}
