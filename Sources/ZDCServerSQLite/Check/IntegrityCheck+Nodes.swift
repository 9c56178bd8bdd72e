internal import ZDCProtocol
internal import ZDCServer

extension IntegrityCheck {
  /// Checks the rows of live nodes against the replayed log, their records and their content.
  func checkNodes(of zone: ZoneID, key: ZoneKey, tree: Int64, expected: ReplayScratch) throws {
    try expected.each { leaf in
      try check(leaf, zone: zone, key: key, tree: tree)
      report.nodes += 1
    }
    try db.each("SELECT node FROM nodes WHERE tree = ? AND zone = ?", [.int(tree), .int(key.rawValue)]) { row in
      let node: NodeID = try row.id(0)
      if try expected.leaf(node) == nil {
        add(.node, CheckFinding.Field.zone(zone) + [.node(node)], "the log has no such live node")
      }
      return true
    }
  }

  private static let nodeQuery = """
    SELECT n.zone, n.parent, n.put_seq, n.key_gen, n.parent_key_gen, n.tag, n.blob, r.hash, r.bytes, r.replaced_ms
    FROM nodes n LEFT JOIN records r ON r.id = n.record WHERE n.tree = ? AND n.node = ?
    """

  private func check(_ leaf: LogNode, zone: ZoneID, key: ZoneKey, tree: Int64) throws {
    let fields = CheckFinding.Field.zone(zone) + [.node(leaf.node)]
    var isThere = false
    try db.each(Self.nodeQuery, [.int(tree), .id(leaf.node)]) { row in
      isThere = true
      guard !row.isNull(7) else {
        add(.recordMissing, fields, "the live node's record is missing")
        return false
      }
      let stored = LogNode(
        node: leaf.node, parent: try row.id(1), record: try row.id(7), putSeq: row.unsigned(2),
        keyGen: UInt32(clamping: row.int(3)), parentKeyGen: UInt32(clamping: row.int(4)))
      if row.int(0) != key.rawValue || stored != leaf { add(.node, fields, "the node's row does not match the log") }
      if !row.isNull(9) { add(.record, fields, "the live node's record is marked as replaced") }
      guard let record = try? NodeRecord(row.bytes(8)), record.hash == leaf.record else {
        add(.record, fields, "the live node's record does not match its hash")
        return false
      }
      let tag: NameTag? = try row.isNull(5) ? nil : row.id(5)
      let named = leaf.node == zone.root ? nil : record.fields.nameTag
      if tag != named { add(.node, fields, "the name's tag does not match the record") }
      try checkContent(of: record, blob: row.optionalInt(6), key: key, fields: fields)
      return false
    }
    if !isThere { add(.node, fields, "the live node's row is missing") }
  }

  private func checkContent(
    of record: NodeRecord, blob: Int64?, key: ZoneKey, fields: [CheckFinding.Field]
  ) throws {
    guard let content = record.fields.content else {
      if blob != nil { add(.content, fields, "the row names content, the record does not") }
      return
    }
    let fields = fields + [.blob(content.blobID)]
    guard let blob, let row = try store.blob(blob), row.id == content.blobID else {
      return add(.contentMissing, fields, "the live node's content is missing")
    }
    let isBound = row.node == record.fields.node && row.zone == key && row.state == .attached
    if !isBound { add(.content, fields, "the content belongs elsewhere or is not attached") }
    if row.replacedMs != nil { add(.content, fields, "the live content is marked as replaced") }
    var root = row.contentRoot
    if row.isInline, let bytes = try store.inlineBytes(of: row) {
      root = ContentRoot(reinterpreting: MerkleTree.leafHash(bytes))
    }
    if row.cipherLength != content.cipherLength || root != content.contentRoot {
      add(.content, fields, "the content does not match the record's length and root")
    }
  }

  /// Checks that every stored record, live or retained, has the hash by which it is found.
  func checkRecords() throws {
    let total = try count("SELECT count(*) FROM records")
    try db.each("SELECT hash, bytes FROM records ORDER BY id", []) { row in
      let hash: RecordHash = try row.id(0)
      if (try? NodeRecord(row.bytes(1)))?.hash != hash {
        add(.record, [CheckFinding.Field("record", hash.text)], "the bytes do not match the record's hash")
      }
      report.records += 1
      if report.records % 1_024 == 0 { advance(.records, report.records, of: total) }
      return true
    }
  }

  /// Checks that rows without a live node are marked as replaced; otherwise they would never be collected.
  func checkReferences() throws {
    let liveNodes = try count("SELECT count(*) FROM nodes")
    if try count("SELECT count(*) FROM records WHERE replaced_ms IS NULL") != liveNodes {
      add(.record, [], "there are records that are neither live nor marked as replaced")
    }
    let named = try count("SELECT count(*) FROM nodes WHERE blob IS NOT NULL")
    if try count("SELECT count(*) FROM blobs WHERE state = 2 AND replaced_ms IS NULL") != named {
      add(.content, [], "some contents are neither live nor marked as replaced")
    }
    for table in ["records", "blobs", "commits", "nodes", "acls", "grants", "members"] {
      let strays = try count("SELECT count(*) FROM \(table) WHERE zone NOT IN (SELECT id FROM zones)")
      if strays > 0 { add(.database, [.number("rows", strays)], "rows of no zone in \(table)") }
    }
  }
}
