internal import ZDCProtocol
internal import ZDCServer

/// The statements that lock the rows of a write's subjects, always in the same order: accounts, zones, uploads, each by
/// their ids.
///
/// A subject that has no row yet is locked by nothing; a unique index refuses the second one.
struct SubjectLocks {
  private var accounts: [UserID] = []
  private var zones: [ZoneID] = []
  private var uploads: [BlobID] = []
  private var hasUpkeep = false

  init(_ subjects: Set<WriteSubject>) {
    for subject in subjects {
      switch subject {
      case .account(let user): accounts.append(user)
      case .zone(let zone): zones.append(zone)
      case .upload(let blob): uploads.append(blob)
      case .upkeep: hasUpkeep = true
      }
    }
  }

  /// "ZDCU".
  private static let upkeepNumber: Int64 = 0x5a44_4355

  func enqueue(to db: PostgresConnection) {
    if hasUpkeep { db.enqueue("SELECT pg_advisory_xact_lock($1)", .int(Self.upkeepNumber)) }
    if !accounts.isEmpty {
      db.enqueue(
        "SELECT id FROM users WHERE user_id = ANY($1) ORDER BY id FOR NO KEY UPDATE", .ids(accounts))
    }
    if !zones.isEmpty {
      db.enqueue(
        """
        SELECT z.id FROM unnest($1::bytea[], $2::bytea[]) AS w(tree, root) JOIN trees t ON t.tree_id = w.tree
        JOIN zones z ON z.tree = t.id AND z.root = w.root ORDER BY z.id FOR NO KEY UPDATE OF z
        """, .ids(zones.map(\.tree)), .ids(zones.map(\.root)))
    }
    if !uploads.isEmpty {
      db.enqueue(
        "SELECT id FROM blobs WHERE blob_id = ANY($1) AND state < 2 ORDER BY id FOR NO KEY UPDATE", .ids(uploads))
    }
  }
}
