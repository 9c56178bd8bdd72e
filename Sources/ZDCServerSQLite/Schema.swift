internal import GRDB

/// The database schema. A step never changes once a server has run it; new steps are appended.
enum Schema {
  /// The database's `application_id`: "ZDCS".
  static let applicationID: Int64 = 0x5a44_4353

  static var version: Int { steps.count }

  static func migrate(_ db: Database, from version: Int) throws {
    for (index, step) in steps.enumerated() where index >= version {
      try db.inTransaction(.immediate) {
        try step.run(db)
        try db.execute(sql: "PRAGMA user_version = \(index + 1)")
        return .commit
      }
    }
  }

  private enum Step {
    case sql(String)
    case code(@Sendable (Database) throws -> Void)

    func run(_ db: Database) throws {
      switch self {
      case .sql(let text): try db.execute(sql: text)
      case .code(let body): try body(db)
      }
    }
  }

  private static let steps: [Step] =
    sqlSteps.map { .sql($0) } + [
      .code { try CompactNodes.migrate($0) }, .code { try MemberHistory.migrate($0) },
    ] + laterSteps.map { .sql($0) }

  private static let laterSteps = [
    """
    -- The data of a closed account is removed after a while. Accounts that were closed before count from now.
    ALTER TABLE users ADD COLUMN closed_ms INTEGER;
    UPDATE users SET closed_ms = CAST(strftime('%s', 'now') AS INTEGER) * 1000 WHERE is_closed = 1;
    ALTER TABLE users DROP COLUMN is_closed;
    CREATE INDEX closed_users ON users(closed_ms) WHERE closed_ms IS NOT NULL;
    -- The highest position of a removed commit: a position is never given twice.
    CREATE TABLE removed_positions(id INTEGER PRIMARY KEY CHECK(id = 1), position INTEGER NOT NULL);
    """,
    """
    -- The initial node lists of zones that were split off, in parts of at most 1 MiB.
    --
    -- From now on a node's zone is that of the nearest root above it. The counts of a zone are what its own commits added
    -- and removed; only the sum over all zones of a tree says what the tree has. The zone of content that a live node has
    -- is the one whose commit attached it.
    CREATE TABLE states(
      id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, part INTEGER NOT NULL, bytes BLOB NOT NULL, UNIQUE(zone, part));
    """,
    """
    -- The owner may end a zone. Its nodes are removed afterwards, in steps; until then the zone is in `closing`.
    ALTER TABLE zones ADD COLUMN closed_ms INTEGER;
    CREATE TABLE closing(zone INTEGER PRIMARY KEY);
    """,
    """
    -- Several nodes may have one file, each in a separate row.
    DROP INDEX files;
    CREATE INDEX files ON blobs(blob_id) WHERE content IS NULL;
    """,
    """
    -- Few commits have a list; the one before a page is found without reading the others.
    CREATE INDEX commits_with_lists ON commits(zone, seq) WHERE acl IS NOT NULL;
    """,
    """
    -- Messages that wait for their recipients. A number is never given twice: clients compare the newest.
    CREATE TABLE envelopes(
      id INTEGER PRIMARY KEY AUTOINCREMENT, inbox INTEGER NOT NULL, node BLOB NOT NULL, sender BLOB NOT NULL,
      message BLOB NOT NULL, length INTEGER NOT NULL, is_request INTEGER NOT NULL, received_ms INTEGER NOT NULL,
      bytes BLOB NOT NULL, UNIQUE(inbox, node));
    CREATE INDEX requests_by_age ON envelopes(received_ms) WHERE is_request = 1;
    -- State, a sum: 1 has written, 2 accepted, 4 blocked.
    CREATE TABLE senders(
      inbox INTEGER NOT NULL, user_id BLOB NOT NULL, state INTEGER NOT NULL, PRIMARY KEY(inbox, user_id)) WITHOUT ROWID;
    """,
    """
    -- A database that was filled from another one has other positions in feeds. It knows only those that bear its mark.
    CREATE TABLE era(id INTEGER PRIMARY KEY CHECK(id = 1), mark INTEGER NOT NULL);
    """,
    """
    -- What an operator decides about an account.
    ALTER TABLE users ADD COLUMN suspended_ms INTEGER;
    ALTER TABLE users ADD COLUMN quota INTEGER;
    """,
    """
    -- Names by which users are found. One that was given up stays reserved for its user for a while.
    CREATE TABLE handles(handle BLOB PRIMARY KEY, user INTEGER NOT NULL, released_ms INTEGER) WITHOUT ROWID;
    CREATE INDEX handles_of_user ON handles(user);
    """,
    """
    -- An account whose data was removed has no keyring. It would stay in the index for good.
    DROP INDEX closed_users;
    CREATE INDEX closed_users ON users(closed_ms) WHERE closed_ms IS NOT NULL AND keyring IS NOT NULL;
    """,
  ]

