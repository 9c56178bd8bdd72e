import Testing
import ZDCProtocol
import ZDCServerMemory

@testable import ZDCServer

/// The decision about a commit, over a store that is read in a few questions, against the same rules over a zone that is
/// in memory as a whole.
@Suite struct ZoneDraftTests {
  /// - Random commits of several operations: new nodes, edits, moves, swapped and taken names, deletes with right and
  ///   wrong counts
  /// => both accept the same ones, and leave the same nodes and names
  @Test(arguments: StoreContractTests.stores, [1, 2, 3, 4]) func decisionsAgree(
    _ maker: StoreContractTests.Maker, seed: UInt64
  ) async throws {
    try await StoreContractTests.withStore(maker) { store in
      let account = try TestAccount()
      try await store.write([.account(account.userID)]) { tx in
        let registration = try Accounts.Registration(account.registration())
        _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
      }
      var model = Model(account, seed: seed)
      for _ in 0..<150 {
        let step = try model.next()
        let request = try CommitRequest(step.body)
        let isAccepted = try await Self.isAccepted(request, account.userID, store)
        #expect(isAccepted == (step.after != nil), "\(step.commit.fields.operations)")
        guard let after = step.after, isAccepted else { continue }
        model.accept(step, after)
        try await Self.compare(model, store)
      }
      #expect(model.accepted > 40 && model.refused > 10, "\(model.accepted) accepted, \(model.refused) refused")
    }
  }

  private static func isAccepted(
    _ request: CommitRequest, _ user: UserID, _ store: any MetadataStore
  ) async throws -> Bool {
    do {
      return try await store.write(request.subjects) { tx in
        let work = SubtreeWork(limit: 1_000_000)
        let quotas = Quotas(limit: 1 << 40)
        return try Commits.apply(request, by: user, quotas: quotas, work: work, now: 2, in: tx).notices.count == 1
      }
    } catch is ZDCSecurityError { return false }
  }

