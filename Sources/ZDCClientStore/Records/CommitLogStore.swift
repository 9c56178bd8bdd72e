internal import Foundation
package import GRDB
package import ZDCProtocol

/// The hashes of a zone's verified commits inside one transaction.
package struct CommitLogStore {
  /// A commit to store.
  package struct Entry {
    fileprivate let seq: Int64
    fileprivate let hash: CommitHash
    fileprivate let isOwn: Bool
    fileprivate let madeMs: Int64
    fileprivate let isBinding: Bool

    /// - Parameter raisesKeys: it gave an existing node another key.
    package init(_ commit: ZoneCommit, isOwn: Bool, raisesKeys: Bool) {
      (seq, hash, self.isOwn) = (commit.fields.seq.stored, commit.hash, isOwn)
      madeMs = isOwn ? commit.fields.timeMs.stored : 0
      isBinding = raisesKeys || commit.changesRights
    }
  }

  /// The number of commits that one statement stores.
  package static let block = 64

  package let db: Database
  package let zone: Int64

  package init(db: Database, zone: Int64) {
    self.db = db
    self.zone = zone
  }

  package func hash(seq: UInt64) throws -> CommitHash? {
    try db.firstRow("SELECT seq, hash FROM zdc_log WHERE zone = ? AND seq = ?", [zone, seq.stored]) {
      try CommitHash($0, 1)
    }
  }

  /// The commits after `seq`; nil if another device made one of them.
  package func ownCommits(after seq: UInt64) throws -> OwnCommits? {
    let query = "SELECT COUNT(*), MIN(madeMs), MAX(isBinding), MIN(isOwn) FROM zdc_log WHERE zone = ? AND seq > ?"
    let found: OwnCommits?? = try db.firstRow(query, [zone, seq.stored]) { row in
      let count: Int64 = row[0]
      guard count > 0, (row[3] as Int64) == 1 else { return nil }
      return OwnCommits(count: Int(count), oldestMs: row.unsigned(1) ?? 0, isBinding: (row[2] as Int64) != 0)
    }
    return found ?? nil
  }

  /// Stores a commit, unless it is stored already.
  ///
  /// - Parameter raisesKeys: it gave an existing node another key.
  package func insert(_ commit: ZoneCommit, isOwn: Bool, raisesKeys: Bool) throws {
    try insert([Entry(commit, isOwn: isOwn, raisesKeys: raisesKeys)])
  }

  /// Stores commits, unless they are stored already.
  package func insert(_ entries: [Entry]) throws {
    var rest = entries[...]
    while !rest.isEmpty {
      let isBlock = rest.count >= Self.block
      let next = rest.prefix(isBlock ? Self.block : 1)
      let statement = try db.cachedStatement(sql: isBlock ? Self.insertBlock : Self.insertOne)
      try statement.execute(arguments: arguments(next))
      rest = rest.dropFirst(next.count)
    }
  }

  private func arguments(_ entries: ArraySlice<Entry>) -> StatementArguments {
    var values: [(any DatabaseValueConvertible)?] = []
    values.reserveCapacity(entries.count * 6)
    for entry in entries {
      let row: [(any DatabaseValueConvertible)?] = [
        zone, entry.seq, entry.hash.data, entry.isOwn, entry.madeMs, entry.isBinding,
      ]
      values += row
    }
    return StatementArguments(values)
  }

  private static let insertOne = insertStatement(rows: 1)
  private static let insertBlock = insertStatement(rows: block)

  private static func insertStatement(rows count: Int) -> String {
    let rows = [String](repeating: "(?, ?, ?, ?, ?, ?)", count: count).joined(separator: ", ")
    return "INSERT OR IGNORE INTO zdc_log (zone, seq, hash, isOwn, madeMs, isBinding) VALUES \(rows)"
  }

  package func remove(from seq: UInt64) throws {
    let statement = try db.cachedStatement(sql: "DELETE FROM zdc_log WHERE zone = ? AND seq >= ?")
    try statement.execute(arguments: [zone, seq.stored])
  }
}

/// Commits in a row that this device made.
package struct OwnCommits: Equatable {
  package var count: Int
  /// When it made the first of them.
  package var oldestMs: UInt64
  /// One of them changed rights or keys.
  package var isBinding: Bool
}

extension ZoneCommit {
  /// Whether it contains an access list or retires a key.
  var changesRights: Bool {
    fields.operations.contains { operation in
      switch operation {
      case .acl, .retireKey: true
      default: false
      }
    }
  }
}
