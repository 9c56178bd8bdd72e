// Tables for heads of zones that messages name.
extension FrameworkSchema {
  /// - `zdc_member_head`: the newest head that a member has named and that this device's log does not contain yet.
  ///   `isReported`: a pull since then has ended before that head, and the user was notified.
  /// - `zdc_named_head`: the head that this device has last named to a user. `messageSeq` is the number of that message.
  static let memberHeads = """
    CREATE TABLE zdc_member_head (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      userID BLOB NOT NULL,
      seq INTEGER NOT NULL,
      hash BLOB NOT NULL,
      isReported INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (zone, userID)
    ) WITHOUT ROWID;
    CREATE TABLE zdc_named_head (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      userID BLOB NOT NULL,
      hash BLOB NOT NULL,
      messageSeq INTEGER NOT NULL,
      PRIMARY KEY (zone, userID)
    ) WITHOUT ROWID;
    CREATE INDEX zdc_named_head_user ON zdc_named_head (userID)
    """
}
