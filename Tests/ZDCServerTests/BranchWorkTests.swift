import Foundation
import GRDB
import GRDBSQLite
import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import ZDCServerSQLite

/// The work that moves and deletes of large branches cause for the store's only writer.
@Suite(.timeLimit(.minutes(20))) struct BranchWorkTests {
  /// - A folder with 5,000 children
  /// => a question for 5 of them reads no row beyond, nor does one for those of its first children
  @Test("S7: a wide folder is read no further than the limit")
  func wideFoldersAreReadUpToTheLimit() throws {
    let top = NodeID.random()
    try DatabaseQueue().writeWithoutTransaction { db in
      try Schema.migrate(db, from: 0)
      try fill(db, below: top)
      let transaction = SQLiteTransaction(db)
      // The row of the zone is looked up once.
      _ = try transaction.children(of: [top], in: ZoneKey(1), limit: 1)
      let (few, fewSteps) = try SQLiteWork.counted(db) { try transaction.children(of: [top], in: ZoneKey(1), limit: 5) }
      let (all, allSteps) = try SQLiteWork.counted(db) {
        try transaction.children(of: [top], in: ZoneKey(1), limit: .max)
      }
      let below = try transaction.children(of: all.map(\.leaf.node), in: ZoneKey(1), limit: 7)
      #expect((few.count, all.count, below.count) == (5, 5_000, 1))
      #expect(fewSteps < 500 && allSteps > 5_000, "\(fewSteps) of \(allSteps) steps")
    }
  }

  /// - The same folder, with 300 nodes one below the other further down
  /// => a question for 5 of all its nodes reads no row beyond; the others are found level by level
  @Test("S7: a branch is read no further than the limit")
  func branchesAreReadUpToTheLimit() throws {
    let top = NodeID.random()
    try DatabaseQueue().writeWithoutTransaction { db in
      try Schema.migrate(db, from: 0)
      try fill(db, below: top)
      let transaction = SQLiteTransaction(db)
      _ = try transaction.leaves(below: top, in: ZoneKey(1), limit: 1)
      let (few, steps) = try SQLiteWork.counted(db) { try transaction.leaves(below: top, in: ZoneKey(1), limit: 5) }
      let counts = try [5_007, 5_300, Int.max].map { limit in
        try transaction.leaves(below: top, in: ZoneKey(1), limit: limit).count
      }
      #expect(few.count == 5 && steps < 500, "\(steps) steps")
      #expect(counts == [5_007, 5_300, 5_300])
    }
  }

  /// What reads many nodes.
  enum Reading: CaseIterable {
    case children, branch, nodes, records, contents, blobs, removal, end

    /// - Parameter rows: the nodes, ordered so that each one's commit is another than that of the one before.
    fileprivate func run(_ tx: SQLiteTransaction, _ rows: [NodeRow], in zone: ZoneID) throws {
      let (key, leaves) = (ZoneKey(1), rows.map(\.leaf))
      switch self {
      case .children: #expect(try tx.children(of: [zone.root], in: key, limit: .max).count == rows.count)
      case .branch: #expect(try tx.leaves(below: zone.root, in: key, limit: .max).count == rows.count)
      case .nodes: #expect(try tx.nodes(leaves.map(\.node), in: key).count == rows.count)
      case .records:
        let names = leaves.map { RecordName(node: $0.node, hash: $0.record) }
        #expect(try tx.records(names, in: key).count == rows.count)
      case .contents:
        #expect(try tx.contents(leaves.map { ContentName(node: $0.node, blob: .random()) }, in: zone.tree).isEmpty)
      case .blobs: #expect(try tx.blobs(rows.map { -$0.record }).isEmpty)
      case .removal:
        var writer = try NodeWriter(tx, commit: BranchWorkTests.puts([], seq: 50, zone), key: 51, replacedIn: nil)
        try writer.write([], removing: rows, splitOff: nil)
      case .end:
        let isMore = try tx.removeClosedNodes(limit: .max)
        #expect(!isMore)
      }
    }
  }

  /// - A folder with 5,000 children, put by 50 commits in turn, and room for one commit in memory
  /// => each commit is read once
  @Test(arguments: Reading.allCases) func aCommitIsReadOnce_howeverManyThereAre(_ reading: Reading) throws {
    let zone = ZoneID(tree: .random(), root: .random())
    try DatabaseQueue().writeWithoutTransaction { db in
      try Schema.migrate(db, from: 0)
      try fill(db, below: zone.root, commits: 50)
      try db.execute(
        sql: """
          DELETE FROM node_names WHERE parent <> 6000;
          UPDATE zones SET root = ?, closed_ms = 1; INSERT INTO closing(zone) VALUES (1);
          INSERT INTO trees(id, tree_id, owner, trunk, app) VALUES (1, ?, 1, 1, 'a')
          """, arguments: [Data(zone.root.bytes), Data(zone.tree.bytes)])
      let rows = try SQLiteTransaction(db).children(of: [zone.root], in: ZoneKey(1), limit: .max)
      let transaction = SQLiteTransaction(db)
      transaction.commitCache.limit = 1
      let reads = Mutex(0)
      db.trace { event in
        if event.description.contains("FROM commits") { reads.withLock { $0 += 1 } }
      }
      try reading.run(transaction, rows.sorted { $0.record < $1.record }, in: zone)
      db.trace(nil)
      #expect((rows.count, reads.withLock { $0 }) == (5_000, 50))
    }
  }

  private static func puts(_ operations: [ZoneOperation], seq: Int, _ zone: ZoneID) throws -> CommitPuts {
    let commit = ZoneCommit.Fields(
      zone: zone, seq: UInt64(seq), prev: .zero, aclHash: .zero, writer: .random(), writerGen: 1, timeMs: 0,
      operations: operations)
    return try CommitPuts(zone: ZoneKey(1), receivedMs: 0, bytes: commit.unsignedBytes)
  }

  private func fill(_ db: Database, below top: NodeID, commits: Int = 1) throws {
    try db.execute(
      sql: """
        INSERT INTO zones(id, tree, root, seq, head, feed_position, acl, retired) VALUES (1, 1, x'', 0, x'', 0, 0, x'')
        """)
    // Nodes 1 to 5,000 are children of the folder; of 5,001 to 5,300 each is below the one before.
    let ids = (1...5_300).map { number in NodeID(Array(String(format: "%016d", number).utf8))! }
    let puts = ids.enumerated().map { index, id in
      ZoneOperation.Put(
        node: id, parent: index < 5_000 ? top : ids[index - 1], record: .random(), keyGen: 1, parentKeyGen: 1)
    }
    for number in 0..<commits {
      let own = stride(from: number, to: puts.count, by: commits).map { ZoneOperation.put(puts[$0]) }
      let commit = try Self.puts(own, seq: number, ZoneID(tree: .random(), root: top))
      try db.execute(
        sql: "INSERT INTO commits(feed_position, zone, seq, hash, received_ms, bytes) VALUES (?, 1, ?, x'', 0, ?)",
        arguments: [number + 1, number, Data(commit.bytes)])
    }
    try db.execute(sql: "INSERT INTO node_ids(tree, node, key) VALUES (1, ?, 6000)", arguments: [Data(top.bytes)])
    for (index, put) in puts.enumerated() {
      let (key, tag) = (index + 1, Data(put.node.bytes))
      try db.execute(
        sql: "INSERT INTO nodes(id, commit_key, put, record) VALUES (?, ?, ?, ?)",
        arguments: [key, index % commits + 1, index / commits, Data([1]) + tag])
      try db.execute(sql: "INSERT INTO node_ids(tree, node, key) VALUES (1, ?, ?)", arguments: [tag, key])
      try db.execute(
        sql: "INSERT INTO node_names(parent, tag, key) VALUES (?, ?, ?)",
        arguments: [index < 5_000 ? 6_000 : index, tag, key])
    }
  }

  @Test("S7: a decision visits one node more than it needs, and no others")
  func branchesAreNotWalkedBeyondTheLimit() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let folder = try await server.branch(200, in: &zone, token: token)
      let (id, node) = (zone.zone, folder.fields.node)
      let seen = try await server.store.read { reader in
        let key = try #require(try reader.zone(id)).key
        return try [1_000, 200, 199, 5].map { (claim: UInt64) in
          let delete = ZoneOperation.delete(node: node, record: .zero, liveDescendants: claim)
          let work = SubtreeWork(limit: .max)
          _ = try ZoneSnapshot(of: key, for: [delete], reader: reader, work: work)
          return work.nodes
        }
      }
      // A claim that is too large looks whether there are further levels, and finds none.
      #expect(seen == [200, 200, 200, 6])
    }
  }

  @Test("S7: a move that would visit too many nodes is refused, and a user who made the server visit many waits")
  func workOnBranchesIsBounded() async throws {
    try await TestServer.run {
      $0.bounds.subtreeNodesPerRequest = 100
      $0.bounds.subtreeNodesPerMinute = 60
    } _: { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (other, otherToken) = try await server.newAccount()
      var zone = account.home
      let small = try await server.branch(50, in: &zone, token: token)
      let large = try await server.branch(150, in: &zone, token: token)
      let place = try await server.branch(1, in: &zone, token: token)
      func move(_ node: NodeRecord) async throws -> Answer {
        let moved = zone.record(node.fields.node, parent: place.fields.node)
        return try await server.commit(try zone.put([moved]).body, token: token)
      }
      let refused = try await move(large)
      #expect((refused.status, refused.error?.code) == (413, .limitExceeded))
      let waits = try await move(small)
      #expect((waits.status, waits.error?.code) == (429, .tooManyRequests))
      var foreign = other.home
      try await server.put([foreign.record(.random())], in: &foreign, token: otherToken)
      server.clock.advance(ms: 120_000)
      #expect(try await move(small).status == 200)
    }
  }

  /// - Moves of large branches in four zones are sent while the store's writer is busy
  /// => the first one is taken, and the others meet its debt
  @Test("S7: concurrent requests of a user are charged one after the other")
  func workSentAtTheSameTimeIsCharged() async throws {
    try await TestServer.run {
      $0.bounds.subtreeNodesPerMinute = 60
    } _: { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var bodies: [[UInt8]] = []
      for trunk in Trunk.allCases {
        var zone = try #require(account.zones[trunk])
        let branch = try await server.branch(50, in: &zone, token: token)
        let place = try await server.branch(1, in: &zone, token: token)
        bodies.append(try zone.put([zone.record(branch.fields.node, parent: place.fields.node)]).body)
      }
      let gate = DispatchSemaphore(value: 0)
      // A store with several writers lets only writes of these zones wait.
      let subjects = Set(account.zones.values.map { WriteSubject.zone($0.zone) })
      async let writer: Void = server.store.write(subjects) { _ in gate.wait() }
      let statuses = try await withThrowingTaskGroup(of: Int.self) { group in
        for body in bodies { group.addTask { try await server.commit(body, token: token).status } }
        while try await server.send(.GET, Routes.metrics).text.contains("zdc_open_requests 4\n") == false {}
        gate.signal()
        return try await group.reduce(into: []) { $0.append($1) }
      }
      try await writer
      #expect(statuses.sorted() == [200, 429, 429, 429])
    }
  }
}

extension TestServer {
  /// A folder with that many children.
  func branch(
    _ count: Int, in zone: inout TestZone, token: [UInt8]
  ) async throws -> NodeRecord {
    let folder = zone.record(.random())
    try await put([folder], in: &zone, token: token)
    try await put(
      (0..<count).map { _ in zone.record(.random(), parent: folder.fields.node) }, in: &zone, token: token)
    return folder
  }
}
