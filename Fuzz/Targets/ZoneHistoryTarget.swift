internal import Crypto
internal import ZDCProtocol

extension FuzzTarget {
  /// The input is a history: validly signed commits with arbitrary operations. Accepted commits must form a tree.
  static let zoneHistory = FuzzTarget("zone-history", longest: 4 << 10) { bytes in
    var history = try ZoneHistory()
    var reader = ByteReader(bytes)
    while reader.remaining > 0 {
      guard let operations = try accepted({ try readOperations(&reader, history) })
      else { return }
      if operations.isEmpty { try history.rotate() } else { try history.apply(operations) }
    }
  }

  private static func readOperations(
    _ reader: inout ByteReader, _ history: ZoneHistory
  ) throws(ZDCSecurityError) -> [ZoneOperation] {
    var operations: [ZoneOperation] = []
    for _ in 0..<(try reader.readUInt8() % 8) {
      let (kind, node) = (try reader.readUInt8(), history.node(try reader.readUInt8()))
      let (parent, number) = (history.node(try reader.readUInt8()), try reader.readUInt8())
      switch kind % 8 {
      case 1 where kind & 0x20 != 0:
        operations += history.split(node, mount: number, isHonest: kind & 0x10 == 0)
      case 0, 4:
        operations.append(.delete(node: node, record: history.record(of: node), liveDescendants: UInt64(number)))
      default:
        // Mostly values that replay accepts, so that histories grow.
        let keyGen = kind & 0x80 == 0 ? history.keyGen(of: node) : UInt32(number)
        operations.append(
          .put(
            .init(
              node: node, parent: parent, record: RecordHash(UInt64(number), 1, 1, UInt64(kind)), keyGen: keyGen,
              parentKeyGen: kind & 0x40 == 0 ? history.keyGen(of: parent) : UInt32(kind))))
      }
    }
    return operations
  }
}

/// A trunk's log with one writer, replayed in memory.
struct ZoneHistory {
  private let signer: Curve25519.Signing.PrivateKey
  private let zone: ZoneID
  private let user: UserID
  private var head: ZoneHead
  private var state = MemoryZoneState()

  init() throws {
    signer = Curve25519.Signing.PrivateKey()
    user = UserID(1, 2, 3, 4)
    zone = ZoneID(trunkOf: TreeID.derive(owner: user, trunk: .home, appTreeID: "com.example.fuzz"))
    let owner = ZoneACL.Entry(
      user: user, permissions: [.read, .write, .share], encGen: 1, wrapKind: .nodeKey, wrapHash: .zero)
    let fields = ZoneACL.Fields(
      zone: zone, owner: user, trunk: .home, appTreeID: "com.example.fuzz", version: 1, prev: .zero,
      parentLinked: false, zoneKeyGen: 1, commitments: .init(node: .init(1, 1, 1, 1), content: .init(2, 2, 2, 2)),
      entries: [owner], writer: user, writerGen: 1, timeMs: 1)
    let acl = try ZoneACL(fields) { [signer] in try Self.sign(signer, "acl", $0) }
    let root = ZoneOperation.Put(node: zone.root, parent: .zero, record: .init(9, 9, 9, 9), keyGen: 1, parentKeyGen: 0)
    let birth = ZoneCommit.Fields(
      zone: zone, seq: 0, prev: ZoneCommit.genesisPrev(zone: zone), aclHash: acl.hash, writer: user, writerGen: 1,
      timeMs: 1, operations: [.acl(version: 1, hash: acl.hash), .put(root)])
    let commit = try ZoneCommit(birth) { [signer] in try Self.sign(signer, "commit", $0) }
    head = try ZoneReplay(identities: OneKey(key: Array(signer.publicKey.rawRepresentation)))
      .apply(commit, acl: acl, after: nil, to: &state)
  }

  private static func sign(
    _ key: Curve25519.Signing.PrivateKey, _ label: StaticString, _ message: [UInt8]
  ) throws -> [UInt8] {
    Array(try key.signature(for: labelPrefix(label) + message))
  }

  // MARK: Names that the input may use

  func node(_ number: UInt8) -> NodeID { number % 24 == 0 ? zone.root : NodeID(high: 7, low: UInt64(number % 24)) }
  func keyGen(of node: NodeID) -> UInt32 { state.leaf(node)?.keyGen ?? 1 }
  func record(of node: NodeID) -> RecordHash { state.leaf(node)?.record ?? .zero }

  /// Returns a split of a branch, and the node that takes its place. A dishonest one states a different number.
  func split(_ node: NodeID, mount number: UInt8, isHonest: Bool) -> [ZoneOperation] {
    let parent = state.leaf(node)?.parent ?? .zero
    let count = isHonest ? state.descendantCount(of: node) + 1 : UInt64(number)
    let mount = ZoneOperation.Put(
      node: NodeID(high: 8, low: UInt64(number)), parent: parent, record: .init(8, 8, 8, 8), keyGen: 1,
      parentKeyGen: keyGen(of: parent))
    return [.split(node: node, genesis: .zero, count: count), .put(mount)]
  }

