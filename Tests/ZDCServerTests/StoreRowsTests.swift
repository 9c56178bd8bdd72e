import Testing
import ZDCProtocol

@testable import ZDCServer

/// How stores hand all their rows to another one: the contract of ``CopyableStore``.
@Suite struct StoreRowsTests {
  typealias Maker = StoreContractTests.Maker
  static let stores = StoreContractTests.stores.filter { $0.testDescription != "memory" }

  /// A store with nodes, content, a message, and uploads of which one has not ended.
  private struct World {
    let store: any CopyableStore
    let files: [BlobID]

    init(_ store: any MetadataStore) async throws {
      self.store = try #require(store as? any CopyableStore)
      var world = try await StoreSplitTests.World(store, branch: 3)
      let content = TestZone.Content()
      try await world.put([world.home.record(.random(), content: content.field())], contents: [content])
      let (home, user) = (world.home.zone, world.account.userID)
      let ids = (0..<4).map { _ in BlobID.random() }.sorted { $0.bytes.lexicographicallyPrecedes($1.bytes) }
      try await store.write(Set(ids.map { .upload($0) })) { tx throws in
        let zone = try #require(try tx.zone(home)).key
        for (index, id) in ids.enumerated() {
          _ = try tx.insertTicket(
            BlobRow(
              id: id, zone: zone, node: .random(), cipherLength: 100_000, state: index == 3 ? .receiving : .complete,
              isInline: false, owner: user, contentRoot: index == 3 ? nil : .random(), touchedMs: 5))
        }
      }
      files = ids
    }

    func read<T: Sendable>(_ body: @escaping @Sendable (any StoredRowReader) throws -> T) async throws -> T {
      try await store.readRows(body)
    }
  }

  private func withWorld(_ maker: Maker, _ body: @Sendable (World) async throws -> Void) async throws {
    try await StoreContractTests.withStore(maker) { try await body(try await World($0)) }
  }

  @Test(arguments: stores) func rowsComeInPagesInTheOrderOfTheirKeys(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      try await world.read { reader throws in
        for table in StoredTable.allCases {
          let all = try reader.rows(of: table, after: nil, limit: 1_000)
          var pages: [StoredRow] = []
          while let next = try reader.rows(of: table, after: pages.last?.key(in: table), limit: 1).first {
            pages.append(next)
          }
          #expect(pages == all && Set(all.map { $0.key(in: table) }).count == all.count, "\(table)")
          #expect(all.allSatisfy { $0.values.count == table.columns.count }, "\(table)")
          #expect(try reader.count(of: table) == UInt64(all.count), "\(table)")
          if all.isEmpty { #expect(try reader.lastKey(of: table) == nil, "\(table)") }
        }
        let last = try #require(try reader.lastKey(of: .commits))
        #expect(try reader.rows(of: .commits, after: nil, limit: 99).last?.key(in: .commits) == last)
        #expect(try reader.rows(of: .commits, after: last, limit: 99).isEmpty)
      }
    }
  }

