// Tables for messages.
extension FrameworkSchema {
  /// The burn date that the cloud has. Before this column, a queued change of it could not be told from another device's.
  static let cloudBurnDate = """
    ALTER TABLE zdc_node ADD COLUMN cloudBurnMs INTEGER;
    UPDATE zdc_node SET cloudBurnMs = burnMs WHERE burnMs IS NOT NULL AND recordHash IS NOT NULL
    """

  /// Messages to one recipient are queued operations of kind 7; `member` is the recipient.
  ///
  /// - `zdc_envelope`: the sealed message, from before it is sent until the log says that the recipient has
  ///   it, or the server refuses it.
  /// - `zdc_message_peer`: users with whom messages are exchanged. `sentSeq` is the highest number of this device's messages that
  ///   the user was served with; `isKnown` whether messages of the user are taken over.
  /// - `zdc_message_seen`: nodes that an inbox's log has ever had. They are never taken over again.
  static let messages = """
    CREATE TABLE zdc_envelope (
      operation INTEGER PRIMARY KEY REFERENCES zdc_operation(id) ON DELETE CASCADE,
      recipient BLOB NOT NULL,
      seq INTEGER NOT NULL,
      bytes BLOB NOT NULL
    );
    CREATE TABLE zdc_message_peer (
      localUser INTEGER NOT NULL REFERENCES zdc_local_user(id) ON DELETE CASCADE,
      appTreeID TEXT NOT NULL,
      userID BLOB NOT NULL,
      sentSeq INTEGER NOT NULL DEFAULT 0,
      isKnown INTEGER NOT NULL,
      PRIMARY KEY (localUser, appTreeID, userID)
    ) WITHOUT ROWID;
    CREATE TABLE zdc_message_seen (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      node BLOB NOT NULL,
      PRIMARY KEY (zone, node)
    ) WITHOUT ROWID;
    CREATE INDEX zdc_operation_delivery ON zdc_operation (zone, id) WHERE kind = 7
    """

  /// Deliveries that may be sent once their pause has ended: pending, not blocked by a dependency, and not parked. A query
  /// has to repeat this condition for SQLite to use the partial index.
  static let dueDelivery = "kind = 7 AND state = 0 AND isBlocked = 0 AND reason NOT IN (6, 8, 9, 12, 15, 16, 17)"

  /// Whether an operation that a row depends on is still queued.
  static let hasOpenDependency = """
    EXISTS (
      SELECT 1 FROM zdc_dependency d CROSS JOIN zdc_operation t ON t.id = d.dependsOn
      WHERE d.operation = zdc_operation.id)
    """

  /// `isBlocked`: whether an operation that a delivery depends on is still queued; 0 for other operations. A trigger clears it,
  /// because operations also go with their nodes.
  static let dueDeliveries = """
    ALTER TABLE zdc_operation ADD COLUMN isBlocked INTEGER NOT NULL DEFAULT 0;
    UPDATE zdc_operation SET isBlocked = 1 WHERE kind = 7 AND \(hasOpenDependency);
    CREATE INDEX zdc_operation_due ON zdc_operation (zone, notBeforeMs, id) WHERE \(dueDelivery);
    CREATE INDEX zdc_operation_sent ON zdc_operation (zone, id) WHERE kind = 7 AND state = 2;
    CREATE INDEX zdc_operation_blocked ON zdc_operation (id) WHERE isBlocked = 1;
    CREATE INDEX zdc_envelope_recipient ON zdc_envelope (recipient, seq);
    CREATE TRIGGER zdc_operation_gone AFTER DELETE ON zdc_operation
    WHEN EXISTS (SELECT 1 FROM zdc_operation WHERE isBlocked = 1) BEGIN
      UPDATE zdc_operation SET isBlocked = 0
      WHERE id IN (SELECT operation FROM zdc_dependency WHERE dependsOn = OLD.id) AND isBlocked = 1
        AND NOT \(hasOpenDependency);
    END
    """

  /// `zdc_held_message`: messages in the mailbox that a known sender's compromised key signed. They wait until the user
  /// accepts them.
  static let heldMessages = """
    CREATE TABLE zdc_held_message (
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      sender BLOB NOT NULL,
      message BLOB NOT NULL,
      isAccepted INTEGER NOT NULL DEFAULT 0,
      PRIMARY KEY (zone, sender, message)
    ) WITHOUT ROWID
    """

  /// `zdc_outgoing`: messages of the outbox that another device of the user sends and has not sent to all recipients.
  /// This device takes them over at `dueMs`.
  static let outgoing = """
    CREATE TABLE zdc_outgoing (
      node INTEGER PRIMARY KEY REFERENCES zdc_node(id) ON DELETE CASCADE,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      dueMs INTEGER NOT NULL
    );
    CREATE INDEX zdc_outgoing_zone ON zdc_outgoing (zone, dueMs)
    """

  /// The sending device, and the lowest and highest number of its missing messages.
  static let securityEventGaps = """
    ALTER TABLE zdc_security_event ADD COLUMN device INTEGER;
    ALTER TABLE zdc_security_event ADD COLUMN firstMissing INTEGER;
    ALTER TABLE zdc_security_event ADD COLUMN lastMissing INTEGER
    """
}
