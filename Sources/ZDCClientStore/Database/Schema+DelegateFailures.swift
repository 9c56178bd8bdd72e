extension FrameworkSchema {
  /// Delegate calls that threw and must be repeated. Rows hold the cloud ID, because a new node has no row yet. `part`
  /// says what to do again. The call does not determine it: a deletion may fail in the callback for a move.
  static let delegateFailure = """
    CREATE TABLE zdc_delegate_failure (
      id INTEGER PRIMARY KEY,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      nodeID BLOB NOT NULL,
      call TEXT NOT NULL,
      part INTEGER NOT NULL,
      error TEXT NOT NULL,
      times INTEGER NOT NULL,
      firstMs INTEGER NOT NULL,
      lastMs INTEGER NOT NULL,
      receivedMs INTEGER NOT NULL,
      UNIQUE (zone, nodeID, call)
    );
    CREATE INDEX zdc_delegate_failure_order ON zdc_delegate_failure (zone, lastMs)
    """
}