  /// => small content is no file; an upload that has not ended has no root
  @Test(arguments: stores) func filesAreInTheOrderOfTheirIDs(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      try await world.read { reader throws in
        let all = try reader.files(after: nil, limit: 99)
        #expect(all.map(\.id) == world.files && all.allSatisfy { $0.cipherLength == 100_000 })
        #expect(all.map { $0.root == nil } == [false, false, false, true])
        #expect(try reader.files(after: nil, limit: 2).map(\.id) == Array(world.files.prefix(2)))
        #expect(try reader.files(after: world.files[1], limit: 1).map(\.id) == [world.files[2]])
        #expect(try reader.files(after: world.files[3], limit: 9).isEmpty)
        #expect(
          try reader.knownFiles([world.files[0], .random(), world.files[3]]) == [world.files[0], world.files[3]])
        #expect(try reader.knownFiles([]).isEmpty)
      }
    }
  }

  /// - A message waits, and is removed
  /// => its number counts, although no row has it; the target of a copy gives it to no message either
  @Test(arguments: stores, stores) func theNumbersOfMessagesContinue(_ maker: Maker, _ other: Maker) async throws {
    try await StoreContractTests.withStore(maker) { source in
      let account = try TestAccount()
      _ = try await StoreCommitTests.World(source, account)
      let rows = try #require(source as? any CopyableStore)
      #expect(try await rows.readRows { try $0.lastEnvelope() } == 0)
      for _ in 0..<3 { #expect(try await Self.cursorOfAMessage(account, source) > 0) }
      let last = try await rows.readRows { try $0.lastEnvelope() }
      #expect(try await rows.readRows { try $0.rows(of: .envelopes, after: nil, limit: 9) }.isEmpty)
      try await StoreContractTests.withStore(other) { store in
        let target = try #require(store as? any CopyableStore)
        let copy = StoreCopy(from: rows, to: target)
        #expect(try await copy.copyRows().isEmpty)
        try await copy.finish()
        #expect(try await copy.differences() == [])
        #expect(try await target.readRows { try $0.lastEnvelope() } == last)
        #expect(try await Self.cursorOfAMessage(account, store) == UInt64(last) + 1)
      }
    }
  }

  /// Stores a message, removes it, and returns its number.
  private static func cursorOfAMessage(_ account: TestAccount, _ store: any MetadataStore) async throws -> UInt64 {
    let zone = try #require(account.zones[.inbox]).zone
    return try await store.write([.zone(zone)]) { tx throws in
      let inbox = try #require(try tx.zone(zone)).key
      let envelope = MessageEnvelope(
        id: .random(), recipient: account.userID, inbox: zone.tree, recipientEncGen: 1, sealed: randomBytes(100))
      let row = WaitingMessage(
        cursor: 0, sender: account.userID, messageID: envelope.id, length: envelope.bytes.count, receivedMs: 1,
        isRequest: false)
      try tx.insertEnvelope(envelope, row: row, in: inbox)
      let cursor = try tx.newestEnvelope(of: account.userID) ?? 0
      try tx.removeEnvelopes(ofNodes: [NodeID(message: envelope.id, from: account.userID)], in: inbox)
      return cursor
    }
  }

  /// - A store is filled from each of the stores, in pages of two rows
  @Test(arguments: stores, stores) func aFilledStoreHasTheSameRows(_ maker: Maker, _ other: Maker) async throws {
    try await withWorld(maker) { world in
      try await StoreContractTests.withStore(other) { store in
        let target = try #require(store as? any CopyableStore)
        let copy = StoreCopy(from: world.store, to: target, pageRows: 2)
        #expect(try await copy.copyRows().isEmpty)
        try await copy.finish()
        #expect(try await copy.differences() == [])
        #expect(
          try await target.readRows { try $0.files(after: nil, limit: 9).map(\.id) } == Array(world.files.prefix(3)))
      }
    }
  }

  /// - A store begins to be filled, twice from one source and then from another
  /// => it accepts the first source only; a store with data accepts none
  @Test(arguments: stores) func onlyAnEmptyStoreIsFilled_andFromOneSource(_ maker: Maker) async throws {
    try await withWorld(maker) { world in
      await #expect(throws: StoreNotEmpty.self) { try await world.store.fill { try $0.beginFilling(from: [1]) } }
      let users = try await world.read { try $0.rows(of: .users, after: nil, limit: 9) }
      try await StoreContractTests.withStore(maker) { store in
        let target = try #require(store as? any CopyableStore)
        for _ in 0..<2 { try await target.fill { try $0.beginFilling(from: [1]) } }
        try await target.fill { writer throws in
          #expect(try writer.insert([], into: .users).isEmpty && writer.insert(users, into: .users).isEmpty)
        }
        try await target.fill { try $0.beginFilling(from: [1]) }
        await #expect(throws: StoreNotEmpty.self) { try await target.fill { try $0.beginFilling(from: [2]) } }
        #expect(try await target.readRows { try $0.rows(of: .users, after: nil, limit: 9) } == users)
        try await target.fill { try $0.finishFilling(lastEnvelope: 0) }
      }
    }
  }
}
