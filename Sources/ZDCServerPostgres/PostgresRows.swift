internal import ZDCProtocol
internal import ZDCServer

/// Reads and writes a database in the form in which stores hand everything to each other.
struct PostgresRows {
  let db: PostgresConnection

  init(_ store: PostgresTransaction) { db = store.db }

  /// The name of a column here. Some words are reserved, and the sums of a zone are in another table.
  private static func name(_ column: String) -> String {
    switch column {
    case "user": "user_key"
    case "live_nodes": "nodes"
    default: column
    }
  }

  private static func source(_ table: StoredTable) -> String {
    table == .zones ? "zones JOIN sums ON sums.zone = zones.id" : table.rawValue
  }

  private static func keys(_ table: StoredTable) -> [String] {
    table.columns.prefix(table.keyCount).map { name($0.name) }
  }

  /// Uploads that have not ended are left out.
  private static func condition(_ table: StoredTable) -> String { table == .blobs ? "state > 0 AND" : "" }
}

extension PostgresRows: StoredRowReader {
  func rows(of table: StoredTable, after key: [StoredValue]?, limit: Int) throws -> [StoredRow] {
    let keys = Self.keys(table)
    let marks = keys.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
    let start = key == nil ? "" : "(\(keys.joined(separator: ", "))) > (\(marks)) AND"
    let columns = table.columns.map { $0.name == "app" ? "convert_to(app, 'UTF8')" : Self.name($0.name) }
    let sql = """
      SELECT \(columns.joined(separator: ", ")) FROM \(Self.source(table))
      WHERE \(start) \(Self.condition(table)) true ORDER BY \(keys.joined(separator: ", ")) LIMIT \(limit)
      """
    return try db.all(sql, (key ?? []).map(PostgresValue.init)) { row in
      StoredRow(table.columns.enumerated().map { row.value(Int32($0), $1.kind) })
    }
  }

  func lastKey(of table: StoredTable) throws -> [StoredValue]? {
    let keys = Self.keys(table)
    let order = keys.map { "\($0) DESC" }.joined(separator: ", ")
    let sql = "SELECT \(keys.joined(separator: ", ")) FROM \(table.rawValue) ORDER BY \(order) LIMIT 1"
    return try db.first(sql) { row in
      table.columns.prefix(table.keyCount).enumerated().map { row.value(Int32($0), $1.kind) }
    }
  }

  func count(of table: StoredTable) throws -> UInt64 {
    try db.first("SELECT count(*) FROM \(table.rawValue) WHERE \(Self.condition(table)) true") { $0.unsigned(0) } ?? 0
  }

  func lastEnvelope() throws -> Int64 {
    try db.first("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM envelopes_id_seq") { $0.int(0) } ?? 0
  }

  func files(after id: BlobID?, limit: Int) throws -> [StoredFile] {
    try db.all(
      """
      SELECT DISTINCT ON (blob_id) blob_id, length, CASE WHEN state > 0 THEN root END FROM blobs
      WHERE content IS NULL AND blob_id > $1 ORDER BY blob_id, state DESC LIMIT $2
      """, .bytes(id?.bytes ?? []), .int(Int64(limit))
    ) { StoredFile(id: try $0.id(0), cipherLength: $0.unsigned(1), root: try $0.optionalID(2)) }
  }

  func knownFiles(_ ids: [BlobID]) throws -> Set<BlobID> {
    Set(
      try db.all("SELECT blob_id FROM blobs WHERE blob_id = ANY($1) AND content IS NULL", .ids(ids)) {
        try $0.id(0) as BlobID
      })
  }
}

extension PostgresRows: StoredRowWriter {
  /// A table that exists while the database is being filled.
  private static let mark = "filling"

  static func isBeingFilled(_ db: PostgresConnection) throws -> Bool {
    try db.first("SELECT to_regclass('\(mark)') IS NOT NULL") { $0.int(0) != 0 } ?? false
  }

