internal import ZDCProtocol
internal import ZDCServer

/// A live node's record as it is stored.
struct LiveRecord {
  var name: RecordName
  var stored: StoredRecord

  /// - Throws: `RecordDamaged` unless the record has its hash.
  func checked() throws -> StoredRecord {
    guard RecordHash(labelledHash: "record", stored.bytes) == name.hash else { throw RecordDamaged(name) }
    return stored
  }
}

// Nodes. LATERAL and LIMIT 1 make each row one lookup by an index. A plan that was made while a table was nearly empty
// would otherwise read the whole index for a list.
extension PostgresTransaction {
  private static let nodeColumns =
    "n.id, n.node, n.parent, n.tag, n.hash, n.zone, n.put_seq, n.key_gen, n.parent_key_gen, n.blob"

  /// - Returns: the node as this zone has it. A zone that was split off begins with nodes that another one's commits put.
  private func nodeRow(_ row: PostgresRow, in zone: ZoneKey) throws -> NodeRow {
    let leaf = LogNode(
      node: try row.id(1), parent: try row.id(2), record: try row.id(4),
      putSeq: row.int(5) == zone.rawValue ? row.unsigned(6) : 0, keyGen: UInt32(clamping: row.int(7)),
      parentKeyGen: UInt32(clamping: row.int(8)))
    let key = row.int(0)
    return NodeRow(
      leaf: leaf, tag: row.isNull(3) ? nil : try row.id(3), record: key,
      blob: row.optionalInt(9).map { $0 == 0 ? -key : $0 })
  }

  func nodes(_ ids: [NodeID], in zone: ZoneKey) throws -> [NodeRow] {
    guard !ids.isEmpty else { return [] }
    let tree = try tree(of: zone)
    let rows = try db.all(
      """
      WITH RECURSIVE up(id, parent) AS (
        SELECT n.id, n.parent FROM unnest($2::bytea[]) AS w(node) CROSS JOIN LATERAL
          (SELECT c.id, c.parent FROM nodes c WHERE c.tree = $1 AND c.node = w.node LIMIT 1) n
        UNION SELECT p.id, p.parent FROM up CROSS JOIN LATERAL
          (SELECT c.id, c.parent FROM nodes c WHERE c.tree = $1 AND c.node = up.parent LIMIT 1) p)
      SELECT \(Self.nodeColumns) FROM up JOIN nodes n ON n.id = up.id
      """, .int(tree), .ids(ids)
    ) { try nodeRow($0, in: zone) }
    return try inOrder(ids, Dictionary(rows.map { ($0.leaf.node, $0) }, uniquingKeysWith: { first, _ in first }), zone)
  }

  /// Returns each node and those above it, and checks that they end at the zone's root.
  private func inOrder(_ ids: [NodeID], _ rows: [NodeID: NodeRow], _ zone: ZoneKey) throws -> [NodeRow] {
    var asked: Set<NodeID> = []
    var found: [NodeRow] = []
    for id in ids {
      var next = id
      while asked.insert(next).inserted, let row = rows[next] {
        found.append(row)
        guard row.leaf.parent == .zero else {
          next = row.leaf.parent
          continue
        }
        let own = try place(of: zone)
        guard own.root != next else { continue }
        throw foreign(id, try zones(ofNodes: [next], tree: own.tree)[next])
      }
    }
    return found
  }

  private func foreign(_ node: NodeID, _ place: NodePlace?) -> any Error {
    place?.closedMs != nil ? ServerError.nodeIsLeaving : ZDCSecurityError(.recordBindingMismatch, node: node)
  }

  func children(of parents: [NodeID], in zone: ZoneKey, limit: Int) throws -> [NodeRow] {
    try db.all(
      """
      SELECT \(Self.nodeColumns) FROM unnest($2::bytea[]) WITH ORDINALITY AS w(parent, number)
      CROSS JOIN LATERAL (SELECT * FROM nodes c WHERE c.tree = $1 AND c.parent = w.parent LIMIT $3) n LIMIT $3
      """, .int(try tree(of: zone)), .ids(parents), .int(Int64(limit))
    ) { try nodeRow($0, in: zone) }
  }

  func holders(of names: [NodeName], in zone: ZoneKey) throws -> [NodeName: NodeID] {
    guard !names.isEmpty else { return [:] }
    let rows = try db.all(
      """
      SELECT n.parent, n.tag, n.node FROM unnest($2::bytea[], $3::bytea[]) AS w(parent, tag) CROSS JOIN LATERAL
        (SELECT * FROM nodes c WHERE c.tree = $1 AND c.parent = w.parent AND c.tag = w.tag LIMIT 1) n
      """, .int(try tree(of: zone)), .ids(names.map(\.parent)), .ids(names.map(\.tag))
    ) { (NodeName(parent: try $0.id(0), tag: try $0.id(1)), try $0.id(2) as NodeID) }
    return Dictionary(rows, uniquingKeysWith: { first, _ in first })
  }
}

/// The zone that a node is in.
struct NodePlace {
  var zone: ZoneKey
  var closedMs: UInt64?
}

