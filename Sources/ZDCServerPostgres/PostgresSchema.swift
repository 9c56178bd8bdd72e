/// The tables. A step never changes once a server has run it; new steps are appended, and only add to the tables.
enum PostgresSchema {
  static var version: Int64 { Int64(steps.count) }

  /// Brings the database to this version. The caller holds the lock that keeps other servers out.
  ///
  /// - Throws: ``PostgresError``; ``NewerSchema`` if a newer server has changed the database. Then nothing was changed.
  static func migrate(_ db: PostgresConnection) throws {
    try db.run("CREATE TABLE IF NOT EXISTS schema_version(version int8 NOT NULL)")
    let found = try db.first("SELECT version FROM schema_version") { $0.int(0) } ?? 0
    guard found <= version else { throw NewerSchema() }
    for (index, step) in steps.enumerated() where index >= found {
      db.enqueue("BEGIN")
      for statement in step.split(separator: ";\n") { db.enqueue(String(statement)) }
      db.enqueue("DELETE FROM schema_version")
      db.enqueue("INSERT INTO schema_version VALUES ($1)", .int(Int64(index + 1)))
      try db.run("COMMIT")
    }
    try beginEra(db)
  }

  /// Checks that the database has the tables of this version, and changes nothing.
  ///
  /// - Throws: ``PostgresError``; ``MissingSchema``, ``OlderSchema`` or ``NewerSchema``.
  static func check(_ db: PostgresConnection) throws {
    guard try db.first("SELECT to_regclass('schema_version') IS NOT NULL", row: { $0.int(0) != 0 }) == true,
      let found = try db.first("SELECT version FROM schema_version", row: { $0.int(0) })
    else { throw MissingSchema() }
    guard found == version else { throw found > version ? NewerSchema() : OlderSchema() }
  }

  /// Begins an era unless there is one. A crash ends it.
  static func beginEra(_ db: PostgresConnection) throws {
    try db.run("INSERT INTO era VALUES (1, $1) ON CONFLICT DO NOTHING", .bytes(randomKey()))
  }

  static func randomKey() -> [UInt8] {
    (0..<4).flatMap { _ in withUnsafeBytes(of: UInt64.random(in: 0...UInt64.max)) { Array($0) } }
  }

