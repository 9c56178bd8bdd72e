// Tables for the numbers of received messages.
extension FrameworkSchema {
  /// - `zdc_message_seen.isRead`: whether this device has read the message's record.
  /// - `zdc_message_inbox`: one row for an inbox. `unread` counts messages that another device has deleted before this one
  ///   read their records, so that their numbers are unknown here. `isBaseline`: the first pull is not finished.
  /// - `zdc_message_device`: the highest number of each device of a sender. `unread` is that of the inbox when it was
  ///   compared last.
  /// - `zdc_message_number`: numbers that were read since then.
  static let messageNumbers = """
    ALTER TABLE zdc_message_seen ADD COLUMN isRead INTEGER NOT NULL DEFAULT 0;
    CREATE TABLE zdc_message_inbox (
      zone INTEGER PRIMARY KEY REFERENCES zdc_zone(id) ON DELETE CASCADE,
      unread INTEGER NOT NULL DEFAULT 0,
      isBaseline INTEGER NOT NULL DEFAULT 0
    );
    CREATE TABLE zdc_message_device (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      sender BLOB NOT NULL,
      device INTEGER NOT NULL,
      highest INTEGER NOT NULL,
      unread INTEGER NOT NULL,
      PRIMARY KEY (zone, sender, device)
    ) WITHOUT ROWID;
    CREATE TABLE zdc_message_number (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      sender BLOB NOT NULL,
      device INTEGER NOT NULL,
      seq INTEGER NOT NULL,
      PRIMARY KEY (zone, sender, device, seq)
    ) WITHOUT ROWID
    """
}
