internal import ZDCProtocol

/// A zone's live nodes as one commit leaves them: the snapshot, overlaid with the operations that replay has accepted
/// so far.
struct ZoneDraft: ZoneState {
  let snapshot: ZoneSnapshot
  private var contents: PutContents
  let part: CommitRequest.ZonePart
  /// The access list in force after the commit.
  private let acl: ZoneACL.Fields
  /// The writer's permissions before the commit.
  private let permissions: ZoneACL.Permissions
  private let now: UInt64
  private(set) var puts: [NodePut] = []
  private(set) var removed: [NodeID: NodeRow] = [:]
  private(set) var usage = ZoneUsage()
  /// Nodes that differ from the snapshot; nil for a removed node.
  private var changed: [NodeID: LogNode?] = [:]
  private var indexOfPut: [NodeID: Int] = [:]
  /// The nodes with which a zone begins that is split off.
  var state: StateList?
  /// The branch that the commit splits off.
  var splitOff: ZoneDraftBranch?
  /// Nodes that this commit put below a node; later operations may have removed some of them.
  private var putBelow: [NodeID: [NodeID]] = [:]

  init(
    part: CommitRequest.ZonePart, acl: ZoneACL.Fields, permissions: ZoneACL.Permissions, snapshot: ZoneSnapshot,
    contents: PutContents, now: UInt64
  ) {
    self.part = part
    self.acl = acl
    self.permissions = permissions
    self.snapshot = snapshot
    self.contents = contents
    self.now = now
    puts.reserveCapacity(part.records.count)
  }

  func leaf(_ node: NodeID) -> LogNode? {
    if let change = changed[node] { return change }
    if let state { return state.node(node) }
    guard splitOff?.list.node(node) == nil else { return nil }
    return snapshot.node(node)?.leaf
  }

  func descendantCount(of node: NodeID, upTo limit: UInt64) throws -> UInt64 {
    UInt64(try branch(below: node, nodes: Int(clamping: limit)).nodes.count)
  }

  func height(of node: NodeID, upTo limit: Int) throws -> Int { try branch(below: node, levels: limit).levels }

  func writer(of leaf: LogNode) throws -> UserID? { try snapshot.writer(of: leaf.putSeq) }

  mutating func put(_ leaf: LogNode, replacing old: LogNode?) throws {
    guard let record = part.records[leaf.record] else { throw ZDCSecurityError(.objectMissing, node: leaf.node) }
    let replaced = old == nil ? nil : snapshot.node(leaf.node)
    let previous = try replaced.flatMap(contents.record).map { try NodeRecord($0.bytes) }
    let fields = part.commit.fields
    try RecordRules.check(record, put: ZoneOperation.Put(leaf), zone: fields.zone, replaced: old, previous: previous)
    try RecordRules.check(record, commit: fields, acl: acl)
    try RecordRules.check(record, permissions: permissions)
    try checkSplitRoot(record, previous: previous)
    let content = try contents.content(of: record, node: replaced, previous: previous)
    append(leaf, record: record, content: content, replaced: replaced)
  }

  private mutating func append(_ leaf: LogNode, record: NodeRecord, content: PutContents.Found, replaced: NodeRow?) {
    let stored = StoredRecord(bytes: record.bytes, recordReceivedMs: now, dataReceivedMs: content.receivedMs)
    let isRoot = leaf.node == part.commit.fields.zone.root
    usage.count(record: record.bytes)
    if replaced == nil { usage.nodes += 1 }
    changed[leaf.node] = leaf
    indexOfPut[leaf.node] = puts.count
    putBelow[leaf.parent, default: []].append(leaf.node)
    puts.append(
      NodePut(
        leaf: leaf, tag: isRoot ? nil : record.fields.nameTag, record: stored, content: content.place,
        replaced: replaced))
  }

  mutating func removeSubtree(_ node: NodeID) throws {
    let doomed = try branch(below: node).nodes + [node]
    usage.nodes -= Int64(doomed.count)
    for id in doomed {
      if let row = snapshot.node(id) { removed[id] = row }
      if let index = indexOfPut[id] { puts[index].isLive = false }
      changed[id] = .some(nil)
    }
  }

  /// Returns the levels and nodes below a node. Stops one level or one node past the limits.
  func branch(
    below node: NodeID, levels: Int = .max, nodes: Int = .max
  ) throws -> (levels: Int, nodes: [NodeID]) {
    var found: (levels: Int, nodes: [NodeID]) = (0, [])
    var level = [node]
    while found.levels <= levels, found.nodes.count <= nodes {
      level = try children(of: level, upTo: nodes - found.nodes.count)
      guard !level.isEmpty else { break }
      found.levels += 1
      found.nodes += level
    }
    return found
  }

  private func children(of parents: [NodeID], upTo limit: Int) throws -> [NodeID] {
    // The store may return changed nodes, which count towards the limit but may no longer be here.
    let (limit, isUnlimited) = limit.addingReportingOverflow(changed.count)
    let stored = try snapshot.children(of: parents, upTo: isUnlimited ? .max : limit)
    guard !changed.isEmpty else { return stored }
    let put = parents.flatMap { parent in
      (putBelow[parent] ?? []).filter { changed[$0]??.parent == parent }
    }
    return stored.filter { changed[$0] == nil && $0 != splitOff?.top } + put
  }
}

// Names must be unique only at the end of a commit, so that two nodes may swap theirs (PROTOCOL 3.7).
extension ZoneDraft {
  func checkNames(in reader: any MetadataReader) throws {
    var taken: [NodeName: NodeID] = [:]
    for put in puts where put.isLive {
      guard let name = put.name else { continue }
      try require(taken.updateValue(put.leaf.node, forKey: name) == nil, .duplicateName, node: put.leaf.node)
    }
    guard let zone = snapshot.zone else { return }
    for (name, holder) in try reader.holders(of: newNames, in: zone)
    where changed[holder] == nil && holder != splitOff?.top {
      throw ZDCSecurityError(.duplicateName, node: taken[name])
    }
  }

  private var newNames: [NodeName] { puts.compactMap { $0.isLive && !$0.keepsName ? $0.name : nil } }
}
