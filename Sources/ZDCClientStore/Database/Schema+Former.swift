// The table of replaced and deleted versions.
extension FrameworkSchema {
  /// What the verified log said about each version of a node until a later commit replaced or deleted it. The server
  /// keeps these versions for a while; this table decides which of them a user may be shown.
  ///
  /// - `endSeq`, `endMs`, `endWriter`: the commit that replaced or deleted it, the time in it, and who signed it.
  /// - `top`: the node whose deletion removed it; NULL for a version that was replaced.
  static let former = """
    CREATE TABLE zdc_former (
      id INTEGER PRIMARY KEY,
      zone INTEGER NOT NULL REFERENCES zdc_zone(id) ON DELETE CASCADE,
      node BLOB NOT NULL,
      parent BLOB NOT NULL,
      record BLOB NOT NULL,
      prev BLOB NOT NULL,
      putSeq INTEGER NOT NULL,
      keyGen INTEGER NOT NULL,
      parentKeyGen INTEGER NOT NULL,
      writer BLOB NOT NULL,
      writerGen INTEGER NOT NULL,
      endSeq INTEGER NOT NULL,
      endMs INTEGER NOT NULL,
      endWriter BLOB NOT NULL,
      top BLOB
    );
    CREATE INDEX zdc_former_node ON zdc_former (zone, node);
    CREATE INDEX zdc_former_deleted ON zdc_former (zone, top) WHERE top IS NOT NULL
    """
}
