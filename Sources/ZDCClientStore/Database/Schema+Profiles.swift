// Tables for names and avatars.
extension FrameworkSchema {
  /// - `zdc_profile`: the newest profile that an inbox's log has of each user, the local user's own included. `node` is
  ///   its node there, which apps do not see. The table has a rowid, because apps observe it.
  /// - `zdc_message_peer.profileVersion`: the newest version of the own profile that this device has sent to the user, or
  ///   queued for them.
  /// - A change of the own profile is a queued operation of kind 8 in the inbox, the delivery of a profile one of kind 7
  ///   without a node in the outbox.
  static let profiles = """
    CREATE TABLE zdc_profile (
      id INTEGER PRIMARY KEY,
      localUser INTEGER NOT NULL REFERENCES zdc_local_user(id) ON DELETE CASCADE,
      appTreeID TEXT NOT NULL,
      userID BLOB NOT NULL,
      version INTEGER NOT NULL,
      device INTEGER NOT NULL,
      node BLOB NOT NULL,
      sealed BLOB NOT NULL,
      UNIQUE (userID, localUser, appTreeID)
    );
    ALTER TABLE zdc_message_peer ADD COLUMN profileVersion INTEGER NOT NULL DEFAULT 0;
    CREATE INDEX zdc_operation_profile ON zdc_operation (zone, id) WHERE kind = 8
    """

  /// `zdc_user.handle`: the handle that the pinned chain claims. Chains that were pinned before have none.
  static let handles = """
    ALTER TABLE zdc_user ADD COLUMN handle TEXT;
    CREATE INDEX zdc_user_handle ON zdc_user (handle) WHERE handle IS NOT NULL
    """
}
