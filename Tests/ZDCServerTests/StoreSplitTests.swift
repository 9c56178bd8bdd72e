import Foundation
import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import ZDCServerSQLite

/// How every metadata store splits branches off and ends zones: a part of ``StoreContractTests``.
@Suite struct StoreSplitTests {
  static let stores = StoreContractTests.stores
  /// The nodes of a large branch: 3,000, or as many as `ZDC_BRANCH_NODES` says.
  private static let manyNodes = ProcessInfo.processInfo.environment["ZDC_BRANCH_NODES"].flatMap { Int($0) } ?? 3_000

  /// A store with one account, whose home has a branch.
  struct World {
    var store: any MetadataStore
    let account: TestAccount
    var home: TestZone
    let top = NodeID.random()

    init(_ store: any MetadataStore, branch count: Int) async throws {
      self.store = store
      account = try TestAccount()
      home = account.home
      let registration = try Accounts.Registration(account.registration())
      try await store.write([.account(account.userID)]) { tx in
        _ = try Accounts.register(registration, mode: .open, invites: [], now: 1, in: tx)
      }
      try await put([home.record(top)])
      var all = [top]
      while all.count < count {
        let new = (0..<min(1_000, count - all.count)).map { index in
          home.record(.random(), parent: all[index % all.count])
        }
        try await put(new)
        all += new.map(\.fields.node)
      }
    }

    mutating func put(_ records: [NodeRecord], contents: [TestZone.Content] = []) async throws {
      let (commit, body) = try home.put(records, contents: contents)
      try await apply(body)
      home.accepted(commit, records: records)
    }

    /// - Parameter around: runs the writer's part.
    func apply(
      _ body: [UInt8], now: UInt64 = 5,
      around: @escaping @Sendable (any MetadataTransaction, () throws -> Void) throws -> Void = { try $1() }
    ) async throws {
      let (request, user) = (try CommitRequest(body), account.userID)
      let work: @Sendable () -> SubtreeWork = { SubtreeWork(limit: 1_000_000) }
      let prepared = try await store.read { try request.prepareSplits(by: user, work: work(), in: $0) }
      #expect(prepared.isEmpty == !request.hasSplit)
      try await store.write(request.subjects) { tx in
        try around(tx) {
          _ = try Commits.apply(
            request, by: user, quotas: Quotas(limit: 1 << 40), work: work(), aids: CommitAids(splits: prepared),
            now: now, in: tx)
        }
      }
    }

    /// Splits the branch off; returns the new zone.
    mutating func split() async throws -> TestZone {
      let split = try home.split(top)
      try await apply(split.body)
      home.accepted(split)
      return split.child
    }
  }

  private func withWorld(
    _ maker: StoreContractTests.Maker, branch count: Int = 6, _ body: (inout World) async throws -> Void
  ) async throws {
    try await StoreContractTests.withStore(maker) { store in
      var world = try await World(store, branch: count)
      try await body(&world)
    }
  }

