internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

/// Reads and writes a database in the form in which stores hand everything to each other.
struct SQLiteRows {
  let store: SQLiteTransaction

  private var db: Database { store.db }

  init(_ store: SQLiteTransaction) { self.store = store }

  /// Columns whose form here is another one.
  static func expression(_ column: StoredTable.Column) -> String {
    column.name == "app" ? "CAST(app AS BLOB)" : column.name
  }

  /// Uploads that have not ended are left out.
  private static func condition(_ table: StoredTable) -> String { table == .blobs ? "state > 0 AND" : "" }

  private static func keys(_ table: StoredTable) -> [String] { table.columns.prefix(table.keyCount).map(\.name) }
}

extension SQLiteRows: StoredRowReader {
  func rows(of table: StoredTable, after key: [StoredValue]?, limit: Int) throws -> [StoredRow] {
    if table == .nodes { return try nodes(after: key?.first?.int ?? 0, limit: limit) }
    let keys = Self.keys(table)
    let marks = keys.map { _ in "?" }.joined(separator: ", ")
    let start = key == nil ? "" : "(\(keys.joined(separator: ", "))) > (\(marks)) AND"
    let sql = """
      SELECT \(table.columns.map(Self.expression).joined(separator: ", ")) FROM \(table.rawValue)
      WHERE \(start) \(Self.condition(table)) true ORDER BY \(keys.joined(separator: ", ")) LIMIT \(limit)
      """
    var rows: [StoredRow] = []
    try db.each(sql, (key ?? []).map(SQLValue.init)) { row in
      rows.append(StoredRow(table.columns.enumerated().map { row.value(Int32($0), $1.kind) }))
      return true
    }
    return rows
  }

  private func nodes(after key: Int64, limit: Int) throws -> [StoredRow] {
    var rows: [StoredRow] = []
    try store.eachLiveNode(after: key) { node in
      rows.append(try row(of: node))
      return rows.count < limit
    }
    return rows
  }

  private func row(of node: LiveNode) throws -> StoredRow {
    let put = try node.put()
    let record = try node.storedRecord()
    let small = node.blob == 0 ? try smallContent(of: node) : nil
    let content = try small.flatMap { _ in try node.record.content()?.blobID }
    return StoredRow([
      .int(node.key), .int(try store.tree(of: node.commit.zone)), .bytes(put.node.bytes), .bytes(put.parent.bytes),
      put.parent == .zero ? .null : .bytes(try node.record.nameTag().bytes), .int(node.commit.zone.rawValue),
      .int(Int64(clamping: node.commit.seq)), .int(Int64(node.index)), .int(Int64(put.keyGen)),
      .int(Int64(put.parentKeyGen)), .bytes(put.record.bytes), .int(Int64(clamping: record.recordReceivedMs)),
      .int(Int64(clamping: record.dataReceivedMs)), .bytes(record.bytes), node.blob.map { .int($0) } ?? .null,
      content.map { .bytes($0.bytes) } ?? .null, small.map { .bytes($0) } ?? .null,
    ])
  }

  private func smallContent(of node: LiveNode) throws -> [UInt8]? {
    try db.first("SELECT bytes FROM contents WHERE node = ?", .int(node.key)) { $0.bytes(0) }
  }

  func lastKey(of table: StoredTable) throws -> [StoredValue]? {
    let columns = table.columns.prefix(table.keyCount)
    let order = columns.map { "\($0.name) DESC" }.joined(separator: ", ")
    return try db.first(
      "SELECT \(columns.map(\.name).joined(separator: ", ")) FROM \(table.rawValue) ORDER BY \(order) LIMIT 1"
    ) { row in columns.enumerated().map { row.value(Int32($0), $1.kind) } }
  }

  func count(of table: StoredTable) throws -> UInt64 {
    try db.first("SELECT count(*) FROM \(table.rawValue) WHERE \(Self.condition(table)) true") { $0.unsigned(0) } ?? 0
  }

  func lastEnvelope() throws -> Int64 {
    try db.first("SELECT seq FROM sqlite_sequence WHERE name = 'envelopes'") { $0.int(0) } ?? 0
  }

  func files(after id: BlobID?, limit: Int) throws -> [StoredFile] {
    try db.all(
      """
      SELECT blob_id, max(length), max(CASE WHEN state > 0 THEN root END) FROM blobs
      WHERE content IS NULL AND blob_id > ? GROUP BY blob_id ORDER BY blob_id LIMIT ?
      """, .bytes(id?.bytes ?? []), .int(Int64(limit))
    ) { StoredFile(id: try $0.id(0), cipherLength: $0.unsigned(1), root: $0.isNull(2) ? nil : try $0.id(2)) }
  }

  func knownFiles(_ ids: [BlobID]) throws -> Set<BlobID> {
    let query = try db.prepared("SELECT 1 FROM blobs WHERE blob_id = ? AND content IS NULL LIMIT 1")
    return try Set(ids.filter { try query.first(.id($0)) { _ in true } ?? false })
  }
}

extension SQLValue {
  init(_ value: StoredValue) {
    switch value {
    case .null: self = .null
    case .int(let number): self = .int(number)
    case .bytes(let bytes): self = .bytes(bytes)
    }
  }
}

extension SQLRow {
  func value(_ column: Int32, _ kind: StoredTable.Kind) -> StoredValue {
    if isNull(column) { return .null }
    return kind == .int ? .int(int(column)) : .bytes(bytes(column))
  }
}
