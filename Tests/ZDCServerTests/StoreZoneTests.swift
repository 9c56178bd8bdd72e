import Testing
import ZDCProtocol

@testable import ZDCServer

/// How every metadata store answers about trees, members, records and uploads: a part of ``StoreContractTests``.
@Suite struct StoreZoneTests {
  typealias Maker = StoreContractTests.Maker
  private typealias World = StoreCommitTests.World
  static let stores = StoreContractTests.stores

  private func withWorld(_ maker: Maker, _ body: @Sendable (World) async throws -> Void) async throws {
    try await StoreContractTests.withStore(maker) { store in
      try await body(try await World(store, try TestAccount()))
    }
  }

  @Test(arguments: stores) func treesAreInTheOrderOfTheirTrunks(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let (account, user, stranger) = (world.account, world.account.userID, StoreContractTests.user(1).id)
      let zones = Trunk.allCases.compactMap { account.zones[$0] }
      try await world.read { reader, key throws in
        let trees = zip(Trunk.allCases, zones).map { trunk, zone in
          TreeRow(tree: zone.zone.tree, trunk: trunk, appTreeID: TestAccount.app)
        }
        #expect(try reader.trees(of: user) == trees && reader.trees(of: stranger).isEmpty)
        #expect(try reader.genesisCommits(owner: user, appTreeID: TestAccount.app) == zones.map(\.headHash))
        #expect(try reader.genesisCommits(owner: user, appTreeID: "org.example.other").isEmpty)
        #expect(try reader.genesisCommits(owner: stranger, appTreeID: TestAccount.app).isEmpty)
        #expect(try reader.treeID(of: key) == world.zone.tree && reader.treeID(of: ZoneKey(.max)) == nil)
        #expect(try [9, 2, 0].map { try reader.zoneCount(of: user, limit: $0) } == [4, 2, 0])
        #expect(try reader.zoneCount(of: stranger, limit: 9) == 0)
      }
    }
  }

  @Test(arguments: stores) func theNewestCommitSaysWhenItWasReceived(_ maker: Maker) async throws {
    try await StoreContractTests.withStore(maker) { store in
      #expect(try await store.read { try $0.lastReceivedMs() } == nil)
      let world = try await World(store, try TestAccount())
      for time in [40, 50] as [UInt64] {
        try await world.commit(at: time) { _, _, _ in }
        #expect(try await store.read { try $0.lastReceivedMs() } == time)
      }
    }
  }

  /// - A commit without a list, then one with a list, then one without
  @Test(arguments: stores) func theListBeforeACommitIsTheNewestOne(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let home = world.account.home
      let list = try home.list(adding: [home.member(StoreContractTests.user(1).id).entry])
      try await world.commit { _, _, _ in }
      try await world.commit { _, _, delta in delta.change(to: ZoneDelta.ListChange(acl: list, grants: [])) }
      try await world.commit { _, _, _ in }
      try await world.read { reader, zone throws in
        let lists = try [0, 1, 2, 3, 9].map { try reader.list(before: $0, of: zone) }
        #expect(lists == [nil, home.acl.bytes, home.acl.bytes, list.bytes, list.bytes])
        #expect(try reader.list(before: 9, of: ZoneKey(.max)) == nil)
      }
    }
  }

  /// - A list names three users, the next one names one of them
  /// => members and former members are counted up to the limit
  @Test(arguments: stores) func membersAreCountedUpToALimit(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let (home, user, users) = (
        world.account.home, world.account.userID, (1...3).map { StoreContractTests.user($0).id }
      )
      for count in [3, 1] {
        let list = try home.list(adding: users.prefix(count).map { home.member($0).entry })
        try await world.commit { _, _, delta in delta.change(to: ZoneDelta.ListChange(acl: list, grants: [])) }
      }
      try await world.read { reader, _ throws in
        // The owner is a member of all four zones.
        let own = MemberCounts(listed: 4, removed: 0, members: 5, formerMembers: 2)
        #expect(try reader.memberCounts(of: user, limit: 9) == own)
        let limited = MemberCounts(listed: 1, removed: 0, members: 1, formerMembers: 1)
        #expect(try reader.memberCounts(of: user, limit: 1) == limited)
        let member = MemberCounts(listed: 1, removed: 0, members: 0, formerMembers: 0)
        #expect(try reader.memberCounts(of: users[0], limit: 9) == member)
        let former = MemberCounts(listed: 0, removed: 1, members: 0, formerMembers: 0)
        #expect(try reader.memberCounts(of: users[2], limit: 9) == former)
      }
    }
  }

  /// - A user accepts three zones of another user at three times, and gives one up, twice
  @Test(arguments: stores) func membershipsAreInTheOrderOfTheirAcceptance(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let guest = try await World(world.store, try TestAccount()).account.userID
      let zones = [Trunk.prefs, .home, .outbox].compactMap { world.account.zones[$0]?.zone }
      let subjects = Set([.account(guest)] + zones.map { .zone($0) } as [WriteSubject])
      try await world.store.write(subjects) { tx throws in
        for (zone, time) in zip(zones, [7, 5, 6] as [UInt64]) {
          try tx.putMembership(of: guest, in: try #require(try tx.zone(zone)).key, now: time)
        }
      }
      let rows = [1, 2, 0].map { MembershipRow(zone: zones[$0], acceptedMs: [7, 5, 6][$0]) }
      #expect(try await world.store.read { try $0.memberships(of: guest) } == rows)
      for _ in 0..<2 {
        try await world.store.write(subjects) { tx throws in
          try tx.removeMembership(of: guest, in: try #require(try tx.zone(zones[2])).key)
        }
      }
      #expect(try await world.store.read { try $0.memberships(of: guest) } == [rows[0], rows[2]])
      #expect(try await world.store.read { try $0.memberships(of: world.account.userID) }.isEmpty)
    }
  }

  /// - A node is put, and put again
  /// => both records are found by name, the live one by its key as well; an unknown name is left out
  @Test(arguments: stores) func recordsAreFoundByNameAndByKey(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let node = NodeID.random()
      let first = world.put(node)
      try await world.commit(at: 10) { _, _, delta in delta.puts = [first] }
      let second = world.put(node, seq: 2)
      try await world.commit(at: 20) { reader, zone, delta throws in
        var put = second
        put.replaced = try reader.nodes([node], in: zone.key).first { $0.leaf.node == node }
        delta.puts = [put]
      }
      let names = [first, second].map { RecordName(node: node, hash: $0.leaf.record) }
      let strange = RecordName(node: .random(), hash: names[0].hash)
      let prefs = try #require(world.account.zones[.prefs]).zone
      try await world.read { reader, zone throws in
        let found = try reader.records(names + [strange], in: zone).mapValues { try $0.get() }
        #expect(found.mapValues(\.bytes) == [names[0]: first.record.bytes, names[1]: second.record.bytes])
        #expect(names.map { found[$0]?.replacedMs } == [20, nil])
        let other = try #require(try reader.zone(prefs)).key
        #expect(try reader.records(names, in: other).isEmpty && reader.records([], in: zone).isEmpty)
        let live = try #require(try reader.nodes([node], in: zone).first { $0.leaf.node == node })
        #expect(try reader.records([live.record, .max]).mapValues(\.bytes) == [live.record: second.record.bytes])
        let usage = try reader.usage(of: world.account.userID)
        #expect(try reader.recordBytes(of: world.account.userID) == usage.recordBytes + usage.logBytes)
      }
    }
  }

  /// - Parts of an upload arrive out of order, one of them twice, then the upload is complete
  @Test(arguments: stores) func aTicketIsUpdated_andHasItsPartsInOrder(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let (blob, root) = (BlobID.random(), ContentRoot.random())
      let (before, after) = try await world.store.write([.upload(blob)]) { tx throws in
        var row = BlobRow(
          id: blob, zone: try #require(try tx.zone(world.zone)).key, node: .random(), cipherLength: 20 << 20,
          state: .receiving, isInline: false, owner: world.account.userID, contentRoot: nil, touchedMs: 5)
        row.key = try tx.insertTicket(row)
        for (index, hash) in [(2, 2), (0, 0), (1, 9), (1, 1)] as [(Int, UInt8)] {
          try tx.insertPart(index, hash: [UInt8](repeating: hash, count: 32), of: row, now: 6)
        }
        let before = row
        (row.state, row.contentRoot, row.touchedMs) = (.complete, root, 7)
        try tx.updateTicket(row)
        return (before, row)
      }
      try await world.read { reader, _ throws in
        let row = try #require(try reader.file(blob))
        #expect((row.key, row.state, row.contentRoot, row.touchedMs) == (after.key, .complete, root, 7))
        #expect(row.owner == before.owner && row.node == before.node)
        #expect(try reader.parts(of: row).map(\.index) == [0, 1, 2])
        #expect(try reader.parts(of: row).map { $0.hash.bytes[0] } == [0, 1, 2])
        #expect(try reader.file(.random()) == nil)
      }
    }
  }

  /// - The probe of free space is repeated, and released twice; the store is compacted
  @Test(arguments: stores) func probesAndCompactionChangeNoData(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      let before = try await world.store.read { try $0.usage(of: world.account.userID) }
      for _ in 0..<2 { try await world.store.write([.upkeep]) { try $0.probeFreeSpace() } }
      for _ in 0..<2 { try await world.store.write([.upkeep]) { try $0.releaseProbe() } }
      try await world.store.compact()
      #expect(try await world.store.read { try $0.usage(of: world.account.userID) } == before)
      #expect(try await world.commit { _, _, _ in }.seq == 1)
    }
  }
}
