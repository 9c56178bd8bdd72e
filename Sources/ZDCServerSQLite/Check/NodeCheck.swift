internal import ZDCProtocol
internal import ZDCServer

/// Checks the rows of nodes and records, and that what refers to each other is there.
struct NodeCheck {
  let pass: IntegrityCheck

  /// Checks the rows of live nodes against the replayed log, their records and their content.
  ///
  /// - Returns: the bytes of all records of live nodes.
  func checkNodes(of zone: ZoneID, key: ZoneKey, tree: Int64, expected: ReplayScratch) throws -> Int64 {
    var bytes = 0
    try expected.each { leaf in
      bytes += try check(leaf, zone: zone, key: key, tree: tree)
      pass.report.nodes += 1
    }
    try checkStrays(below: zone, tree: tree, expected: expected)
    return Int64(bytes)
  }

  /// Checks that the log has all nodes that are stored below the zone's root. Rows that have no root at all are counted
  /// by ``checkReferences()``.
  private func checkStrays(below zone: ZoneID, tree: Int64, expected: ReplayScratch) throws {
    try eachNode(below: zone, tree: tree) { key in
      let node: NodeID?
      do { node = try pass.store.liveNode(key)?.put().node } catch StoreError.damaged {
        return pass.add(.node, CheckFinding.Field.zone(zone), "the row of a node cannot be read")
      }
      guard let node, try expected.leaf(node) == nil else { return }
      pass.add(.node, CheckFinding.Field.zone(zone) + [.node(node)], "the log has no such live node")
    }
  }

  /// Returns the bytes of the records of a closed zone's nodes that are not removed yet.
  func leavingRecordBytes(of zone: ZoneID, tree: Int64) throws -> Int64 {
    var bytes: Int64 = 0
    try eachNode(below: zone, tree: tree) { key in
      do { bytes += Int64(try pass.store.liveNode(key)?.storedRecord().bytes.count ?? 0) } catch is RecordDamaged {
        pass.add(.record, CheckFinding.Field.zone(zone), "the record of a leaving node does not match its hash")
      }
    }
    return bytes
  }

  private func eachNode(below zone: ZoneID, tree: Int64, _ body: (Int64) throws -> Void) throws {
    let sql = """
      WITH RECURSIVE below(key) AS (
        SELECT key FROM node_ids WHERE tree = ? AND node = ?
        UNION SELECT c.key FROM node_names c JOIN below b ON c.parent = b.key)
      SELECT key FROM below
      """
    try pass.db.each(sql, [.int(tree), .id(zone.root)]) { row in
      pass.reachedNodes? += 1
      try body(row.int(0))
      return true
    }
  }

  /// - Returns: the length of the node's record.
  private func check(_ leaf: LogNode, zone: ZoneID, key: ZoneKey, tree: Int64) throws -> Int {
    let fields = CheckFinding.Field.zone(zone) + [.node(leaf.node)]
    guard let node = try liveNode(leaf, tree: tree, fields) else { return 0 }
    guard let stored = try? node.leaf(in: key), stored == leaf, try pass.store.zoneKey(of: node, tree: tree) == key
    else {
      pass.add(.node, fields, "the node's row does not match the log")
      return 0
    }
    guard let record = (try? node.storedRecord()).flatMap({ try? NodeRecord($0.bytes) }) else {
      pass.add(.record, fields, "the live node's record does not match its hash")
      return 0
    }
    try checkName(of: leaf, record: record, node.key, zone: zone, tree: tree, fields)
    try checkContent(of: record, blob: node.blobKey, tree: tree, fields: fields)
    return record.bytes.count
  }

  private func liveNode(_ leaf: LogNode, tree: Int64, _ fields: [CheckFinding.Field]) throws -> LiveNode? {
    let key = try pass.db.first("SELECT key FROM node_ids WHERE tree = ? AND node = ?", .int(tree), .id(leaf.node)) {
      $0.int(0)
    }
    guard let key else {
      pass.add(.node, fields, "the live node's id is missing")
      return nil
    }
    do {
      if let node = try pass.store.liveNode(key) { return node }
      pass.add(.recordMissing, fields, "the live node's record is missing")
    } catch is StoreError { pass.add(.node, fields, "the live node's commit is missing or altered") }
    return nil
  }