  private static func compare(_ model: Model, _ store: any MetadataStore) async throws {
    let (zone, leaves) = (model.zone.zone, model.state.leaves)
    let (tags, all) = (model.tags, Array(model.everPut))
    try await store.read { reader in
      let key = try #require(try reader.zone(zone)).key
      // Those that are gone are asked for as well.
      let rows = try reader.nodes(all, in: key)
      #expect(Dictionary(uniqueKeysWithValues: rows.map { ($0.leaf.node, $0.leaf) }) == leaves)
      let children = try reader.children(of: Array(leaves.keys), in: key, limit: .max)
      #expect(children.count == leaves.count - 1)
      for row in rows where row.leaf.node != zone.root { #expect(row.tag == tags[row.leaf.node]) }
      #expect(try reader.usage(of: model.zone.owner).liveNodes == UInt64(leaves.count + 3))
    }
  }

  /// A zone in memory, and random commits for it.
  private struct Model {
    struct Step {
      var commit: ZoneCommit
      var body: [UInt8]
      var records: [NodeRecord]
      /// Nil if the commit breaks a rule.
      var after: MemoryZoneState?
    }

    var zone: TestZone
    var state = MemoryZoneState()
    var tags: [NodeID: NameTag] = [:]
    /// In the order of their first puts, so that a seed draws the same commits whatever the ids are.
    private var nodes: [NodeID]
    private(set) var everPut: Set<NodeID>
    var accepted = 0
    var refused = 0
    private var random: Random
    private let identities: Keys

    init(_ account: TestAccount, seed: UInt64) {
      zone = account.home
      random = Random(state: seed)
      nodes = [zone.zone.root]
      everPut = [zone.zone.root]
      identities = Keys(user: account.userID, key: account.signKey.publicBytes)
      let root = LogNode(
        node: zone.zone.root, parent: .zero, record: zone.records[zone.zone.root]!.hash, putSeq: 0, keyGen: 1,
        parentKeyGen: 0)
      state.put(root, replacing: nil)
    }

    mutating func next() throws -> Step {
      var records: [NodeRecord] = []
      var operations: [ZoneOperation] = []
      // The zone after the operations so far, whose nodes a delete counts.
      var draft = state
      func put(_ record: NodeRecord) {
        // The format has no room for two operations on one node.
        guard !operations.contains(where: { $0.node == record.fields.node }) else { return }
        records.append(record)
        operations.append(.put(.init(record)))
        guard !draft.isBelow(record.fields.parent, record.fields.node) else { return }
        let leaf = LogNode(
          node: record.fields.node, parent: record.fields.parent, record: record.hash, putSeq: 0, keyGen: 1,
          parentKeyGen: 1)
        draft.put(leaf, replacing: draft.leaf(leaf.node))
      }
      let usedTags = (0..<12).map { NameTag([UInt8](repeating: UInt8($0 + 1), count: 16))! }
      for _ in 0..<Int.random(in: 1...5, using: &random) {
        let node = nodes.randomElement(using: &random) ?? zone.zone.root
        // Nodes that this commit has already put are candidates, too.
        let parent = (nodes + records.map(\.fields.node)).randomElement(using: &random) ?? zone.zone.root
        let tag = usedTags.randomElement(using: &random)
        // Put again after a delete it would be a new node, with a first record.
        guard draft.leaf(node) != nil else { continue }
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<5: put(zone.record(.random(), parent: parent, tag: tag))
        case _ where node == zone.zone.root: continue
        case 5: put(zone.record(node))
        case 6, 7: put(zone.record(node, parent: parent, tag: tag))
        default:
          guard let leaf = state.leaf(node), !operations.contains(where: { $0.node == node }) else { continue }
          let wrong: UInt64 = Int.random(in: 0..<6, using: &random) == 0 ? 1 : 0
          let count = draft.descendantCount(of: node) + wrong
          operations.append(.delete(node: node, record: leaf.record, liveDescendants: count))
          draft.removeSubtree(node)
        }
      }
      if operations.isEmpty { put(zone.record(.random())) }
      let commit = try zone.commit(operations)
      let after = try replayed(commit, records)
      if after == nil { refused += 1 }
      return Step(commit: commit, body: TestZone.body(commit, records: records), records: records, after: after)
    }

    /// Nil if a rule is broken, names included.
    private func replayed(_ commit: ZoneCommit, _ records: [NodeRecord]) throws -> MemoryZoneState? {
      var after = state
      let head = ZoneHead(zone: zone.zone, seq: zone.seq, hash: zone.headHash, acl: zone.acl)
      do {
        _ = try ZoneReplay(identities: identities).apply(commit, acl: nil, after: head, to: &after)
      } catch is ZDCSecurityError { return nil }
      let tags = names(after: records)
      let names = after.leaves.values.compactMap { leaf in
        tags[leaf.node].map { NodeName(parent: leaf.parent, tag: $0) }
      }
      return Set(names).count == names.count ? after : nil
    }

    private func names(after records: [NodeRecord]) -> [NodeID: NameTag] {
      tags.merging(records.map { ($0.fields.node, $0.fields.nameTag) }) { _, new in new }
    }

    mutating func accept(_ step: Step, _ after: MemoryZoneState) {
      accepted += 1
      state = after
      everPut.formUnion(step.records.map(\.fields.node))
      nodes = (nodes + step.records.map(\.fields.node).filter { !nodes.contains($0) }).filter { after.leaf($0) != nil }
      tags = names(after: step.records).filter { after.leaves[$0.key] != nil }
      zone.accepted(step.commit, records: step.records)
      zone.records = zone.records.filter { after.leaves[$0.key] != nil }
    }
  }

  private struct Keys: IdentityDirectory {
    let user: UserID
    let key: [UInt8]

    func signKey(user: UserID, generation: UInt32) -> [UInt8]? { user == self.user ? key : nil }
  }

  /// SplitMix64: the same seed, the same commits.
  private struct Random: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
      state &+= 0x9E37_79B9_7F4A_7C15
      var mixed = state
      mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
      mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
      return mixed ^ (mixed >> 31)
    }
  }
}

extension ZoneOperation {
  fileprivate var node: NodeID? {
    switch self {
    case .put(let put): put.node
    case .delete(let node, _, _): node
    default: nil
    }
  }
}

extension MemoryZoneState {
  fileprivate func isBelow(_ node: NodeID, _ top: NodeID) -> Bool {
    var current: NodeID? = node
    while let id = current {
      if id == top { return true }
      current = leaf(id)?.parent
    }
    return false
  }
}
