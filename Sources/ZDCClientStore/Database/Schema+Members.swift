// Tables for zones with several members.
extension FrameworkSchema {
  /// Changes of an access list are queued operations of kind 6. `member` is NULL for a rotation; `permissions` is 0 for
  /// a removal, the generation to replace for a rotation, and has bit 16 for other permissions of a user who is a member.
  static let listChanges = """
    ALTER TABLE zdc_operation ADD COLUMN member BLOB;
    ALTER TABLE zdc_operation ADD COLUMN permissions INTEGER;
    CREATE INDEX zdc_operation_list ON zdc_operation (zone, id) WHERE kind = 6
    """

  /// Whether the signer of the put had the right `R`, so that its record must not have content.
  static let recordsOnlyLeaves = "ALTER TABLE zdc_leaf ADD COLUMN isRecordsOnly INTEGER NOT NULL DEFAULT 0"

  /// Members who lost access, with the commit that removed them and the last generation of the zone's key that they
  /// had. Nodes with older keys can still be read with those.
  static let removals = """
    CREATE TABLE zdc_removal (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      seq INTEGER NOT NULL,
      member BLOB NOT NULL,
      commitHash BLOB NOT NULL,
      writer BLOB NOT NULL,
      receivedMs INTEGER NOT NULL,
      keyGen INTEGER NOT NULL,
      PRIMARY KEY (zone, seq, member)
    ) WITHOUT ROWID
    """

  /// `mount`: the row of the pointer in whose place the zone's root is shown. `genesis`: the hash of the only first
  /// commit that the zone may have; NULL for a trunk, whose owner's chain names it. `zdc_pointer`: the
  /// nodes that are pointers. Their targets are sealed.
  static let mounts = """
    ALTER TABLE zdc_zone ADD COLUMN mount INTEGER REFERENCES zdc_node(id) ON DELETE SET NULL;
    ALTER TABLE zdc_zone ADD COLUMN genesis BLOB;
    CREATE INDEX zdc_zone_mount ON zdc_zone (mount) WHERE mount IS NOT NULL;
    CREATE TABLE zdc_pointer (
      node INTEGER PRIMARY KEY REFERENCES zdc_node(id) ON DELETE CASCADE
    );
    """

  /// Like `mount`, for a zone that is shown nowhere because that pointer is the last one of a circle.
  static let circularMounts = """
    ALTER TABLE zdc_zone ADD COLUMN circularMount INTEGER REFERENCES zdc_node(id) ON DELETE SET NULL;
    CREATE INDEX zdc_zone_circular ON zdc_zone (circularMount) WHERE circularMount IS NOT NULL
    """

  /// Zones of other users that the user leaves. Their nodes are gone; the log is followed until the user's removal is in
  /// it.
  static let leftZones = """
    CREATE TABLE zdc_left_zone (
      zone INTEGER PRIMARY KEY REFERENCES zdc_zone(id) ON DELETE CASCADE
    )
    """

  /// The largest number of a zone that was removed. Numbers are not given again: workers in memory may still know the zone
  /// that had it.
  static let zoneNumbers = """
    CREATE TABLE zdc_zone_number (last INTEGER NOT NULL);
    INSERT INTO zdc_zone_number (last) VALUES (0);
    CREATE TRIGGER zdc_zone_removed AFTER DELETE ON zdc_zone
    WHEN old.id > (SELECT last FROM zdc_zone_number)
    BEGIN UPDATE zdc_zone_number SET last = old.id; END
    """

  /// The owner of a zone of another user's tree; NULL for the local user's own.
  static let zoneOwner = "ALTER TABLE zdc_zone ADD COLUMN owner BLOB"
}
