// Tables for records in an abnormal state, and for rotations.
extension FrameworkSchema {
  /// See ``UnreadableStore``. The columns from `recordVersion` on hold the record's public part, which the next version
  /// must follow.
  package static let unreadable = """
    CREATE TABLE zdc_unreadable (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      node BLOB NOT NULL,
      record BLOB NOT NULL,
      code TEXT NOT NULL,
      firstMs INTEGER NOT NULL,
      recordVersion INTEGER,
      dataVersion INTEGER,
      blobID BLOB,
      cipherLength INTEGER,
      contentRoot BLOB,
      PRIMARY KEY (zone, node)
    ) WITHOUT ROWID
    """

  /// Nodes that the in-flight request rotates because of a change below them. No queued operation names them.
  static let inFlightRotation = """
    CREATE TABLE zdc_in_flight_rotation (
      node INTEGER PRIMARY KEY,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      sealed BLOB NOT NULL
    );
    CREATE INDEX zdc_in_flight_rotation_zone ON zdc_in_flight_rotation (zone)
    """

  /// A rotation ends with its node: SQLite gives the number of a deleted row to a new one.
  static let rotationsOfNodes = """
    CREATE TABLE zdc_rotation_of_node (
      node INTEGER PRIMARY KEY REFERENCES zdc_node(id) ON DELETE CASCADE,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      sealed BLOB NOT NULL
    );
    INSERT INTO zdc_rotation_of_node (node, zone, sealed) SELECT node, zone, sealed FROM zdc_in_flight_rotation
    WHERE node IN (SELECT id FROM zdc_node);
    DROP TABLE zdc_in_flight_rotation;
    ALTER TABLE zdc_rotation_of_node RENAME TO zdc_in_flight_rotation;
    CREATE INDEX zdc_in_flight_rotation_zone ON zdc_in_flight_rotation (zone)
    """

  /// `listSeq`: the commit that put the access list in force; its page is requested again while the grant is missing.
  /// `keyError`: why `sealedKey` is not the key of that list.
  static let zoneKeyState = """
    ALTER TABLE zdc_zone ADD COLUMN listSeq INTEGER;
    ALTER TABLE zdc_zone ADD COLUMN keyError TEXT
    """
}
