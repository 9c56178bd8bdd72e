internal import ZDCServer

/// Reads the feed of a server's processes.
///
/// Its position is a snapshot, not a number: the next read returns the entries of all transactions that had not ended
/// then, so a transaction that ends late is not missed. The entries of one zone or account are in the order of their
/// transactions, because these exclude each other.
struct FeedReader {
  /// Entries are kept for five minutes. A process that reads later than this may have missed some.
  private static let longestGap: Duration = .seconds(120)
  /// The most that one read takes: 64 MiB, if each entry has the longest page. A process that is further behind reads its
  /// users' zones again.
  static let mostEntries = 1_024
  private let kept: Duration
  private static let pruneEvery: Duration = .seconds(60)

  private var snapshot: String
  /// Transaction numbers are given again after a crash of PostgreSQL, which also empties the feed.
  private var era: [UInt8]
  private var readAt: ContinuousClock.Instant
  /// The database's time at the last read.
  private(set) var databaseMs: UInt64
  /// Earlier snapshots: what the oldest one has seen is removed.
  private var earlier: [(snapshot: String, readAt: ContinuousClock.Instant)] = []

  /// Throws if there is no era: a connection that has just been opened has begun one.
  init(atEndOf db: PostgresConnection, kept: Duration = .seconds(300)) throws {
    let now = try db.first("SELECT pg_current_snapshot()::text, key, \(SharedTime.sql) FROM era") { row in
      (row.text(0), row.bytes(1), row.unsigned(2))
    }
    guard let (snapshot, era, ms) = now else { throw PostgresError.damaged }
    (self.snapshot, self.era, self.kept, databaseMs, readAt) = (snapshot, era, kept, ms, .now)
  }

  /// Returns the entries since the last call.
  mutating func next(_ db: PostgresConnection) throws -> [FeedEntry] {
    var (now, currentEra, ms) = (snapshot, era, databaseMs)
    let entries = try db.all(
      """
      SELECT n.snapshot, n.era, n.ms, f.entry, f.page
      FROM (SELECT pg_current_snapshot()::text AS snapshot, (SELECT key FROM era) AS era, \(SharedTime.sql) AS ms) n
      LEFT JOIN feed f
      ON f.xid >= pg_snapshot_xmin($1::pg_snapshot) AND NOT pg_visible_in_snapshot(f.xid, $1::pg_snapshot)
      ORDER BY f.id LIMIT $2
      """, .text(snapshot), .int(Int64(Self.mostEntries + 1))
    ) { row in
      (now, currentEra, ms) = (row.text(0), row.bytes(1), row.unsigned(2))
      return row.isNull(3) ? nil : FeedEntry(stored: row.bytes(3), page: row.optionalBytes(4))
    }
    let isWhole = currentEra == era && entries.count <= Self.mostEntries
    guard isWhole, readAt.duration(to: .now) < Self.longestGap else {
      self = try FeedReader(atEndOf: db, kept: kept)
      return [.announcement(.unknown)]
    }
    (snapshot, databaseMs, readAt) = (now, ms, .now)
    return entries.compactMap(\.self)
  }

  /// Removes old entries, now and then. The caller has delivered those of the last call of ``next(_:)``, because they are
  /// not returned again if this fails.
  mutating func prune(_ db: PostgresConnection) throws {
    if earlier.last.map({ $0.readAt.duration(to: readAt) >= Self.pruneEvery }) ?? true {
      earlier.append((snapshot, readAt))
    }
    guard let oldest = earlier.first, oldest.readAt.duration(to: readAt) > kept else { return }
    earlier.removeFirst()
    try db.run("DELETE FROM feed WHERE xid < pg_snapshot_xmin($1::pg_snapshot)", .text(oldest.snapshot))
    try SharedTurns.prune(db)
  }
}
