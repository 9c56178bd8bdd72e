internal import ZDCProtocol

/// The state list of a branch, read before the write that splits it off: reading and hashing a large branch would hold
/// the store's only writer.
struct PreparedSplit: Sendable {
  let node: NodeID
  /// The head of the zone when the list was read. A commit that follows another head does not use it.
  let parentHead: CommitHash
  let list: StateList
  let stored: StoredState
}

/// The prepared splits of one request, by the zone that has the branch.
typealias PreparedSplits = [ZoneID: PreparedSplit]

extension CommitRequest {
  /// Whether a commit splits a branch off.
  var hasSplit: Bool { parts.contains { $0.split != nil } }

  /// Reads the lists of all branches that the request splits off, if the commits follow the heads of their zones and the
  /// user is the owner. The write checks everything else, and this again.
  func prepareSplits(
    by user: UserID, work: SubtreeWork, in reader: any MetadataReader
  ) throws -> PreparedSplits {
    var prepared: PreparedSplits = [:]
    for part in parts {
      let fields = part.commit.fields
      guard let (node, count) = part.split, count <= Limits.splitNodes, node != fields.zone.root,
        let row = try reader.zone(fields.zone), row.head == fields.prev, try ZoneACL(row.acl).fields.owner == user
      else { continue }
      let snapshot = try ZoneSnapshot(of: row.key, for: fields.operations, reader: reader, work: work)
      guard let list = try snapshot.stateList(of: node, upTo: count) else { continue }
      prepared[fields.zone] = PreparedSplit(node: node, parentHead: row.head, list: list, stored: StoredState(list))
    }
    return prepared
  }
}

extension CommitRequest.ZonePart {
  /// The branch that the commit splits off, and its stated number of nodes.
  var split: (node: NodeID, count: UInt64)? {
    for case .split(let node, _, let count) in commit.fields.operations { return (node, count) }
    return nil
  }
}

extension ZoneSnapshot {
  /// Returns the list of a branch; nil if the node is not live.
  fileprivate func stateList(of node: NodeID, upTo limit: UInt64) throws -> StateList? {
    guard let top = self.node(node)?.leaf else { return nil }
    let below = try leaves(below: node, upTo: Int(clamping: limit) - 1)
    return StateList(branch: below + [top], top: node)
  }
}

/// The branches that a request's commits split off, each of which must become a zone in the same request.
struct RequestedSplits {
  struct Branch {
    var split: ZoneSplit
    /// The zone that the branch is in.
    var parent: ZoneKey
    /// The list of that zone.
    var list: ZoneACL
    /// The top of the branch, as that zone has it.
    var top: NodeRow
    var stored: StoredState
  }

  private var open: [ZoneID: Branch] = [:]

  mutating func add(_ branch: Branch) { open[branch.split.zone] = branch }

  /// Returns the branch with which this genesis begins its zone.
  ///
  /// - Throws: `splitMismatch` unless a commit of the request names this genesis.
  mutating func take(_ genesis: ZoneCommit) throws(ZDCSecurityError) -> Branch {
    let zone = genesis.fields.zone
    guard let branch = open.removeValue(forKey: zone) else {
      throw ZDCSecurityError(.splitMismatch, zone: zone, node: zone.root)
    }
    try branch.split.check(genesis)
    return branch
  }

  /// - Throws: `splitMismatch` if the request lacks the genesis of a branch.
  func finish() throws(ZDCSecurityError) {
    guard let zone = open.keys.min() else { return }
    throw ZDCSecurityError(.splitMismatch, zone: zone, node: zone.root)
  }
}

extension RequestedSplits.Branch {
  /// The root of the new zone before its genesis puts it: without a place and a name.
  var root: NodeRow? {
    split.list.node(split.zone.root).map { NodeRow(leaf: $0, tag: nil, record: top.record, blob: top.blob) }
  }
}

extension ZoneCommit.Fields {
  /// Whether a genesis puts the zone's root and nothing else. Branches come to it by its state.
  var putsOneNode: Bool {
    operations.allSatisfy { operation in
      switch operation {
      case .put, .acl, .genesisState, .retireKey: true
      case .delete, .split: false
      }
    } && operations.count { if case .put = $0 { true } else { false } } == 1
  }
}
