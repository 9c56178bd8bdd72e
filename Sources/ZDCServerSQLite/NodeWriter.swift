internal import GRDB
internal import ZDCProtocol
internal import ZDCServer

/// Writes the nodes of one commit, with their records and content. Its statements run once per node, so each is
/// prepared only once.
///
/// A live node's record and small content are compact: they leave out the commit's own bytes. When a put or delete replaces
/// them, they move whole into `records` and `blobs`, and depend on nothing else from then on.
struct NodeWriter {
  private let store: SQLiteTransaction
  private let commit: CommitPuts
  private let key: Int64
  private let tree: Int64
  private let insertNode: SQLStatement
  private let updateNode: SQLStatement
  private let insertID: SQLStatement
  private let insertName: SQLStatement
  private let removeName: SQLStatement
  private let insertContent: SQLStatement
  private let replacer: NodeReplacer
  /// The keys of the nodes that the commit creates, which are consecutive.
  private(set) var created: ClosedRange<Int64>?
  private var keys: [NodeID: Int64] = [:]

  /// - Parameter origin: the zone that a branch was in with which the commit begins its own.
  init(_ store: SQLiteTransaction, commit: CommitPuts, key: Int64, replacedIn origin: ZoneKey?) throws {
    self.store = store
    self.commit = commit
    self.key = key
    tree = try store.tree(of: commit.zone)
    let db = store.db
    insertNode = try db.prepared(
      "INSERT INTO nodes(commit_key, put, data_received_ms, blob, record) VALUES (?, ?, ?, ?, ?)")
    updateNode = try db.prepared(
      "UPDATE nodes SET commit_key = ?, put = ?, data_received_ms = ?, blob = ?, record = ? WHERE id = ?")
    insertID = try db.prepared("INSERT INTO node_ids(tree, node, key) VALUES (?, ?, ?)")
    insertName = try db.prepared("INSERT INTO node_names(parent, tag, key) VALUES (?, ?, ?)")
    removeName = try db.prepared("DELETE FROM node_names WHERE parent = ? AND tag = ?")
    insertContent = try db.prepared("INSERT INTO contents(node, bytes) VALUES (?, ?)")
    replacer = try NodeReplacer(store, zone: origin ?? commit.zone, now: commit.receivedMs)
  }

  mutating func write(_ puts: [NodePut], removing removed: [NodeRow], splitOff: NodeRow?) throws {
    guard puts.count == commit.count else { throw StoreError.damaged }
    // First all names that become free: two nodes may swap theirs, and a node may leave a folder that is deleted.
    try splitOff.map { try removeName(of: $0) }
    for node in removed { try removeName(of: node) }
    for put in puts where put.isLive && !put.keepsName { try put.replaced.map { try removeName(of: $0) } }
    try remove(removed)
    try keepReplaced(puts)
    for (index, put) in puts.enumerated() {
      guard try commit.put(index) == ZoneOperation.Put(put.leaf) else { throw StoreError.damaged }
      if put.isLive { try write(put, index) } else { try replacer.keep(put) }
    }
    try countContents(of: puts)
  }

  private mutating func remove(_ nodes: [NodeRow]) throws {
    let removeID = try store.db.prepared("DELETE FROM node_ids WHERE tree = ? AND node = ?")
    let removeNode = try store.db.prepared("DELETE FROM nodes WHERE id = ?")
    for node in nodes.sorted(by: isPutBefore) {
      try replacer.keepRecord(of: node)
      try replacer.keepContent(of: node)
      try removeID.run(.int(tree), .id(node.leaf.node))
      try removeNode.run(.int(node.record))
      // The key may be given to another node.
      keys[node.leaf.node] = nil
    }
  }

  private func keepReplaced(_ puts: [NodePut]) throws {
    let replaced = puts.filter(\.isLive).compactMap { put in
      put.replaced.map { (row: $0, hasContent: put.replacedBlob != nil) }
    }
    for (row, hasContent) in replaced.sorted(by: { isPutBefore($0.row, $1.row) }) {
      try replacer.keepRecord(of: row)
      if hasContent { try replacer.keepContent(of: row) }
    }
  }

