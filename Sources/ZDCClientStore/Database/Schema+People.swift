// Tables for changes of the user's own identity, and for other users.
extension FrameworkSchema {
  /// An identity link that this device has signed and whose outcome is unknown, with the keys that it introduces. See
  /// ``PendingIdentityChange``.
  static let identityChange = """
    CREATE TABLE zdc_identity_change (
      localUser INTEGER PRIMARY KEY REFERENCES zdc_local_user(id) ON DELETE CASCADE,
      sealed BLOB NOT NULL
    )
    """

  /// Zones in which the user's sign keys below `generation` must still be retired. Dropped later: chain and log say that.
  static let keyRetirement = """
    CREATE TABLE zdc_key_retirement (
      zone INTEGER PRIMARY KEY REFERENCES zdc_zone(id) ON DELETE CASCADE,
      generation INTEGER NOT NULL
    )
    """

  /// The largest number of a local user who was removed. Numbers are not given again: engines in memory, of this process
  /// and of others, may still know the user who had it.
  static let userNumbers = """
    CREATE TABLE zdc_local_user_number (last INTEGER NOT NULL);
    INSERT INTO zdc_local_user_number (last) VALUES (0);
    CREATE TRIGGER zdc_local_user_removed AFTER DELETE ON zdc_local_user
    WHEN old.id > (SELECT last FROM zdc_local_user_number)
    BEGIN UPDATE zdc_local_user_number SET last = old.id; END
    """

  /// Whether the owner of another user's zone has closed their account. See ``ZoneRow/OwnerAccount``.
  static let ownerAccount = "ALTER TABLE zdc_zone ADD COLUMN ownerAccount INTEGER NOT NULL DEFAULT 0"

  /// `zdc_user` gets a rowid, because apps observe it: SQLite reports no changes in a WITHOUT ROWID table.
  /// `zdc_contact` holds, sealed, the decisions of this device's user about another user.
  static let contact = """
    CREATE TABLE zdc_known_user (
      userID BLOB PRIMARY KEY NOT NULL,
      chain BLOB NOT NULL,
      refreshedMs INTEGER NOT NULL
    );
    INSERT INTO zdc_known_user (userID, chain, refreshedMs) SELECT userID, chain, refreshedMs FROM zdc_user;
    DROP TABLE zdc_user;
    ALTER TABLE zdc_known_user RENAME TO zdc_user;
    CREATE TABLE zdc_contact (
      userID BLOB PRIMARY KEY NOT NULL,
      sealed BLOB NOT NULL
    )
    """
}