  func beginFilling(from source: [UInt8]) throws {
    if try Self.isBeingFilled(db) {
      let known = try db.first("SELECT source FROM \(Self.mark)") { $0.bytes(0) }
      guard known == source else { throw StoreNotEmpty() }
      return
    }
    for table in [StoredTable.users, .invites, .zones, .blobs] {
      guard try lastKey(of: table) == nil else { throw StoreNotEmpty() }
    }
    db.enqueue("CREATE TABLE \(Self.mark)(source bytea NOT NULL)")
    // Sent on its own: the next statement is prepared for a table that must exist.
    try db.flush()
    try db.run("INSERT INTO \(Self.mark) VALUES ($1)", .bytes(source))
  }

  func insert(_ rows: [StoredRow], into table: StoredTable) throws -> [StoredDamage] {
    guard !rows.isEmpty else { return [] }
    let values = Self.arrays(rows, table)
    let zoneColumns = table == .zones ? 8 : table.columns.count
    try insert(table.rawValue, table, 0..<zoneColumns, Self.computed(table), values)
    if table == .zones {
      try insert("sums", table, [0] + Array(zoneColumns..<table.columns.count), [], values)
    }
    return []
  }

  private func insert(
    _ name: String, _ table: StoredTable, _ indices: some Collection<Int>, _ computed: [(String, String)],
    _ values: [PostgresValue]
  ) throws {
    let columns = indices.map { index in
      name == "sums" && index == 0 ? "zone" : Self.name(table.columns[index].name)
    }
    let sources = indices.map { table.columns[$0].name == "app" ? "convert_from(w.c\($0), 'UTF8')" : "w.c\($0)" }
    let arrays = indices.enumerated().map { position, index in
      "$\(position + 1)::\(table.columns[index].kind == .int ? "int8" : "bytea")[]"
    }
    let sql = """
      INSERT INTO \(name)(\((columns + computed.map(\.0)).joined(separator: ", "))) OVERRIDING SYSTEM VALUE
      SELECT \((sources + computed.map(\.1)).joined(separator: ", "))
      FROM unnest(\(arrays.joined(separator: ", "))) AS w(\(indices.map { "c\($0)" }.joined(separator: ", ")))
      """
    db.enqueue(sql, indices.map { values[$0] })
    try db.flush()
  }

  /// One array for each column.
  private static func arrays(_ rows: [StoredRow], _ table: StoredTable) -> [PostgresValue] {
    table.columns.enumerated().map { index, column in
      switch column.kind {
      case .int: .ints(rows.map { $0.values[index].int })
      case .bytes: .byteArrays(rows.map { $0.values[index].bytes })
      }
    }
  }

  /// Columns that no row has, and how their values are computed.
  private static func computed(_ table: StoredTable) -> [(String, String)] {
    switch table {
    case .zones, .memberships: [("changed", "pg_current_xact_id()")]
    default: []
    }
  }

  func finishFilling(lastEnvelope: Int64) throws {
    for table in ["users", "trees", "zones", "acls", "nodes", "records", "blobs"] {
      db.enqueue("SELECT setval('\(table)_id_seq', greatest((SELECT max(id) FROM \(table)), 1))")
    }
    if lastEnvelope > 0 { db.enqueue("SELECT setval('envelopes_id_seq', $1)", .int(lastEnvelope)) }
    db.enqueue("DROP TABLE \(Self.mark)")
    try db.flush()
  }
}

extension PostgresValue {
  init(_ value: StoredValue) {
    switch value {
    case .null: self = .int(nil)
    case .int(let number): self = .int(number)
    case .bytes(let bytes): self = .bytes(bytes)
    }
  }
}

extension PostgresRow {
  func value(_ column: Int32, _ kind: StoredTable.Kind) -> StoredValue {
    if isNull(column) { return .null }
    return kind == .int ? .int(int(column)) : .bytes(bytes(column))
  }
}