  /// Whether the first one's commit is the earlier one. In this order, each commit is read once, however many there are.
  private func isPutBefore(_ a: NodeRow, _ b: NodeRow) -> Bool { a.leaf.putSeq < b.leaf.putSeq }

  private mutating func write(_ put: NodePut, _ index: Int) throws {
    let record = CompactRecord(put.record.bytes, context: try commit.context(index))
    let isCommits = put.record.dataReceivedMs == commit.receivedMs
    let values: [SQLValue] = [
      .int(key), .int(Int64(index)), isCommits ? .null : .ms(put.record.dataReceivedMs), try blob(of: put),
      .bytes(record.bytes),
    ]
    let node = try put.replaced.map { try update($0.record, values) } ?? create(put.leaf.node, values)
    if let tag = put.tag, !put.keepsName { try insertName.run(.int(try parent(of: put.leaf)), .id(tag), .int(node)) }
    try writeContent(of: put, node)
  }

  private func update(_ node: Int64, _ values: [SQLValue]) throws -> Int64 {
    try updateNode.run(values + [.int(node)])
    return node
  }

  private mutating func create(_ id: NodeID, _ values: [SQLValue]) throws -> Int64 {
    try insertNode.run(values)
    let node = store.db.lastInsertedRowID
    created = (created?.lowerBound ?? node)...node
    keys[id] = node
    try insertID.run(.int(tree), .id(id), .int(node))
    return node
  }

  /// Returns the key of the node's parent. Most puts of a commit share a few.
  private mutating func parent(of leaf: LogNode) throws -> Int64 {
    if let known = keys[leaf.parent] { return known }
    guard
      let key = try store.db.first(
        "SELECT key FROM node_ids WHERE tree = ? AND node = ?", .int(tree), .id(leaf.parent), row: { $0.int(0) })
    else { throw StoreError.damaged }
    keys[leaf.parent] = key
    return key
  }

  private mutating func removeName(of node: NodeRow) throws {
    guard let tag = node.tag else { return }
    try removeName.run(.int(try parent(of: node.leaf)), .id(tag))
  }

  private func blob(of put: NodePut) throws -> SQLValue {
    switch put.content {
    case .none: .null
    case .unchanged(let key): .int(max(key, 0))
    case .attached(let blob): .int(blob.isInline ? 0 : blob.key)
    case .reference(let source) where !source.isInline:
      .int(
        try store.insertReference(
          source.reference(for: put.leaf.node, in: commit.zone, now: commit.receivedMs, replacedMs: nil)))
    case .reference: .int(0)
    case .inline: .int(0)
    }
  }

  private func writeContent(of put: NodePut, _ node: Int64) throws {
    switch put.content {
    case .none, .unchanged: return
    case .attached(let blob) where !blob.isInline: try store.update(blob.attached(in: commit.zone, replacedMs: nil))
    case .attached(var blob):
      // A node that is deleted with its folder and put again takes its content from where that was moved.
      blob.key = store.movedContents[blob.key] ?? blob.key
      guard blob.key > 0 else { return }
      guard let bytes = try store.inlineBytes(of: blob) else { throw StoreError.damaged }
      try store.removeBlobs([blob])
      try store.count(contents: 1, bytes: Int64(bytes.count), in: commit.zone)
      try insertContent.run(.int(node), .bytes(bytes))
    case .reference(let source) where !source.isInline: return
    case .reference(let source):
      let bytes = try store.smallBytes(of: source)
      try store.count(contents: 1, bytes: Int64(bytes.count), in: commit.zone)
      try insertContent.run(.int(node), .bytes(bytes))
    case .inline(_, let bytes): try insertContent.run(.int(node), .slice(bytes))
    }
  }

  /// Counts the commit's small content in one statement: a trigger would run one more statement for each blob.
  private func countContents(of puts: [NodePut]) throws {
    let lengths = puts.compactMap { put in
      if case .inline(_, let content) = put.content { Int64(content.count) } else { nil }
    }
    guard !lengths.isEmpty else { return }
    try store.count(contents: Int64(lengths.count), bytes: lengths.reduce(0, +), in: commit.zone)
  }
}
