internal import Crypto
internal import ZDCProtocol

/// Copies everything from one metadata store to another, page by page. A copy that was stopped at any point is continued
/// by a new one.
///
/// The rows of both stores are compared at the end, because the source may have been used in between.
package struct StoreCopy: Sendable {
  /// A report of more would not help.
  private static let maximumDamage = 1_000

  private let source: any RowSource
  private let target: any CopyableStore
  /// Overrides the number of rows in a page.
  private let pageRows: Int?
  private let progress: @Sendable (CopyProgress) throws -> Void

  /// - Parameter progress: called after each page. What it throws stops the copy.
  package init(
    from source: any RowSource, to target: any CopyableStore, pageRows: Int? = nil,
    progress: @escaping @Sendable (CopyProgress) throws -> Void = { _ in }
  ) {
    (self.source, self.target, self.pageRows, self.progress) = (source, target, pageRows, progress)
  }

  /// Copies the rows that the target does not have yet.
  ///
  /// - Returns: rows that were left out because they are damaged.
  /// - Throws: ``StoreNotEmpty`` if the target has data of its own.
  package func copyRows() async throws -> [StoredDamage] {
    let source = try await mark()
    try await target.fill { try $0.beginFilling(from: source) }
    var done = CopyProgress(phase: .copy, done: 0, total: try await total())
    var damage: [StoredDamage] = []
    for table in StoredTable.allCases { damage += try await copy(table, &done) }
    return damage
  }

  /// Ends the copy: from now on a server can use the target.
  package func finish() async throws {
    let last = try await source.readRows { try $0.lastEnvelope() }
    try await target.fill { try $0.finishFilling(lastEnvelope: last) }
  }

  /// Returns the tables of which the two stores have different rows.
  package func differences() async throws -> [StoredTable] {
    var done = CopyProgress(phase: .compare, done: 0, total: try await total())
    var different: [StoredTable] = []
    for table in StoredTable.allCases where try await !isEqual(table, &done) { different.append(table) }
    return different
  }

  /// Distinguishes sources: a copy is not continued from another one.
  private func mark() async throws -> [UInt8] {
    let users = try await source.readRows { try $0.rows(of: .users, after: nil, limit: 100) }
    var hasher = SHA256()
    // What identifies an account does not change, and no row of an account is ever removed.
    for user in users { hasher.update(data: StoredRow(Array(user.values.prefix(2))).encoded) }
    return Array(hasher.finalize())
  }

  private func total() async throws -> UInt64 {
    try await source.readRows { reader in try StoredTable.allCases.reduce(0) { $0 + (try reader.count(of: $1)) } }
  }

  private func copy(_ table: StoredTable, _ done: inout CopyProgress) async throws -> [StoredDamage] {
    var damage: [StoredDamage] = []
    var last = try await target.readRows { try $0.lastKey(of: table) }
    if last != nil { done.done += try await target.readRows { try $0.count(of: table) } }
    while true {
      try Task.checkCancellation()
      let page = try await page(of: source, table, after: last)
      guard let end = page.last else { return damage }
      let (sound, found) = StoredRowRules.sorted(page, of: table)
      let leftOut = found + (try await target.fill { try $0.insert(sound, into: table) })
      damage += leftOut.prefix(max(0, Self.maximumDamage - damage.count))
      last = end.key(in: table)
      done.done += UInt64(page.count)
      try progress(done)
    }
  }

  private func isEqual(_ table: StoredTable, _ done: inout CopyProgress) async throws -> Bool {
    var last: [StoredValue]?
    while true {
      try Task.checkCancellation()
      let ours = try await page(of: source, table, after: last)
      guard try await page(of: target, table, after: last) == ours else { return false }
      guard let end = ours.last else { return true }
      last = end.key(in: table)
      done.done += UInt64(ours.count)
      try progress(done)
    }
  }

  private func page(
    of store: any RowSource, _ table: StoredTable, after key: [StoredValue]?
  ) async throws -> [StoredRow] {
    let limit = pageRows ?? table.pageRows
    return try await store.readRows { try $0.rows(of: table, after: key, limit: limit) }
  }
}

/// The progress of a copy.
package struct CopyProgress: Sendable, Hashable {
  package enum Phase: String, Sendable { case copy, content, compare }

  package var phase: Phase
  /// Rows, or bytes of content.
  package var done: UInt64
  package var total: UInt64

  package init(phase: Phase, done: UInt64, total: UInt64) {
    (self.phase, self.done, self.total) = (phase, done, total)
  }
}

/// Compares what a row alone can show: hashes with the bytes that they are of.
enum StoredRowRules {
  static func sorted(_ rows: [StoredRow], of table: StoredTable) -> (sound: [StoredRow], damage: [StoredDamage]) {
    var damage: [StoredDamage] = []
    let sound = rows.filter { row in
      guard let found = problem(of: row, in: table) else { return true }
      damage.append(found)
      return false
    }
    return (sound, damage)
  }

  private static func problem(of row: StoredRow, in table: StoredTable) -> StoredDamage? {
    switch table {
    case .commits:
      let isSound = (try? ZoneCommit(row.values[5].bytes ?? []))?.hash.bytes == row.values[2].bytes
      return isSound ? nil : StoredDamage(table, "a commit does not have its hash")
    case .grants:
      let isSound = (try? Grant(row.values[3].bytes ?? []))?.wrapHash.bytes == row.values[2].bytes
      return isSound ? nil : StoredDamage(table, "a grant does not have its hash")
    case .nodes: return recordProblem(row, table, node: 2, hash: 10, bytes: 13)
    case .records: return recordProblem(row, table, node: 2, hash: 3, bytes: 7)
    default: return nil
    }
  }

  private static func recordProblem(
    _ row: StoredRow, _ table: StoredTable, node: Int, hash: Int, bytes: Int
  ) -> StoredDamage? {
    let found = RecordHash(labelledHash: "record", row.values[bytes].bytes ?? [])
    guard found.bytes != row.values[hash].bytes else { return nil }
    return StoredDamage(
      table, node: row.values[node].bytes.flatMap { NodeID($0) }, "a record does not have its hash")
  }
}