  private static let steps = [
    """
    CREATE TABLE users(
      id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id bytea NOT NULL UNIQUE, lookup_id bytea NOT NULL UNIQUE,
      login_key bytea NOT NULL, genesis bytea NOT NULL, link_seq int8 NOT NULL, link_head bytea NOT NULL,
      sign_gen int8 NOT NULL, enc_gen int8 NOT NULL, closed_ms int8, created_ms int8 NOT NULL, keyring bytea,
      left_xid xid8);
    CREATE INDEX closed_users ON users(closed_ms) WHERE closed_ms IS NOT NULL;
    CREATE TABLE links(user_key int4, seq int8, bytes bytea NOT NULL, PRIMARY KEY(user_key, seq));
    CREATE TABLE sign_keys(user_key int4, gen int8, key bytea NOT NULL, PRIMARY KEY(user_key, gen));
    CREATE TABLE invites(code_hash bytea PRIMARY KEY, used_ms int8 NOT NULL);
    CREATE TABLE devices(
      user_key int4, device_id bytea, key bytea NOT NULL, created_ms int8 NOT NULL, PRIMARY KEY(user_key, device_id));
    CREATE TABLE sessions(
      token_hash bytea PRIMARY KEY, user_key int4 NOT NULL, device_id bytea NOT NULL, created_ms int8 NOT NULL,
      expires_ms int8 NOT NULL);
    CREATE INDEX sessions_of_user ON sessions(user_key, device_id);
    CREATE INDEX sessions_by_end ON sessions(expires_ms);

    CREATE TABLE trees(
      id int4 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tree_id bytea NOT NULL UNIQUE, owner int4 NOT NULL,
      trunk int2 NOT NULL, app text NOT NULL, UNIQUE(owner, app, trunk));
    CREATE TABLE zones(
      id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tree int4 NOT NULL, root bytea NOT NULL, seq int8 NOT NULL,
      head bytea NOT NULL, changed xid8 NOT NULL, acl int8, retired bytea NOT NULL, closed_ms int8, UNIQUE(tree, root)
    ) WITH (fillfactor = 50);
    CREATE TABLE closing(zone int8 PRIMARY KEY);
    CREATE TABLE sums(
      zone int8 PRIMARY KEY, nodes int8 NOT NULL, records int8 NOT NULL, record_bytes int8 NOT NULL,
      log_bytes int8 NOT NULL, contents int8 NOT NULL, content_bytes int8 NOT NULL) WITH (fillfactor = 50);
    CREATE TABLE acls(id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, zone int8 NOT NULL, bytes bytea NOT NULL);
    CREATE INDEX acls_of_zone ON acls(zone);
    CREATE TABLE grants(zone int8, user_id bytea, hash bytea, bytes bytea NOT NULL, PRIMARY KEY(zone, user_id, hash));
    CREATE TABLE members(
      user_id bytea, zone int8, permissions int4 NOT NULL, joined_seq int8 NOT NULL, joined_ms int8 NOT NULL,
      left_seq int8, PRIMARY KEY(user_id, zone));
    CREATE INDEX members_of_zone ON members(zone);
    CREATE TABLE memberships(
      user_key int4, zone int8, changed xid8 NOT NULL, accepted_ms int8 NOT NULL, ended_seq int8,
      PRIMARY KEY(user_key, zone));
    CREATE INDEX memberships_of_zone ON memberships(zone);
    CREATE TABLE states(zone int8, part int4, bytes bytea NOT NULL, PRIMARY KEY(zone, part));
    CREATE TABLE commits(
      zone int8, seq int8, hash bytea NOT NULL, received_ms int8 NOT NULL, acl int8, bytes bytea NOT NULL,
      PRIMARY KEY(zone, seq));
    CREATE INDEX commits_with_lists ON commits(zone, seq) WHERE acl IS NOT NULL;
    CREATE INDEX commits_by_time ON commits(received_ms);

    CREATE TABLE nodes(
      id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tree int4 NOT NULL, node bytea NOT NULL, parent bytea NOT NULL,
      tag bytea, zone int8 NOT NULL, put_seq int8 NOT NULL, put int4 NOT NULL, key_gen int8 NOT NULL,
      parent_key_gen int8 NOT NULL, hash bytea NOT NULL, received_ms int8 NOT NULL, data_received_ms int8 NOT NULL,
      record bytea NOT NULL, blob int8, content_id bytea, content bytea);
    CREATE UNIQUE INDEX nodes_by_id ON nodes(node, tree);
    CREATE UNIQUE INDEX nodes_by_name ON nodes(parent, tag, tree);
    CREATE INDEX nodes_by_put ON nodes(zone, put_seq);
    ALTER TABLE nodes ALTER record SET STORAGE EXTERNAL, ALTER content SET STORAGE EXTERNAL;
    CREATE TABLE records(
      id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, zone int8 NOT NULL, node bytea NOT NULL, hash bytea NOT NULL,
      received_ms int8 NOT NULL, data_received_ms int8 NOT NULL, replaced_ms int8 NOT NULL, bytes bytea NOT NULL);
    CREATE INDEX records_of_node ON records(zone, node);
    CREATE INDEX replaced_records ON records(replaced_ms);
    ALTER TABLE records ALTER bytes SET STORAGE EXTERNAL;

    CREATE TABLE blobs(
      id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, blob_id bytea NOT NULL, zone int8 NOT NULL, node bytea NOT NULL,
      length int8 NOT NULL, state int2 NOT NULL, owner int4, root bytea, touched_ms int8 NOT NULL, replaced_ms int8,
      content bytea);
    CREATE INDEX blobs_by_id ON blobs(blob_id);
    CREATE INDEX blobs_of_zone ON blobs(zone, replaced_ms);
    CREATE INDEX replaced_blobs ON blobs(replaced_ms) WHERE replaced_ms IS NOT NULL;
    CREATE INDEX unattached_blobs ON blobs(touched_ms) WHERE state < 2;
    CREATE INDEX uploads_of_user ON blobs(owner) WHERE state < 2;
    ALTER TABLE blobs ALTER content SET STORAGE EXTERNAL;
    CREATE TABLE parts(blob int8, idx int4, sha256 bytea NOT NULL, PRIMARY KEY(blob, idx));

    CREATE TABLE envelopes(
      id int8 GENERATED ALWAYS AS IDENTITY PRIMARY KEY, inbox int8 NOT NULL, node bytea NOT NULL, sender bytea NOT NULL,
      message bytea NOT NULL, length int8 NOT NULL, is_request int2 NOT NULL, received_ms int8 NOT NULL,
      bytes bytea NOT NULL, UNIQUE(inbox, node));
    CREATE INDEX requests_by_age ON envelopes(received_ms) WHERE is_request = 1;
    CREATE TABLE senders(inbox int8, user_id bytea, state int4 NOT NULL, PRIMARY KEY(inbox, user_id));

    CREATE TABLE room(bytes bytea NOT NULL);
    -- Transaction ids are given again after a crash, which empties an unlogged table: positions from before are then unknown.
    CREATE UNLOGGED TABLE era(id int2 PRIMARY KEY CHECK (id = 1), key bytea NOT NULL)
    """,
    """
    ALTER TABLE users ADD suspended_ms int8, ADD quota int8
    """,
    """
    CREATE TABLE handles(handle bytea PRIMARY KEY, user_key int4 NOT NULL, released_ms int8);
    CREATE INDEX handles_of_user ON handles(user_key)
    """,
    """
    CREATE TABLE settings(name text PRIMARY KEY, value bytea NOT NULL);
    CREATE TABLE nonces(nonce bytea PRIMARY KEY, expires_ms int8 NOT NULL);
    CREATE INDEX nonces_by_end ON nonces(expires_ms);
    -- A crash empties the next three, like the era; all processes then begin again. The numbers are apart, because the
    -- sequence of an unlogged table is damaged on a standby that is promoted (PostgreSQL 15).
    CREATE SEQUENCE feed_numbers;
    CREATE UNLOGGED TABLE feed(
      id int8 PRIMARY KEY DEFAULT nextval('feed_numbers'), xid xid8 NOT NULL, entry bytea NOT NULL, page bytea);
    CREATE INDEX feed_by_transaction ON feed(xid);
    CREATE UNLOGGED TABLE turns(
      tree bytea, root bytea, changed_ms int8 NOT NULL, state bytea NOT NULL, PRIMARY KEY(tree, root));
    CREATE UNLOGGED TABLE device_links(
      id bytea PRIMARY KEY, key bytea NOT NULL, answer bytea, expires_ms int8 NOT NULL, party text NOT NULL)
    """,
    """
    -- Two processes may have issued tickets with one ID at the same moment. Only the first one was used.
    DELETE FROM blobs b USING blobs f WHERE f.blob_id = b.blob_id AND f.state < 2 AND b.state < 2 AND f.id < b.id;
    CREATE UNIQUE INDEX uploads_by_id ON blobs(blob_id) WHERE state < 2
    """,
    "ALTER TABLE device_links ADD COLUMN nonce bytea",
    """
    -- An account whose data was removed has no keyring. It would stay in the index for good.
    DROP INDEX closed_users;
    CREATE INDEX closed_users ON users(closed_ms) WHERE closed_ms IS NOT NULL AND keyring IS NOT NULL
    """,
  ]
}

/// A newer server has changed the database.
struct NewerSchema: Error {}

/// An older server has used the database.
struct OlderSchema: Error {}

/// No server has used the database.
struct MissingSchema: Error {}
