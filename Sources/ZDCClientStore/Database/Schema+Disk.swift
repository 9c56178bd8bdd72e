extension FrameworkSchema {
  /// Files managed by the disk manager. `kind`: 0 data and 1 thumbnail of a node, 2 avatar of a user. `owner` is the
  /// node's uuid or the userID; `identity` is the keyed hash of an avatar's identity. `file` is NULL if it is known
  /// that nothing exists. `used` orders by last use. `sealed` holds key, sizes, root and eTag. `leaves` holds the
  /// hashes of the file's leaves, NULL for one leaf.
  ///
  /// When a row is deleted, by cascade too, or drops its file, zdc_disk_garbage records the file's name in the same
  /// transaction. Pending file deletions thus survive a crash.
  package static let disk = """
    CREATE TABLE zdc_disk_file (
      id INTEGER PRIMARY KEY,
      kind INTEGER NOT NULL,
      owner TEXT NOT NULL,
      identity BLOB NOT NULL,
      node INTEGER REFERENCES zdc_node(id) ON DELETE CASCADE,
      file TEXT,
      size INTEGER NOT NULL,
      isPersistent INTEGER NOT NULL,
      afterUpload INTEGER NOT NULL,
      lifetimeMs INTEGER,
      expiresMs INTEGER,
      used INTEGER NOT NULL,
      sealed BLOB NOT NULL,
      leaves BLOB,
      UNIQUE (kind, owner, identity)
    );
    CREATE INDEX zdc_disk_file_node ON zdc_disk_file (node);
    CREATE UNIQUE INDEX zdc_disk_file_name ON zdc_disk_file (file);
    CREATE INDEX zdc_disk_file_use ON zdc_disk_file (kind, isPersistent, used, size);
    CREATE INDEX zdc_disk_file_expiry ON zdc_disk_file (expiresMs) WHERE expiresMs IS NOT NULL;
    CREATE TABLE zdc_disk_garbage (file TEXT PRIMARY KEY NOT NULL);
    CREATE TRIGGER zdc_disk_file_gone AFTER DELETE ON zdc_disk_file WHEN OLD.file IS NOT NULL
    BEGIN INSERT OR IGNORE INTO zdc_disk_garbage (file) VALUES (OLD.file); END;
    CREATE TRIGGER zdc_disk_file_replaced AFTER UPDATE OF file ON zdc_disk_file
    WHEN OLD.file IS NOT NULL AND OLD.file IS NOT NEW.file
    BEGIN INSERT OR IGNORE INTO zdc_disk_garbage (file) VALUES (OLD.file); END
    """
}