  /// - The branch is split off, and one of its nodes is put again
  /// => its nodes have `putSeq` 0 in the new zone until then, and are refused in the old one
  @Test(arguments: stores) func nodesOfABranchAreThoseOfTheNewZone(_ maker: StoreContractTests.Maker) async throws {
    try await withWorld(maker) { world in
      let nodes = world.home.branch(world.top).map(\.node)
      let usage = try await world.store.read { [account = world.account] in try $0.usage(of: account.userID) }
      var child = try await world.split()
      let again = child.record(nodes[1]) { ($0.keyGen, $0.parentKeyGen) = (2, 2) }
      let (commit, body) = try child.put([again])
      try await world.apply(body)
      child.accepted(commit, records: [again])
      let (home, zone, owner) = (world.home.zone, child.zone, world.account.userID)
      try await world.store.read { reader in
        let (parent, key) = (try #require(try reader.zone(home)).key, try #require(try reader.zone(zone)).key)
        let found = try reader.nodes(nodes, in: key)
        #expect(Set(found.map(\.leaf.node)) == Set(nodes))
        #expect(found.filter { $0.leaf.putSeq == 1 }.map(\.leaf.node) == [nodes[1]])
        #expect(found.count { $0.leaf.putSeq == 0 } == nodes.count - 1)
        let below = try reader.leaves(below: zone.root, in: key, limit: .max)
        #expect(below.count == nodes.count - 1)
        #expect(Set(below) == Set(found.map(\.leaf).filter { $0.node != zone.root }))
        for node in nodes {
          #expect(throws: ZDCSecurityError.self) { try reader.nodes([node], in: parent) }
          #expect(try reader.zone(ofNode: node, tree: zone.tree)?.zone == zone)
        }
        // The mount is new, and nothing else.
        #expect(try reader.usage(of: owner).liveNodes == usage.liveNodes + 1)
        #expect(try reader.stateBytes(of: key) == UInt64(72 * nodes.count))
        #expect(try reader.stateBytes(of: parent) == nil && reader.statePart(1, of: key) == nil)
      }
    }
  }

  /// - A folder has a branch of seven nodes in three levels, and another node beside it
  /// => the nodes below the branch's top are found, or as many of them as asked for
  @Test(arguments: stores) func leavesOfABranchAreThoseOfItsNodes(_ maker: StoreContractTests.Maker) async throws {
    try await withWorld(maker) { world in
      let folder = try #require(world.home.branch(world.top).last).node
      let (beside, below) = (world.home.record(.random()), world.home.record(.random(), parent: folder))
      try await world.put([beside, below])
      let (home, top) = (world.home.zone, world.top)
      let nodes = world.home.branch(top).map(\.node).filter { $0 != top }
      try await world.store.read { reader in
        let key = try #require(try reader.zone(home)).key
        let all = try reader.leaves(below: top, in: key, limit: .max)
        let rows = try reader.nodes(nodes, in: key).filter { nodes.contains($0.leaf.node) }
        #expect(all.count == 6 && Set(all) == Set(rows.map(\.leaf)))
        for limit in 0...6 {
          let some = try reader.leaves(below: top, in: key, limit: limit)
          #expect(Set(some).count == limit && Set(some).isSubset(of: all))
        }
        #expect(try reader.leaves(below: .random(), in: key, limit: 5).isEmpty)
      }
    }
  }

  /// - A branch of 5 nodes is split off, and a large one
  /// => the same number of rows is written, and one more for each further MiB of the state; the store's writer does no more
  ///   than for the small one
  @Test("S-3: a split writes as many rows for a large branch as for a small one")
  func aSplitWritesFewRows() async throws {
    var (rows, work): ([Int64], [Int]) = ([], [])
    for size in [5, Self.manyNodes] {
      try await withWorld(Self.stores[0], branch: size) { world in
        let before = try await Self.changes(world.store)
        work.append(try await Self.workOfSplit(world))
        rows.append(try await Self.changes(world.store) - before)
      }
    }
    let further = Int64((Self.manyNodes - 1) / ((1 << 20) / StateList.entryBytes))
    #expect(rows[1] == rows[0] + further && rows[0] < 30, "\(rows)")
    #expect(work[1] <= work[0] * 3 / 2 + 100 * Int(further), "\(work) instructions of the database")
  }

  /// Splits the branch off, and returns the number of instructions that SQLite runs while this holds the store's writer.
  private static func workOfSplit(_ world: World) async throws -> Int {
    let split = try world.home.split(world.top)
    let steps = Mutex(0)
    try await world.apply(split.body) { tx, work in
      let db = try #require(tx as? SQLiteTransaction).db
      let counted = try SQLiteWork.counted(db) { try work() }.steps
      steps.withLock { $0 = counted }
    }
    return steps.withLock { $0 }
  }

  private static func changes(_ store: any MetadataStore) async throws -> Int64 {
    try await store.write([]) { tx in
      let sqlite = try #require(tx as? SQLiteTransaction)
      return try #require(try sqlite.db.first("SELECT total_changes()") { $0.int(0) })
    }
  }

  /// - The new zone ends; its nodes are removed two at a time
  /// => before and after, its records and content are like those of deleted nodes; ids are free only after
  @Test(arguments: stores) func aZoneEndsInSteps(_ maker: StoreContractTests.Maker) async throws {
    try await withWorld(maker) { world in
      let content = TestZone.Content()
      let file = world.home.record(.random(), parent: world.top, content: content.field())
      try await world.put([file], contents: [content])
      let nodes = world.home.branch(world.top).map(\.node)
      let child = try await world.split()
      try await world.apply(TestZone.body(try child.end()), now: 9)
      let (home, zone, owner) = (world.home.zone, child.zone, world.account.userID)
      let name = RecordName(node: file.fields.node, hash: file.hash)
      let blob = ContentName(node: file.fields.node, blob: content.blob)
      func checkKept() async throws {
        try await world.store.read { reader in
          let row = try #require(try reader.zone(zone))
          #expect(row.closedMs == 9)
          #expect(try reader.record(name, in: row.key)?.replacedMs == 9)
          let kept = try #require(try reader.contents([blob], in: zone.tree)[blob])
          #expect(kept.replacedMs == 9 && kept.zone == row.key)
          #expect(try reader.inlineBytes(of: kept) == content.bytes)
          var records = 0
          try reader.commits(of: row.key, after: nil, withRecords: true) { commit in
            records += commit.records.count
            return true
          }
          #expect(records == 0)
        }
      }
      func live() async throws -> UInt64 { try await world.store.read { try $0.usage(of: owner).liveNodes } }
      try await checkKept()
      let before = try await live()
      try await world.store.read { reader in
        let parent = try #require(try reader.zone(home)).key
        let leaving = #expect(throws: ServerError.self) { try reader.nodes([nodes[1]], in: parent) }
        #expect(leaving == ServerError.nodeIsLeaving)
      }
      var steps = 1
      while try await world.store.write([.upkeep], { try $0.removeClosedNodes(limit: 2) }) { steps += 1 }
      #expect(steps == (nodes.count + 1) / 2)
      #expect(try await live() == before - UInt64(nodes.count))
      try await checkKept()
      try await world.store.read { reader in
        let parent = try #require(try reader.zone(home)).key
        #expect(try reader.nodes(nodes, in: parent).isEmpty)
        for node in nodes { #expect(try reader.zone(ofNode: node, tree: zone.tree) == nil) }
      }
    }
  }
}
