extension FrameworkSchema {
  /// The delegate's calls that threw and are to be made again. By the cloud's id: a new node has no row yet. `part` is
  /// what is to be done again, which the call does not tell: a deletion may fail in the callback for a move.
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
