package import GRDB

/// The framework's tables. Names that begin with `zdc_` are reserved for them.
///
/// One migrator runs these migrations first and the app's after them. A migration that has shipped never changes.
///
/// Readable without the key: row counts, padded sizes, ids, times, and references between rows. Names, keys, exact
/// sizes, tag values and app objects are sealed value by value.
package enum FrameworkSchema {
  package static func register(in migrator: inout DatabaseMigrator) {
    migrator.registerMigration("zdc.1") { db in
      for statement in tables { try db.execute(sql: statement) }
    }
    migrator.registerMigration("zdc.2") { db in
      for statement in [log, operationResend, quarantineIndex] { try db.execute(sql: statement) }
    }
    migrator.registerMigration("zdc.3") { db in try db.execute(sql: upload) }
    migrator.registerMigration("zdc.disk") { db in try db.execute(sql: disk) }
    migrator.registerMigration("zdc.order") { db in
      for statement in [leavesInOrder, deletedNodesIndex] { try db.execute(sql: statement) }
    }
    migrator.registerMigration("zdc.journal") { db in try db.execute(sql: journal) }
    migrator.registerMigration("zdc.attempts") { db in try db.execute(sql: attempt) }
    migrator.registerMigration("zdc.downloads") { db in try db.execute(sql: download) }
    migrator.registerMigration("zdc.securityEvents") { db in try db.execute(sql: securityEventTimes) }
    migrator.registerMigration("zdc.delegateFailures") { db in try db.execute(sql: delegateFailure) }
    migrator.registerMigration("zdc.records") { db in
      for statement in [unreadable, inFlightRotation, zoneKeyState] { try db.execute(sql: statement) }
    }
    migrator.registerMigration("zdc.evidence") { db in try db.execute(sql: evidence) }
    migrator.registerMigration("zdc.lostBranches") { db in try db.execute(sql: requeueLost) }
    migrator.registerMigration("zdc.people") { db in
      for statement in [identityChange, keyRetirement, contact] { try db.execute(sql: statement) }
    }
    migrator.registerMigration("zdc.members") { db in
      for statement in [listChanges, removals, zoneOwner] { try db.execute(sql: statement) }
    }
    migrator.registerMigration("zdc.links") { db in try db.execute(sql: expectedHead) }
    migrator.registerMigration("zdc.mounts") { db in try db.execute(sql: mounts) }
    migrator.registerMigration("zdc.messages") { db in try db.execute(sql: messages) }
    migrator.registerMigration("zdc.memberHeads") { db in try db.execute(sql: memberHeads) }
    migrator.registerMigration("zdc.grafts") { db in try db.execute(sql: leftZones) }
    migrator.registerMigration("zdc.downloadRequests") { db in try db.execute(sql: downloadRequests) }
    migrator.registerMigration("zdc.zoneNumbers") { db in try db.execute(sql: zoneNumbers) }
    migrator.registerMigration("zdc.moves") { db in try db.execute(sql: moves) }
    migrator.registerMigration("zdc.profiles") { db in try db.execute(sql: profiles) }
    migrator.registerMigration("zdc.messageNumbers") { db in try db.execute(sql: messageNumbers) }
    migrator.registerMigration("zdc.outgoing") { db in try db.execute(sql: outgoing) }
    migrator.registerMigration("zdc.former") { db in try db.execute(sql: former) }
    migrator.registerMigration("zdc.ownerAccounts") { db in try db.execute(sql: ownerAccount) }
    migrator.registerMigration("zdc.handles") { db in try db.execute(sql: handles) }
    migrator.registerMigration("zdc.heldMessages") { db in try db.execute(sql: heldMessages) }
    migrator.registerMigration("zdc.burnDates") { db in try db.execute(sql: cloudBurnDate) }
    migrator.registerMigration("zdc.rotations") { db in try db.execute(sql: rotationsOfNodes) }
    migrator.registerMigration("zdc.expectedHeads") { db in try db.execute(sql: expectedHeadsByZone) }
    migrator.registerMigration("zdc.retirements") { db in try db.execute(sql: "DROP TABLE zdc_key_retirement") }
    migrator.registerMigration("zdc.userNumbers") { db in try db.execute(sql: userNumbers) }
    migrator.registerMigration("zdc.dueDeliveries") { db in try db.execute(sql: dueDeliveries) }
    migrator.registerMigration("zdc.messageGaps") { db in try db.execute(sql: securityEventGaps) }
    migrator.registerMigration("zdc.recordsOnly") { db in try db.execute(sql: recordsOnlyLeaves) }
    migrator.registerMigration("zdc.circles") { db in try db.execute(sql: circularMounts) }
  }

  /// The verified log, one hash per commit. It shows where a server's log diverges, and whether this device made the
  /// missing commits. About 50 bytes per row.
  private static let log = """
    CREATE TABLE zdc_log (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      seq INTEGER NOT NULL,
      hash BLOB NOT NULL,
      isOwn INTEGER NOT NULL,
      PRIMARY KEY (zone, seq)
    ) WITHOUT ROWID
    """

  /// The version that the server has lost and that the operation sends again; NULL for operations that the app queued.
  private static let operationResend = "ALTER TABLE zdc_operation ADD COLUMN resend INTEGER"

  /// The outcomes of an operation's last few attempts, oldest first. Consecutive attempts with the same outcome share a
  /// row. Most operations succeed immediately and have none.
  private static let attempt = """
    CREATE TABLE zdc_attempt (
      id INTEGER PRIMARY KEY,
      operation INTEGER NOT NULL REFERENCES zdc_operation(id) ON DELETE CASCADE,
      firstMs INTEGER NOT NULL,
      lastMs INTEGER NOT NULL,
      times INTEGER NOT NULL,
      outcome TEXT NOT NULL,
      code TEXT
    );
    CREATE INDEX zdc_attempt_operation ON zdc_attempt (operation, id)
    """

  /// Equal events share one row, with the time of the first and of the last.
  private static let securityEventTimes = """
    ALTER TABLE zdc_security_event ADD COLUMN times INTEGER NOT NULL DEFAULT 1;
    ALTER TABLE zdc_security_event ADD COLUMN firstMs INTEGER NOT NULL DEFAULT 0;
    UPDATE zdc_security_event SET firstMs = timeMs;
    CREATE INDEX zdc_security_event_user ON zdc_security_event (localUser, code, zone, nodeID)
    """

  private static let quarantineIndex = """
    CREATE INDEX zdc_node_quarantine ON zdc_node (zone, quarantine) WHERE quarantine IS NOT NULL
    """

  /// Rows in log order. Ids are random: in a table sorted by id, a commit of a thousand operations would touch a
  /// thousand pages.
  private static let leavesInOrder = """
    CREATE TABLE zdc_leaf_in_order (
      id INTEGER PRIMARY KEY,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      node BLOB NOT NULL,
      parent BLOB NOT NULL,
      record BLOB NOT NULL,
      prev BLOB NOT NULL,
      putSeq INTEGER NOT NULL,
      keyGen INTEGER NOT NULL,
      parentKeyGen INTEGER NOT NULL,
      writer BLOB NOT NULL,
      writerGen INTEGER NOT NULL,
      pending INTEGER NOT NULL,
      UNIQUE (zone, node)
    );
    INSERT INTO zdc_leaf_in_order
      (zone, node, parent, record, prev, putSeq, keyGen, parentKeyGen, writer, writerGen, pending)
      SELECT zone, node, parent, record, prev, putSeq, keyGen, parentKeyGen, writer, writerGen, pending
      FROM zdc_leaf ORDER BY zone, putSeq;
    DROP TABLE zdc_leaf;
    ALTER TABLE zdc_leaf_in_order RENAME TO zdc_leaf;
    CREATE INDEX zdc_leaf_parent ON zdc_leaf (zone, parent);
    CREATE INDEX zdc_leaf_pending ON zdc_leaf (zone) WHERE pending = 1
    """

  /// Operations whose node still exists are found through the node.
  private static let deletedNodesIndex = """
    DROP INDEX zdc_operation_nodeID;
    CREATE INDEX zdc_operation_deleted ON zdc_operation (zone, nodeID) WHERE node IS NULL
    """

  private static let tables = [
    meta, object, localUser, user, zone, leaf, leafIndexes, node, nodeIndexes, operation, operationIndexes, dependency,
    inFlight, inFlightPut, link, tag, needsDownload, securityEvent,
  ]

  private static let meta = """
    CREATE TABLE zdc_meta (key TEXT PRIMARY KEY NOT NULL, value BLOB NOT NULL) WITHOUT ROWID
    """

  /// `rowKey` = HMAC(collection ‖ key), `collection` = HMAC(collection); the sealed value holds both in the clear.
  ///
  /// This table and zdc_tag keep their rowid because apps observe them: SQLite reports no changes in a WITHOUT ROWID
  /// table.
  private static let object = """
    CREATE TABLE zdc_object (
      collection BLOB NOT NULL,
      rowKey BLOB NOT NULL,
      value BLOB NOT NULL,
      PRIMARY KEY (collection, rowKey)
    )
    """

  /// `state`: 0 creating, 1 ready. `chain` is a bundle of identity links: the newest verified one, never shortened.
  /// `session` is the sealed token of the last session. `isNew`: created here, and not known to have its words saved
  /// anywhere.
  private static let localUser = """
    CREATE TABLE zdc_local_user (
      id INTEGER PRIMARY KEY,
      userID BLOB NOT NULL UNIQUE,
      state INTEGER NOT NULL,
      chain BLOB NOT NULL,
      sealed BLOB NOT NULL,
      createdMs INTEGER NOT NULL,
      session BLOB,
      isNew INTEGER NOT NULL DEFAULT 0
    )
    """

  private static let user = """
    CREATE TABLE zdc_user (
      userID BLOB PRIMARY KEY NOT NULL,
      chain BLOB NOT NULL,
      refreshedMs INTEGER NOT NULL
    ) WITHOUT ROWID
    """

  /// A zone that this device follows. `headSeq` is NULL before the first pull; `sealedKey` holds the zone's node key.
  private static let zone = """
    CREATE TABLE zdc_zone (
      id INTEGER PRIMARY KEY,
      localUser INTEGER NOT NULL REFERENCES zdc_local_user(id) ON DELETE CASCADE,
      appTreeID TEXT NOT NULL,
      trunk INTEGER NOT NULL,
      treeID BLOB NOT NULL,
      zoneRoot BLOB NOT NULL,
      headSeq INTEGER,
      headHash BLOB,
      acl BLOB,
      retired BLOB,
      sealedKey BLOB,
      frozen TEXT,
      UNIQUE (localUser, treeID, zoneRoot)
    )
    """

  /// The verified log's state: one row per live node. `prev` is the record that the last put replaced. `pending`: 1
  /// until the record with hash `record` is in zdc_node, 2 if it could not be opened (the node is quarantined).
  private static let leaf = """
    CREATE TABLE zdc_leaf (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      node BLOB NOT NULL,
      parent BLOB NOT NULL,
      record BLOB NOT NULL,
      prev BLOB NOT NULL,
      putSeq INTEGER NOT NULL,
      keyGen INTEGER NOT NULL,
      parentKeyGen INTEGER NOT NULL,
      writer BLOB NOT NULL,
      writerGen INTEGER NOT NULL,
      pending INTEGER NOT NULL,
      PRIMARY KEY (zone, node)
    ) WITHOUT ROWID
    """

  private static let leafIndexes = """
    CREATE INDEX zdc_leaf_parent ON zdc_leaf (zone, parent);
    CREATE INDEX zdc_leaf_pending ON zdc_leaf (zone) WHERE pending = 1
    """

  /// The local tree. `parent`, `nameTag` and the sealed name are the node's place as the app sees it. The columns from
  /// `recordVersion` on describe the newest cloud version that this device knows. `recordVersion` is 0 for a node that
  /// was never uploaded.
  private static let node = """
    CREATE TABLE zdc_node (
      id INTEGER PRIMARY KEY,
      uuid TEXT NOT NULL UNIQUE,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      nodeID BLOB NOT NULL,
      parent INTEGER REFERENCES zdc_node(id),
      depth INTEGER NOT NULL,
      nameTag BLOB NOT NULL,
      sealed BLOB NOT NULL,
      keyGen INTEGER NOT NULL,
      historyWrap BLOB,
      recordVersion INTEGER NOT NULL,
      recordHash BLOB,
      cloudParent BLOB,
      cloudNameTag BLOB,
      writer BLOB,
      recordReceivedMs INTEGER,
      burnMs INTEGER,
      dataVersion INTEGER,
      blobID BLOB,
      cipherLength INTEGER,
      contentRoot BLOB,
      dataWriter BLOB,
      dataTimeMs INTEGER,
      dataReceivedMs INTEGER,
      quarantine TEXT
    )
    """

  private static let nodeIndexes = """
    CREATE UNIQUE INDEX zdc_node_nodeID ON zdc_node (zone, nodeID);
    CREATE INDEX zdc_node_name ON zdc_node (parent, nameTag)
    """

  /// The queue, ordered by `id`. `node` is NULL for a delete: the row is gone, and `nodeID` identifies the node to
  /// delete.
  private static let operation = """
    CREATE TABLE zdc_operation (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      uuid TEXT NOT NULL UNIQUE,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      kind INTEGER NOT NULL,
      node INTEGER REFERENCES zdc_node(id) ON DELETE CASCADE,
      nodeUUID TEXT NOT NULL,
      nodeID BLOB NOT NULL,
      state INTEGER NOT NULL,
      reason INTEGER NOT NULL,
      reasonDetail TEXT,
      attempts INTEGER NOT NULL,
      notBeforeMs INTEGER NOT NULL,
      priority INTEGER NOT NULL,
      baseETag TEXT,
      sealed BLOB,
      createdMs INTEGER NOT NULL
    )
    """

  private static let operationIndexes = """
    CREATE INDEX zdc_operation_zone ON zdc_operation (zone, id);
    CREATE INDEX zdc_operation_node ON zdc_operation (node);
    CREATE INDEX zdc_operation_nodeID ON zdc_operation (zone, nodeID)
    """

  /// A dependency is satisfied when `dependsOn` is no longer in zdc_operation.
  private static let dependency = """
    CREATE TABLE zdc_dependency (
      operation INTEGER NOT NULL REFERENCES zdc_operation(id) ON DELETE CASCADE,
      dependsOn INTEGER NOT NULL,
      PRIMARY KEY (operation, dependsOn)
    ) WITHOUT ROWID;
    CREATE INDEX zdc_dependency_on ON zdc_dependency (dependsOn)
    """

  /// The last request sent for a zone, while its outcome is unknown. At most one per zone; a retry sends the same
  /// bytes.
  private static let inFlight = """
    CREATE TABLE zdc_in_flight (
      zone INTEGER PRIMARY KEY REFERENCES zdc_zone(id) ON DELETE CASCADE,
      commitHash BLOB NOT NULL,
      request BLOB NOT NULL,
      createdMs INTEGER NOT NULL
    )
    """

  /// The node changes to apply and the operation to complete when the in-flight request is accepted. One row per
  /// operation.
  private static let inFlightPut = """
    CREATE TABLE zdc_in_flight_put (
      operation INTEGER PRIMARY KEY REFERENCES zdc_operation(id) ON DELETE CASCADE,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      node INTEGER,
      sealed BLOB
    );
    CREATE INDEX zdc_in_flight_put_zone ON zdc_in_flight_put (zone)
    """

  /// Links between nodes and app objects. `rowKey` is the key in zdc_object.
  private static let link = """
    CREATE TABLE zdc_link (
      node INTEGER PRIMARY KEY REFERENCES zdc_node(id) ON DELETE CASCADE,
      rowKey BLOB NOT NULL,
      localUser INTEGER NOT NULL,
      sealed BLOB NOT NULL,
      UNIQUE (localUser, rowKey)
    )
    """

  private static let tag = """
    CREATE TABLE zdc_tag (
      node INTEGER NOT NULL REFERENCES zdc_node(id) ON DELETE CASCADE,
      identifier BLOB NOT NULL,
      sealed BLOB NOT NULL,
      PRIMARY KEY (node, identifier)
    )
    """

  /// Multipart uploads that may have to be resumed. `sealed` holds the content key, the salt and known facts about the
  /// source. A part's hash is stored here before the part leaves the device.
  private static let upload = """
    CREATE TABLE zdc_upload (
      blobID BLOB PRIMARY KEY NOT NULL,
      localUser INTEGER NOT NULL REFERENCES zdc_local_user(id) ON DELETE CASCADE,
      treeID BLOB NOT NULL,
      nodeID BLOB NOT NULL,
      sealed BLOB NOT NULL,
      createdMs INTEGER NOT NULL
    );
    CREATE INDEX zdc_upload_node ON zdc_upload (localUser, treeID, nodeID);
    CREATE TABLE zdc_upload_part (
      blobID BLOB NOT NULL REFERENCES zdc_upload(blobID) ON DELETE CASCADE,
      idx INTEGER NOT NULL,
      sha256 BLOB NOT NULL,
      PRIMARY KEY (blobID, idx)
    ) WITHOUT ROWID
    """

  /// The merge journal. `nodeUUID` is not a foreign key: an entry outlives its node. `sealed` is the whole entry.
  private static let journal = """
    CREATE TABLE zdc_journal (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      uuid TEXT NOT NULL UNIQUE,
      localUser INTEGER NOT NULL REFERENCES zdc_local_user(id) ON DELETE CASCADE,
      appTreeID TEXT NOT NULL,
      nodeUUID TEXT NOT NULL,
      timeMs INTEGER NOT NULL,
      undoneMs INTEGER,
      sealed BLOB NOT NULL
    );
    CREATE INDEX zdc_journal_node ON zdc_journal (localUser, appTreeID, nodeUUID)
    """

  private static let securityEvent = """
    CREATE TABLE zdc_security_event (
      id INTEGER PRIMARY KEY AUTOINCREMENT,
      timeMs INTEGER NOT NULL,
      code TEXT NOT NULL,
      localUser INTEGER,
      zone INTEGER,
      nodeID BLOB,
      userID BLOB
    )
    """
}
