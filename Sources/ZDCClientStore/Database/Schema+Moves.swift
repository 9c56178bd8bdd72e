// Tables for nodes that move to another zone.
extension FrameworkSchema {
  /// - `zdc_crossing`: nodes that the app has moved below a node of another zone, while their rows are still in the old one.
  /// - `zdc_moved`: nodes with a copy in another zone, until their deletion is in the log. `nodeID` and `record` are the
  ///   node's in the old zone, `node` is the row, or NULL if the app has deleted it since. `isHeld`: the row is in the old
  ///   zone, otherwise in the new one. `sealed`: its keys and versions in the other of the two zones.
  /// - `zdc_claim`: nodes whose writer, another device, says that they were moved from a node of another zone, which this
  ///   device has as well. They take effect if the same writer deletes that node.
  static let moves = """
    CREATE TABLE zdc_crossing (
      node INTEGER PRIMARY KEY REFERENCES zdc_node(id) ON DELETE CASCADE
    );
    CREATE TABLE zdc_moved (
      id INTEGER PRIMARY KEY,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      nodeID BLOB NOT NULL,
      record BLOB NOT NULL,
      node INTEGER REFERENCES zdc_node(id) ON DELETE SET NULL,
      copyZone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      copyID BLOB NOT NULL,
      isHeld INTEGER NOT NULL,
      sealed BLOB NOT NULL,
      UNIQUE (zone, nodeID)
    );
    CREATE INDEX zdc_moved_node ON zdc_moved (node);
    CREATE INDEX zdc_moved_copy ON zdc_moved (copyZone, copyID);
    CREATE TABLE zdc_claim (
      node INTEGER PRIMARY KEY REFERENCES zdc_node(id) ON DELETE CASCADE,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      nodeID BLOB NOT NULL,
      writer BLOB NOT NULL
    );
    CREATE INDEX zdc_claim_node ON zdc_claim (zone, nodeID)
    """
}