  // MARK: Replay

  mutating func apply(_ operations: [ZoneOperation]) throws {
    let fields = ZoneCommit.Fields(
      zone: zone, seq: head.seq + 1, prev: head.hash, aclHash: head.acl.hash, writer: user, writerGen: 1, timeMs: 2,
      operations: operations)
    let known = generations
    try apply(fields, acl: nil)
    for (node, keyGen) in generations {
      let before = known[node] ?? keyGen
      try FuzzFinding.require(keyGen == before || keyGen == before + 1, "a generation rises by one")
    }
  }

  /// Gives the zone its next key: all nodes are stale afterwards.
  mutating func rotate() throws {
    var list = head.acl.fields
    (list.version, list.prev, list.zoneKeyGen) = (list.version + 1, head.acl.hash, list.zoneKeyGen + 1)
    let acl = try ZoneACL(list) { [signer] in try Self.sign(signer, "acl", $0) }
    let root = ZoneOperation.Put(
      node: zone.root, parent: .zero, record: .init(9, 9, 9, 9), keyGen: list.zoneKeyGen, parentKeyGen: 0)
    let seq = head.seq
    try apply(
      ZoneCommit.Fields(
        zone: zone, seq: seq + 1, prev: head.hash, aclHash: acl.hash, writer: user, writerGen: 1, timeMs: 2,
        operations: [.acl(version: list.version, hash: acl.hash), .put(root)]), acl: acl)
    try FuzzFinding.require(head.seq == seq + 1, "the owner may always rotate")
  }

  private mutating func apply(_ fields: ZoneCommit.Fields, acl: ZoneACL?) throws {
    let commit = try ZoneCommit(fields) { [signer] in try Self.sign(signer, "commit", $0) }
    var next = state
    let step: ZoneStep
    do {
      step = try ZoneReplay(identities: OneKey(key: Array(signer.publicKey.rawRepresentation)))
        .advance(try ZoneCommit(commit.bytes), acl: acl, after: head, to: &next)
    } catch is ZDCSecurityError { return }
    head = step.head
    state = next
    try checkTree()
    if let split = step.split { try checkBeginning(of: split) }
  }

  /// Checks that each branch that replay splits off can begin a zone, and that its nodes have left this one.
  private func checkBeginning(of split: ZoneSplit) throws {
    let top = split.list.nodes.first { $0.parent == .zero }
    var list = head.acl.fields
    (list.zone, list.version, list.prev, list.zoneKeyGen) = (split.zone, 1, .zero, (top?.keyGen ?? 0) + 1)
    let acl = try ZoneACL(list) { [signer] in try Self.sign(signer, "acl", $0) }
    let begin = ZoneOperation.GenesisState(
      parentHead: split.parentHead, stateRoot: split.list.root, count: split.list.count)
    let root = ZoneOperation.Put(
      node: split.zone.root, parent: .zero, record: .init(7, 7, 7, 7), keyGen: list.zoneKeyGen, parentKeyGen: 0)
    let fields = ZoneCommit.Fields(
      zone: split.zone, seq: 0, prev: ZoneCommit.genesisPrev(zone: split.zone, parentHead: split.parentHead),
      aclHash: acl.hash, writer: user, writerGen: 1, timeMs: 3,
      operations: [.genesisState(begin), .acl(version: 1, hash: acl.hash), .put(root)])
    let genesis = try ZoneCommit(fields) { [signer] in try Self.sign(signer, "commit", $0) }
    var child = MemoryZoneState()
    let replay = ZoneReplay(identities: OneKey(key: Array(signer.publicKey.rawRepresentation)))
    do {
      _ = try replay.advance(genesis, acl: acl, list: split.list, after: nil, to: &child)
    } catch { throw FuzzFinding(description: "a branch that was split off begins no zone: \(error)") }
    let isApart = split.list.nodes.allSatisfy { state.leaf($0.node) == nil && child.leaf($0.node) != nil }
    try FuzzFinding.require(isApart, "a node that was split off is in one zone")
  }

  private var generations: [NodeID: UInt32] { state.leaves.mapValues(\.keyGen) }

  /// Checks that every node has a living parent, and that the path up ends at the root.
  private func checkTree() throws {
    for leaf in state.leaves.values where leaf.node != zone.root {
      var steps = 0
      var current = leaf
      while current.node != zone.root {
        guard let parent = state.leaf(current.parent) else { throw FuzzFinding(description: "a node hangs in the air") }
        try FuzzFinding.require(current.parentKeyGen <= parent.keyGen, "no node knows a key of its parent's future")
        try FuzzFinding.require(current.keyGen <= keyGen(of: zone.root), "no node has more generations than its zone")
        steps += 1
        try FuzzFinding.require(steps <= Limits.depthAfterMoves, "the way up ends at the root")
        current = parent
      }
    }
    try FuzzFinding.require(state.leaf(zone.root) != nil, "the root stays")
  }
}

private struct OneKey: IdentityDirectory {
  let key: [UInt8]

  func signKey(user: UserID, generation: UInt32) -> [UInt8]? { generation == 1 ? key : nil }
}