  private func checkName(
    of leaf: LogNode, record: NodeRecord, _ key: Int64, zone: ZoneID, tree: Int64, _ fields: [CheckFinding.Field]
  ) throws {
    guard leaf.node != zone.root else { return }
    let named = try pass.db.first(
      """
      SELECT c.key FROM node_ids i JOIN node_names c ON c.parent = i.key WHERE i.tree = ? AND i.node = ? AND c.tag = ?
      """, .int(tree), .id(leaf.parent), .id(record.fields.nameTag)
    ) { $0.int(0) }
    if named != key { pass.add(.node, fields, "the name's tag does not match the record") }
  }

  private func checkContent(
    of record: NodeRecord, blob: Int64?, tree: Int64, fields: [CheckFinding.Field]
  ) throws {
    guard let content = record.fields.content else {
      if blob != nil { pass.add(.content, fields, "the row names content, the record does not") }
      return
    }
    let fields = fields + [.blob(content.blobID)]
    guard let blob, let row = try pass.store.blob(blob), row.id == content.blobID else {
      return pass.add(.contentMissing, fields, "the live node's content is missing")
    }
    let isBound = try row.node == record.fields.node && pass.store.tree(of: row.zone) == tree && row.state == .attached
    if !isBound { pass.add(.content, fields, "the content belongs elsewhere or is not attached") }
    if row.replacedMs != nil { pass.add(.content, fields, "the live content is marked as replaced") }
    var root = row.contentRoot
    if row.isInline, let bytes = try pass.store.inlineBytes(of: row) {
      root = ContentRoot(reinterpreting: MerkleTree.leafHash(bytes))
    }
    if row.cipherLength != content.cipherLength || root != content.contentRoot {
      pass.add(.content, fields, "the content does not match the record's length and root")
    }
  }

  /// Checks that every replaced record has the hash by which it is found. Those of live nodes are checked with them.
  func checkRecords() throws {
    let total = try pass.count("SELECT count(*) FROM records")
    pass.report.records += try pass.count("SELECT count(*) FROM nodes")
    try pass.db.each("SELECT hash, bytes, node FROM records ORDER BY id", []) { row in
      let hash: RecordHash = try row.id(0)
      let record = try? NodeRecord(row.bytes(1))
      if try record?.hash != hash || record?.fields.node != row.id(2) {
        pass.add(.record, [CheckFinding.Field("record", hash.text)], "the bytes do not match the record's hash")
      }
      pass.report.records += 1
      if pass.report.records % 1_024 == 0 { pass.advance(.records, pass.report.records, of: total) }
      return true
    }
  }

  /// Checks that all parts of a live node are there exactly once, and that content without a node is marked as replaced;
  /// otherwise it would never be collected.
  func checkReferences() throws {
    let nodes = try pass.count("SELECT count(*) FROM nodes")
    if try pass.count("SELECT count(*) FROM node_ids i JOIN nodes n ON n.id = i.key") != nodes {
      pass.add(.node, [], "there are nodes without an id")
    }
    let roots = "SELECT count(*) FROM zones WHERE closed_ms IS NULL OR id IN (SELECT zone FROM closing)"
    if try pass.count("SELECT count(*) FROM node_names") + pass.count(roots) != nodes {
      pass.add(.node, [], "there are names without a node, or nodes without a name")
    }
    if let reached = pass.reachedNodes, reached != nodes { pass.add(.node, [], "there are nodes in no zone") }
    let small = try pass.count("SELECT count(*) FROM nodes WHERE blob = 0")
    if try pass.count("SELECT count(*) FROM contents c JOIN nodes n ON n.id = c.node AND n.blob = 0") != small
      || pass.count("SELECT count(*) FROM contents") != small
    {
      pass.add(.content, [], "there are small contents without a node")
    }
    let named = try pass.count("SELECT count(*) FROM nodes WHERE blob > 0")
    if try pass.count("SELECT count(*) FROM blobs WHERE state = 2 AND replaced_ms IS NULL") != named {
      pass.add(.content, [], "some contents are neither live nor marked as replaced")
    }
    for table in ["records", "blobs", "commits", "acls", "grants", "members", "states"] {
      let strays = try pass.count("SELECT count(*) FROM \(table) WHERE zone NOT IN (SELECT id FROM zones)")
      if strays > 0 { pass.add(.database, [.number("rows", strays)], "rows of no zone in \(table)") }
    }
  }
}
