internal import ZDCProtocol
internal import ZDCServer

/// A zone's live nodes while its log is replayed. Each put's record is checked if it is still retained.
struct CheckedZone: ZoneState {
  let pass: IntegrityCheck
  let zone: ZoneID
  let key: ZoneKey
  private(set) var members = MemberTable()
  private var commit: ZoneCommit?
  private var acl: ZoneACL?

  init(pass: IntegrityCheck, zone: ZoneID, key: ZoneKey) {
    self.pass = pass
    self.zone = zone
    self.key = key
  }

  mutating func begin(_ commit: ZoneCommit, acl: ZoneACL?) {
    (self.commit, self.acl) = (commit, acl)
  }

  mutating func change(to acl: ZoneACL, seq: UInt64, at receivedMs: UInt64) {
    _ = members.change(to: acl.fields.entries, seq: seq, at: receivedMs)
  }

  func leaf(_ node: NodeID) throws -> LogNode? { try pass.scratch.leaf(node) }
  func height(of node: NodeID, upTo limit: Int) throws -> Int { try pass.scratch.height(of: node, upTo: limit) }
  func descendantCount(of node: NodeID, upTo limit: UInt64) throws -> UInt64 {
    try pass.scratch.descendantCount(of: node, upTo: limit)
  }
  func removeSubtree(_ node: NodeID) throws { try pass.scratch.removeSubtree(node) }
  func branch(_ node: NodeID, upTo limit: UInt64) throws -> [LogNode] {
    try pass.scratch.branch(node, upTo: limit)
  }
  func splitOff(_ list: StateList, top: NodeID) throws { try pass.scratch.removeSubtree(top) }
  func insert(_ list: StateList) throws { for node in list.nodes { try pass.scratch.put(node, replacing: nil) } }
  func close() throws { try pass.scratch.removeAll() }
  func writer(of leaf: LogNode) throws -> UserID? { try pass.store.writer(of: leaf.putSeq, in: key) }

  func put(_ leaf: LogNode, replacing old: LogNode?) throws {
    try checkRecord(of: leaf, replacing: old)
    try pass.scratch.put(leaf, replacing: old)
  }

  private func checkRecord(of leaf: LogNode, replacing old: LogNode?) throws {
    // A replaced record may have been collected. The comparison of nodes detects a missing or damaged live one.
    let stored = try? pass.store.record(RecordName(node: leaf.node, hash: leaf.record), in: key)
    guard let stored else { return }
    let fields = CheckFinding.Field.zone(zone) + [.node(leaf.node)]
    do {
      let record = try NodeRecord(stored.bytes)
      let put = ZoneOperation.Put(record)
      try RecordRules.check(record, put: put, zone: zone, replaced: old)
      let isNamed =
        put.node == leaf.node && put.parent == leaf.parent && put.record == leaf.record && put.keyGen == leaf.keyGen
        && put.parentKeyGen == leaf.parentKeyGen
      if !isNamed { pass.add(.record, fields, "the record does not match the commit") }
      if let commit, let acl { try RecordRules.check(record, commit: commit.fields, acl: acl.fields) }
    } catch { pass.add(.record, fields, error.code.rawValue) }
  }
}
