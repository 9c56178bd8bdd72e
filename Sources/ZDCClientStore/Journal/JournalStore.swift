package import Foundation
package import GRDB
package import ZDCCrypto
internal import ZDCMerge
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// The rows of zdc_journal inside one transaction: an entry, sealed as a whole, with what it is found by.
package final class JournalStore {
  private let db: Database
  private let sealer: TableSealer

  package init(db: Database, sealer: ValueSealer) {
    self.db = db
    self.sealer = sealer.table("zdc_journal")
  }

  /// Whose journal: one for each tree of a local user.
  package struct Owner: Hashable {
    package var localUser: Int64
    package var appTreeID: String
  }

  // MARK: Reading

  /// Newest first.
  package func entries(of owner: Owner, nodeID: String?, limit: Int) throws -> [ZDCMergeJournalEntry] {
    let statement = try db.cachedStatement(
      sql: """
        \(Self.select) WHERE localUser = ? AND appTreeID = ? AND (?3 IS NULL OR nodeUUID = ?3) ORDER BY id DESC LIMIT ?
        """)
    return try Row.fetchAll(statement, arguments: [owner.localUser, owner.appTreeID, nodeID, limit]).map(open)
  }

  package func entry(_ id: UUID, of owner: Owner) throws -> ZDCMergeJournalEntry? {
    let statement = try db.cachedStatement(sql: "\(Self.select) WHERE uuid = ? AND localUser = ? AND appTreeID = ?")
    return try Row.fetchOne(statement, arguments: [id.uuidString, owner.localUser, owner.appTreeID]).map(open)
  }

  private static let select = "SELECT uuid, sealed, undoneMs FROM zdc_journal"

  private func open(_ row: Row) throws -> ZDCMergeJournalEntry {
    let uuid: String = row[0]
    let json = try sealer.open(try row.requiredBytes(1), row: Array(uuid.utf8))
    var entry: ZDCMergeJournalEntry
    do {
      entry = try JSONDecoder().decode(ZDCMergeJournalEntry.self, from: Data(json))
    } catch { throw ZDCError(.corruptDatabase, underlying: error) }
    entry.undoneAt = row.unsigned(2).map(Date.init(ms:))
    return entry
  }

  // MARK: Writing

  package func insert(_ entry: ZDCMergeJournalEntry, of owner: Owner, limits: ZDCJournalLimits) throws {
    let json = try entry.shortened(to: limits.maxEntryBytes)
    let uuid = entry.id.uuidString
    let sealed = Data(try sealer.seal([UInt8](json), row: Array(uuid.utf8)))
    let statement = try db.cachedStatement(
      sql: "INSERT INTO zdc_journal (uuid, localUser, appTreeID, nodeUUID, timeMs, sealed) VALUES (?, ?, ?, ?, ?, ?)")
    try statement.execute(
      arguments: [uuid, owner.localUser, owner.appTreeID, entry.nodeID, entry.date.ms.stored, sealed])
    try prune(owner, limits, now: entry.date)
  }

  func setUndone(_ id: UUID, atMs time: UInt64) throws {
    let statement = try db.cachedStatement(sql: "UPDATE zdc_journal SET undoneMs = ? WHERE uuid = ?")
    try statement.execute(arguments: [time.stored, id.uuidString])
  }

  /// - Parameter nodeID: nil for all nodes.
  package func remove(of owner: Owner, nodeID: String?) throws {
    let statement = try db.cachedStatement(
      sql: "DELETE FROM zdc_journal WHERE localUser = ? AND appTreeID = ? AND (?3 IS NULL OR nodeUUID = ?3)")
    try statement.execute(arguments: [owner.localUser, owner.appTreeID, nodeID])
  }

  private func prune(_ owner: Owner, _ limits: ZDCJournalLimits, now: Date) throws {
    let oldest = now.addingTimeInterval(-limits.maxAge).ms
    try db.cachedStatement(sql: "DELETE FROM zdc_journal WHERE localUser = ? AND appTreeID = ? AND timeMs < ?")
      .execute(arguments: [owner.localUser, owner.appTreeID, oldest.stored])
    let statement = try db.cachedStatement(
      sql: """
        DELETE FROM zdc_journal WHERE localUser = ?1 AND appTreeID = ?2 AND id <= (
          SELECT id FROM zdc_journal WHERE localUser = ?1 AND appTreeID = ?2 ORDER BY id DESC LIMIT 1 OFFSET ?3)
        """)
    try statement.execute(arguments: [owner.localUser, owner.appTreeID, max(limits.maxEntries, 0)])
  }
}

extension ZDCMergeJournalEntry {
  /// The entry as JSON within a limit. The parts that lost a merge are the last ones to be left out.
  package func shortened(to limit: Int) throws -> Data {
    var entry = self
    for step in Self.shortenings {
      let json = try JSONEncoder().encode(entry)
      if json.count <= limit { return json }
      entry.isShortened = true
      step(&entry)
    }
    return try JSONEncoder().encode(entry)
  }

  private static let shortenings: [@Sendable (inout ZDCMergeJournalEntry) -> Void] = [
    { entry in
      entry.mapConflicts { ($0.base, $0.theirs, $0.result) = (nil, nil, nil) }
      entry.report?.remaining = nil
    },
    { $0.report?.undo = .empty },
    { $0.keptNodeIDs = nil },
    { entry in
      entry.mapConflicts { $0.mine = nil }
      entry.content = nil
    },
    { $0.report?.lost = nil },
    { $0.report?.conflicts = [] },
  ]

  private mutating func mapConflicts(_ change: (inout ZDCMergeConflict) -> Void) {
    for index in report?.conflicts.indices ?? 0..<0 {
      if var conflict = report?.conflicts[index] {
        change(&conflict)
        report?.conflicts[index] = conflict
      }
    }
  }
}

extension ZDCReadTransaction {
  package var journal: JournalStore { cached { JournalStore(db: database, sealer: context.sealer) } }
}

extension ZDCReadWriteTransaction {
  private func journalOwner(ofZone zone: Int64) throws -> JournalStore.Owner {
    let row = try cloudState.facts(ofZone: zone).row
    return JournalStore.Owner(localUser: row.localUser, appTreeID: row.appTreeID)
  }

  /// Writes a line about a node.
  ///
  /// - Parameter describe: Fills in what both sides had.
  package func record(
    _ kind: ZDCMergeJournalEntry.Kind, _ row: NodeRow, _ describe: (inout ZDCMergeJournalEntry) throws -> Void
  ) throws {
    try record(kind, nodeID: row.uuid, cloudID: row.nodeID.text, zone: row.zone, describe)
  }

  package func record(
    _ kind: ZDCMergeJournalEntry.Kind, nodeID: String, cloudID: String, zone: Int64,
    _ describe: (inout ZDCMergeJournalEntry) throws -> Void
  ) throws {
    var entry = ZDCMergeJournalEntry(kind, nodeID: nodeID, cloudID: cloudID, date: Date(ms: context.clock()))
    try describe(&entry)
    try journal.insert(entry, of: try journalOwner(ofZone: zone), limits: context.journalLimits)
  }
}
