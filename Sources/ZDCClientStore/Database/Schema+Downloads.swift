extension FrameworkSchema {
  static let needsDownload = """
    CREATE TABLE zdc_needs_download (
      node INTEGER PRIMARY KEY REFERENCES zdc_node(id) ON DELETE CASCADE,
      components INTEGER NOT NULL
    )
    """

  /// A random number for each time that the data of a node is marked. A node whose mark was removed can so be told from
  /// one that was marked again, also if it is a new node with the row number and the id of an earlier one.
  static let downloadRequests = "ALTER TABLE zdc_needs_download ADD COLUMN dataRequest INTEGER NOT NULL DEFAULT 0"

  /// Downloads that continue after their process has ended. `owner` names the process that waits for them. `part` is 0
  /// for the data, else 1 + the wanted parts. `sealed` holds the options.
  static let download = """
    CREATE TABLE zdc_download (
      id INTEGER PRIMARY KEY,
      node INTEGER NOT NULL REFERENCES zdc_node(id) ON DELETE CASCADE,
      part INTEGER NOT NULL,
      owner BLOB NOT NULL,
      createdMs INTEGER NOT NULL,
      sealed BLOB NOT NULL,
      UNIQUE (node, part, owner)
    )
    """
}