  private static let sqlSteps = [
    """
    PRAGMA application_id = \(applicationID);

    CREATE TABLE users(
      id INTEGER PRIMARY KEY, user_id BLOB NOT NULL UNIQUE, lookup_id BLOB NOT NULL UNIQUE, login_key BLOB NOT NULL,
      genesis BLOB NOT NULL, link_seq INTEGER NOT NULL, link_head BLOB NOT NULL, sign_gen INTEGER NOT NULL,
      is_closed INTEGER NOT NULL, created_ms INTEGER NOT NULL, keyring BLOB);
    CREATE TABLE links(
      user INTEGER NOT NULL REFERENCES users, seq INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY(user, seq));
    CREATE TABLE sign_keys(
      user INTEGER NOT NULL, gen INTEGER NOT NULL, key BLOB NOT NULL, PRIMARY KEY(user, gen)) WITHOUT ROWID;
    CREATE TABLE invites(
      code_hash BLOB PRIMARY KEY, user INTEGER NOT NULL, used_ms INTEGER NOT NULL) WITHOUT ROWID;
    CREATE TABLE devices(
      user INTEGER NOT NULL, device_id BLOB NOT NULL, key BLOB NOT NULL, created_ms INTEGER NOT NULL,
      PRIMARY KEY(user, device_id)) WITHOUT ROWID;
    CREATE TABLE sessions(
      token_hash BLOB PRIMARY KEY, user INTEGER NOT NULL, device_id BLOB NOT NULL, created_ms INTEGER NOT NULL,
      expires_ms INTEGER NOT NULL) WITHOUT ROWID;
    CREATE INDEX sessions_of_user ON sessions(user, device_id);
    CREATE INDEX sessions_by_end ON sessions(expires_ms);

    CREATE TABLE trees(
      id INTEGER PRIMARY KEY, tree_id BLOB NOT NULL UNIQUE, owner INTEGER NOT NULL, trunk INTEGER NOT NULL,
      app TEXT NOT NULL, UNIQUE(owner, app, trunk));
    CREATE TABLE zones(
      id INTEGER PRIMARY KEY, tree INTEGER NOT NULL, root BLOB NOT NULL, seq INTEGER NOT NULL, head BLOB NOT NULL,
      feed_position INTEGER NOT NULL, acl INTEGER NOT NULL, retired BLOB NOT NULL, UNIQUE(tree, root));
    CREATE TABLE acls(id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, bytes BLOB NOT NULL);
    CREATE TABLE grants(
      id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, user_id BLOB NOT NULL, hash BLOB NOT NULL, bytes BLOB NOT NULL,
      UNIQUE(zone, user_id, hash));
    CREATE TABLE members(
      user_id BLOB NOT NULL, zone INTEGER NOT NULL, permissions INTEGER NOT NULL,
      PRIMARY KEY(user_id, zone)) WITHOUT ROWID;
    CREATE INDEX members_of_zone ON members(zone);

    -- The key is the server-wide number of an accepted commit: it only grows, commits are never deleted.
    CREATE TABLE commits(
      feed_position INTEGER PRIMARY KEY, zone INTEGER NOT NULL, seq INTEGER NOT NULL, hash BLOB NOT NULL,
      received_ms INTEGER NOT NULL, acl INTEGER, first_record INTEGER, last_record INTEGER, bytes BLOB NOT NULL,
      UNIQUE(zone, seq));
    CREATE INDEX commits_by_hash ON commits(substr(hash, 1, 8));

    -- A record is stored once, appended; those of one commit have neighbouring keys. Eight bytes of its hash find it.
    CREATE TABLE records(
      id INTEGER PRIMARY KEY, zone INTEGER NOT NULL, hash BLOB NOT NULL, received_ms INTEGER NOT NULL,
      data_received_ms INTEGER NOT NULL, replaced_ms INTEGER, bytes BLOB NOT NULL);
    CREATE INDEX records_by_hash ON records(substr(hash, 1, 8));
    CREATE INDEX replaced_records ON records(replaced_ms) WHERE replaced_ms IS NOT NULL;

    -- The live nodes. A tag is null for roots, and while a commit changes names.
    CREATE TABLE nodes(
      tree INTEGER NOT NULL, node BLOB NOT NULL, zone INTEGER NOT NULL, parent BLOB NOT NULL, tag BLOB,
      record INTEGER NOT NULL, blob INTEGER, put_seq INTEGER NOT NULL, key_gen INTEGER NOT NULL,
      parent_key_gen INTEGER NOT NULL, PRIMARY KEY(tree, node)) WITHOUT ROWID;
    CREATE UNIQUE INDEX nodes_by_name ON nodes(tree, parent, tag);

    -- State: 0 receiving, 1 complete, 2 attached. Content only up to 64 KiB; larger ones are files.
    CREATE TABLE blobs(
      id INTEGER PRIMARY KEY, blob_id BLOB NOT NULL UNIQUE, zone INTEGER NOT NULL, node BLOB NOT NULL,
      length INTEGER NOT NULL, state INTEGER NOT NULL, owner INTEGER, root BLOB, touched_ms INTEGER NOT NULL,
      replaced_ms INTEGER, content BLOB);
    CREATE INDEX replaced_blobs ON blobs(replaced_ms) WHERE replaced_ms IS NOT NULL;
    CREATE INDEX unattached_blobs ON blobs(touched_ms) WHERE state < 2;
    CREATE TABLE parts(
      blob INTEGER NOT NULL, idx INTEGER NOT NULL, sha256 BLOB NOT NULL, received_ms INTEGER NOT NULL,
      PRIMARY KEY(blob, idx)) WITHOUT ROWID;
    """,
    """
    -- Bytes of all contents of a zone, kept ones and running uploads included: what a quota is compared with.
    ALTER TABLE zones ADD COLUMN content_bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE zones SET content_bytes = sums.total
      FROM (SELECT zone, sum(length) AS total FROM blobs GROUP BY zone) AS sums WHERE sums.zone = zones.id;
    CREATE TRIGGER blob_inserted AFTER INSERT ON blobs BEGIN
      UPDATE zones SET content_bytes = content_bytes + NEW.length WHERE id = NEW.zone; END;
    CREATE TRIGGER blob_deleted AFTER DELETE ON blobs BEGIN
      UPDATE zones SET content_bytes = content_bytes - OLD.length WHERE id = OLD.zone; END;
    CREATE TRIGGER blob_moved AFTER UPDATE OF zone ON blobs WHEN OLD.zone <> NEW.zone BEGIN
      UPDATE zones SET content_bytes = content_bytes - OLD.length WHERE id = OLD.zone;
      UPDATE zones SET content_bytes = content_bytes + NEW.length WHERE id = NEW.zone; END;
    CREATE INDEX replaced_blobs_of_zone ON blobs(zone, replaced_ms) WHERE replaced_ms IS NOT NULL;

    -- Whether there is room is found out by writing.
    CREATE TABLE room(id INTEGER PRIMARY KEY, bytes BLOB NOT NULL);
    """,
    """
    -- The live nodes in the order of their first puts: their ids are random, and a commit of a thousand would touch a
    -- thousand pages of a table that lies in their order.
    CREATE TABLE nodes_in_order(
      id INTEGER PRIMARY KEY, tree INTEGER NOT NULL, node BLOB NOT NULL, zone INTEGER NOT NULL, parent BLOB NOT NULL,
      tag BLOB, record INTEGER NOT NULL, blob INTEGER, put_seq INTEGER NOT NULL, key_gen INTEGER NOT NULL,
      parent_key_gen INTEGER NOT NULL, UNIQUE(tree, node));
    INSERT INTO nodes_in_order(tree, node, zone, parent, tag, record, blob, put_seq, key_gen, parent_key_gen)
      SELECT tree, node, zone, parent, tag, record, blob, put_seq, key_gen, parent_key_gen FROM nodes ORDER BY record;
    DROP TABLE nodes;
    ALTER TABLE nodes_in_order RENAME TO nodes;
    CREATE UNIQUE INDEX nodes_by_name ON nodes(tree, parent, tag);

    -- A statement with a trigger keeps every page that it changes, so that it can be undone alone: 16 KiB written for
    -- each small content. The sum is now kept by a statement of its own.
    DROP TRIGGER blob_inserted;
    """,
    """
    -- A small content is found by way of its node while it is live: one index less over random ids, which grow into
    -- hundreds of changed pages for each commit of a thousand. Ids of files stay unique.
    CREATE TABLE blobs_of_nodes(
      id INTEGER PRIMARY KEY, blob_id BLOB NOT NULL, zone INTEGER NOT NULL, node BLOB NOT NULL,
      length INTEGER NOT NULL, state INTEGER NOT NULL, owner INTEGER, root BLOB, touched_ms INTEGER NOT NULL,
      replaced_ms INTEGER, content BLOB);
    INSERT INTO blobs_of_nodes(
        id, blob_id, zone, node, length, state, owner, root, touched_ms, replaced_ms, content)
      SELECT id, blob_id, zone, node, length, state, owner, root, touched_ms, replaced_ms, content FROM blobs ORDER BY id;
    DROP TABLE blobs;
    ALTER TABLE blobs_of_nodes RENAME TO blobs;
    CREATE UNIQUE INDEX files ON blobs(blob_id) WHERE content IS NULL;
    CREATE INDEX kept_contents ON blobs(blob_id) WHERE content IS NOT NULL AND replaced_ms IS NOT NULL;
    CREATE INDEX replaced_blobs ON blobs(replaced_ms) WHERE replaced_ms IS NOT NULL;
    CREATE INDEX unattached_blobs ON blobs(touched_ms) WHERE state < 2;
    CREATE INDEX replaced_blobs_of_zone ON blobs(zone, replaced_ms) WHERE replaced_ms IS NOT NULL;
    CREATE TRIGGER blob_deleted AFTER DELETE ON blobs BEGIN
      UPDATE zones SET content_bytes = content_bytes - OLD.length WHERE id = OLD.zone; END;
    CREATE TRIGGER blob_moved AFTER UPDATE OF zone ON blobs WHEN OLD.zone <> NEW.zone BEGIN
      UPDATE zones SET content_bytes = content_bytes - OLD.length WHERE id = OLD.zone;
      UPDATE zones SET content_bytes = content_bytes + NEW.length WHERE id = NEW.zone; END;
    """,
    """
    -- What an audit reports and a quota bounds is counted with each commit: no question reads all rows of a zone.
    ALTER TABLE zones ADD COLUMN live_nodes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE zones ADD COLUMN records INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE zones ADD COLUMN record_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE zones ADD COLUMN log_bytes INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE zones ADD COLUMN contents INTEGER NOT NULL DEFAULT 0;
    UPDATE zones SET
      live_nodes = (SELECT count(*) FROM nodes n WHERE n.zone = zones.id),
      records = (SELECT count(*) FROM records r WHERE r.zone = zones.id),
      record_bytes = (SELECT coalesce(sum(length(bytes)), 0) FROM records r WHERE r.zone = zones.id),
      log_bytes = (SELECT coalesce(sum(length(bytes)), 0) FROM commits c WHERE c.zone = zones.id)
        + (SELECT coalesce(sum(length(bytes)), 0) FROM acls a WHERE a.zone = zones.id)
        + (SELECT coalesce(sum(length(bytes)), 0) FROM grants g WHERE g.zone = zones.id),
      contents = (SELECT count(*) FROM blobs b WHERE b.zone = zones.id);
    DROP TRIGGER blob_deleted;
    DROP TRIGGER blob_moved;
    CREATE TRIGGER blob_deleted AFTER DELETE ON blobs BEGIN
      UPDATE zones SET content_bytes = content_bytes - OLD.length, contents = contents - 1 WHERE id = OLD.zone; END;
    CREATE TRIGGER blob_moved AFTER UPDATE OF zone ON blobs WHEN OLD.zone <> NEW.zone BEGIN
      UPDATE zones SET content_bytes = content_bytes - OLD.length, contents = contents - 1 WHERE id = OLD.zone;
      UPDATE zones SET content_bytes = content_bytes + NEW.length, contents = contents + 1 WHERE id = NEW.zone; END;
    """,
    """
    -- An upload counts for the user who began it until a commit attaches it, and for the zone's owner from then on.
    ALTER TABLE users ADD COLUMN upload_bytes INTEGER NOT NULL DEFAULT 0;
    UPDATE users SET upload_bytes = sums.total
      FROM (SELECT owner, sum(length) AS total FROM blobs WHERE state < 2 GROUP BY owner) AS sums
      WHERE sums.owner = users.id;
    UPDATE zones SET content_bytes = content_bytes - sums.total, contents = contents - sums.number
      FROM (SELECT zone, sum(length) AS total, count(*) AS number FROM blobs WHERE state < 2 GROUP BY zone) AS sums
      WHERE sums.zone = zones.id;
    DROP TRIGGER blob_deleted;
    DROP TRIGGER blob_moved;
    CREATE TRIGGER upload_deleted AFTER DELETE ON blobs WHEN OLD.state < 2 BEGIN
      UPDATE users SET upload_bytes = upload_bytes - OLD.length WHERE id = OLD.owner; END;
    CREATE TRIGGER content_deleted AFTER DELETE ON blobs WHEN OLD.state = 2 BEGIN
      UPDATE zones SET content_bytes = content_bytes - OLD.length, contents = contents - 1 WHERE id = OLD.zone; END;
    CREATE TRIGGER upload_attached AFTER UPDATE OF state ON blobs WHEN OLD.state < 2 AND NEW.state = 2 BEGIN
      UPDATE users SET upload_bytes = upload_bytes - OLD.length WHERE id = OLD.owner;
      UPDATE zones SET content_bytes = content_bytes + NEW.length, contents = contents + 1 WHERE id = NEW.zone; END;
    CREATE TRIGGER content_moved AFTER UPDATE OF zone ON blobs WHEN OLD.state = 2 AND OLD.zone <> NEW.zone BEGIN
      UPDATE zones SET content_bytes = content_bytes - OLD.length, contents = contents - 1 WHERE id = OLD.zone;
      UPDATE zones SET content_bytes = content_bytes + NEW.length, contents = contents + 1 WHERE id = NEW.zone; END;
    """,
    """
    -- A commit is found by its zone and number. An index over hashes is one page more that each commit changes.
    DROP INDEX commits_by_hash;
    """,
  ]
}
