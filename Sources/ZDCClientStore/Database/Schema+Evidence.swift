extension FrameworkSchema {
  /// `isProven`: a member's signature proves the reason for the freeze. `doubt`: why the server's last response could
  /// not be followed. `hasRestored`: this device re-sent lost commits without asking the user. `madeMs`: when this
  /// device made the commit. `isBinding`: the commit changed rights or keys.
  package static let evidence = """
    ALTER TABLE zdc_zone ADD COLUMN isProven INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE zdc_zone ADD COLUMN doubt TEXT;
    ALTER TABLE zdc_zone ADD COLUMN hasRestored INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE zdc_log ADD COLUMN madeMs INTEGER NOT NULL DEFAULT 0;
    ALTER TABLE zdc_log ADD COLUMN isBinding INTEGER NOT NULL DEFAULT 1
    """

  /// Heads that another device of the account has verified, until this device's log contains them.
  package static let expectedHead = """
    CREATE TABLE zdc_expected_head (
      zone INTEGER PRIMARY KEY REFERENCES zdc_zone(id) ON DELETE CASCADE,
      seq INTEGER NOT NULL,
      hash BLOB NOT NULL
    )
    """

  /// Expected heads by zone: a new device learns of branches long after its login.
  static let expectedHeadsByZone = """
    CREATE TABLE zdc_expected_zone (
      localUser INTEGER NOT NULL REFERENCES zdc_local_user(id) ON DELETE CASCADE,
      treeID BLOB NOT NULL,
      zoneRoot BLOB NOT NULL,
      seq INTEGER NOT NULL,
      hash BLOB NOT NULL,
      PRIMARY KEY (localUser, treeID, zoneRoot)
    ) WITHOUT ROWID;
    INSERT INTO zdc_expected_zone (localUser, treeID, zoneRoot, seq, hash)
    SELECT z.localUser, z.treeID, z.zoneRoot, e.seq, e.hash FROM zdc_expected_head e JOIN zdc_zone z ON z.id = e.zone;
    DROP TABLE zdc_expected_head;
    ALTER TABLE zdc_expected_zone RENAME TO zdc_expected_head
    """

  /// An earlier version lost branches that others had moved out of a folder before deleting the folder. This statement
  /// queues live nodes without a row for another read, unless this device deletes them.
  package static let requeueLost = """
    WITH RECURSIVE deleted(zone, node) AS (
      SELECT zone, nodeID FROM zdc_operation WHERE node IS NULL
      UNION SELECT l.zone, l.node FROM deleted d
      JOIN zdc_leaf l INDEXED BY zdc_leaf_parent ON l.zone = d.zone AND l.parent = d.node
    )
    UPDATE zdc_leaf SET pending = 1 WHERE pending = 0 AND (zone, node) NOT IN (SELECT zone, node FROM deleted)
    AND NOT EXISTS (SELECT 1 FROM zdc_node n WHERE n.zone = zdc_leaf.zone AND n.nodeID = zdc_leaf.node)
    """
}