// The zone of a node is that of the nearest root above it. No row stores it, so a split writes none for the nodes of its
// branch.
extension PostgresTransaction {
  /// Walks up once from each parent, however many of the nodes it has.
  func zones(ofNodes ids: [NodeID], tree: Int64) throws -> [NodeID: NodePlace] {
    guard !ids.isEmpty else { return [:] }
    var parents: [NodeID: NodeID] = [:]
    var places: [NodeID: NodePlace] = [:]
    _ = try db.all(
      """
      WITH RECURSIVE named(node, parent) AS (
        SELECT n.node, CASE n.parent WHEN $3 THEN n.node ELSE n.parent END
        FROM unnest($2::bytea[]) AS w(node) CROSS JOIN LATERAL
          (SELECT c.node, c.parent FROM nodes c WHERE c.tree = $1 AND c.node = w.node LIMIT 1) n),
      up(start, node, parent) AS (
        SELECT n.node, n.node, n.parent FROM (SELECT DISTINCT parent FROM named) w CROSS JOIN LATERAL
          (SELECT c.node, c.parent FROM nodes c WHERE c.tree = $1 AND c.node = w.parent LIMIT 1) n
        UNION ALL SELECT up.start, p.node, p.parent FROM up CROSS JOIN LATERAL
          (SELECT c.node, c.parent FROM nodes c WHERE c.tree = $1 AND c.node = up.parent LIMIT 1) p)
      SELECT node, parent, NULL::int8, NULL::int8 FROM named
      UNION ALL SELECT up.start, NULL, z.id, z.closed_ms FROM up JOIN zones z ON z.tree = $1 AND z.root = up.node
      WHERE up.parent = $3
      """, .int(tree), .ids(ids), .id(NodeID.zero)
    ) { row in
      let node: NodeID = try row.id(0)
      if row.isNull(1) {
        places[node] = NodePlace(zone: ZoneKey(row.int(2)), closedMs: row.optionalUnsigned(3))
      } else {
        parents[node] = try row.id(1)
      }
    }
    return parents.compactMapValues { places[$0] }
  }

  /// Returns when the zone was closed; nil while it is open.
  func closedMs(of zone: ZoneKey) throws -> UInt64? {
    try db.first("SELECT closed_ms FROM zones WHERE id = $1", .int(zone.rawValue)) { $0.optionalUnsigned(0) } ?? nil
  }
}

// Records
extension PostgresTransaction {
  static let recordColumns = "id, node, hash, record, received_ms, data_received_ms"

  func liveRecord(_ row: PostgresRow) throws -> LiveRecord {
    LiveRecord(
      name: RecordName(node: try row.id(1), hash: try row.id(2)),
      stored: StoredRecord(
        bytes: row.bytes(3), recordReceivedMs: row.unsigned(4), dataReceivedMs: row.unsigned(5)))
  }

  func records(_ keys: [Int64]) throws -> [Int64: StoredRecord] {
    guard !keys.isEmpty else { return [:] }
    let rows = try db.all("SELECT \(Self.recordColumns) FROM nodes WHERE id = ANY($1)", .ints(keys)) {
      ($0.int(0), try liveRecord($0))
    }
    return try rows.reduce(into: [:]) { $0[$1.0] = try $1.1.checked() }
  }

  func records(
    _ names: [RecordName], in zone: ZoneKey
  ) throws -> [RecordName: Result<StoredRecord, RecordDamaged>] {
    let live = try liveRecords(names, in: zone)
    let replaced = try replacedRecords(names.filter { live[$0] == nil }, in: zone)
    return try live.merging(replaced) { first, _ in first }.mapValues { record, replacedMs in
      do {
        var record = try record.checked()
        record.replacedMs = replacedMs
        return .success(record)
      } catch let damage as RecordDamaged { return .failure(damage) }
    }
  }

  private typealias FoundRecord = (record: LiveRecord, replacedMs: UInt64?)

  private func liveRecords(_ names: [RecordName], in zone: ZoneKey) throws -> [RecordName: FoundRecord] {
    let tree = try tree(of: zone)
    let rows = try db.all(
      """
      SELECT \(Self.recordColumns) FROM unnest($2::bytea[], $3::bytea[]) AS w(wanted_node, wanted_hash)
      CROSS JOIN LATERAL
        (SELECT * FROM nodes c WHERE c.tree = $1 AND c.node = wanted_node AND c.hash = wanted_hash LIMIT 1) n
      """, .int(tree), .ids(names.map(\.node)), .ids(names.map(\.hash)), row: liveRecord)
    let places = try zones(ofNodes: rows.map(\.name.node), tree: tree)
    return rows.reduce(into: [:]) { found, row in
      guard let place = places[row.name.node], place.zone == zone else { return }
      found[row.name] = (row, place.closedMs)
    }
  }

  private func replacedRecords(_ names: [RecordName], in zone: ZoneKey) throws -> [RecordName: FoundRecord] {
    guard !names.isEmpty else { return [:] }
    let rows = try db.all(
      """
      SELECT id, node, hash, bytes, received_ms, data_received_ms, replaced_ms
      FROM unnest($2::bytea[], $3::bytea[]) AS w(wanted_node, wanted_hash) CROSS JOIN LATERAL
        (SELECT * FROM records r WHERE r.zone = $1 AND r.node = wanted_node AND r.hash = wanted_hash LIMIT 1) r
      """, .int(zone.rawValue), .ids(names.map(\.node)), .ids(names.map(\.hash))
    ) { (record: try liveRecord($0), replacedMs: $0.unsigned(6)) }
    return rows.reduce(into: [:]) { $0[$1.record.name] = ($1.record, $1.replacedMs) }
  }
}
