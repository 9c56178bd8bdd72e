internal import ZDCProtocol

/// Compares the counts of each tree with its rows.
struct UsageCheck {
  let pass: IntegrityCheck

  /// For each table, what its rows add to the usage of their tree: bytes of content, contents, live nodes, records, bytes of
  /// replaced records.
  private static let sums = [
    """
    SELECT z.tree, coalesce(sum(b.length), 0), count(*), 0, 0, 0 FROM blobs b JOIN zones z ON z.id = b.zone
    WHERE b.state = 2 GROUP BY z.tree
    """,
    """
    SELECT z.tree, coalesce(sum(length(s.bytes)), 0), count(s.node), count(*), count(*), 0
    FROM nodes n JOIN commits c ON c.feed_position = n.commit_key JOIN zones z ON z.id = c.zone
      LEFT JOIN contents s ON s.node = n.id
    GROUP BY z.tree
    """,
    """
    SELECT z.tree, 0, 0, 0, count(*), coalesce(sum(length(r.bytes)), 0) FROM records r JOIN zones z ON z.id = r.zone
    GROUP BY z.tree
    """,
  ]

  /// Sums what each tree has, in one pass over each table: a query for each tree would read all rows each time.
  func sumUsage() throws {
    for sql in Self.sums {
      try pass.db.each(sql, []) { row in
        try pass.scratch.addUsage(of: row.int(0), (1...5).map { row.int($0) })
        return true
      }
    }
  }

  /// Checks the counts of a tree, which are the sums over its zones.
  func checkUsage(of tree: TreeUsage) throws {
    guard let liveRecordBytes = tree.liveRecordBytes else { return }
    let counted = try pass.db.first(
      """
      SELECT sum(content_bytes), sum(contents), sum(live_nodes), sum(records), sum(record_bytes) FROM zones
      WHERE tree = ?
      """, .int(tree.key)
    ) { row in (0..<5).map { row.int($0) } }
    var stored = try pass.scratch.usage(of: tree.key)
    stored[4] += liveRecordBytes
    if counted != stored { pass.add(.usage, [.tree(tree.tree)], "the counts of nodes and bytes are wrong") }
  }
}

/// The usage of a tree, summed over its zones during the check.
struct TreeUsage {
  let key: Int64
  let tree: TreeID
  /// Nil if the log of a zone is broken: then the counts cannot be compared.
  private(set) var liveRecordBytes: Int64? = 0

  init(key: Int64, tree: TreeID) {
    (self.key, self.tree) = (key, tree)
  }

  mutating func add(_ bytes: Int64?) {
    liveRecordBytes = liveRecordBytes.flatMap { sum in bytes.map { sum + $0 } }
  }
}
