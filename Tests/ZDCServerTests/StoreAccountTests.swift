import Testing
import ZDCProtocol

@testable import ZDCServer

/// How every metadata store keeps accounts, devices and sessions: a part of ``StoreContractTests``.
@Suite struct StoreAccountTests {
  typealias Maker = StoreContractTests.Maker
  static let stores = StoreContractTests.stores

  private static func user(_ number: UInt8) -> UserRow { StoreContractTests.user(number) }

  private static func device(_ number: UInt8, at createdMs: UInt64) -> DeviceRow {
    DeviceRow(id: DeviceID([UInt8](repeating: number, count: 16))!, key: [number], createdMs: createdMs)
  }

  private static func session(
    _ number: UInt8, of user: UserRow, _ device: DeviceRow, at createdMs: UInt64, until expiresMs: UInt64 = 100
  ) -> SessionRow {
    SessionRow(tokenHash: [number], user: user.id, device: device.id, createdMs: createdMs, expiresMs: expiresMs)
  }

  /// A store with these accounts.
  private func withStore(
    _ maker: Maker, _ users: [UserRow], _ body: (any MetadataStore) async throws -> Void
  ) async throws {
    try await StoreContractTests.withStore(maker) { store in
      try await store.write(Set(users.map { .account($0.id) })) { tx throws in
        for user in users { try tx.insertUser(user) }
      }
      try await body(store)
    }
  }

  // MARK: - Accounts

  @Test(arguments: stores) func accountsAreFoundByIDAndByLookupID_andListedInOrder(_ maker: Maker) async throws {
    let rows = [3, 1, 2].map { Self.user($0) }
    try await withStore(maker, rows) { store in
      try await store.read { reader throws in
        let absent = Self.user(9)
        #expect(try reader.users([rows[0].id, absent.id, rows[1].id]) == [rows[0].id: rows[0], rows[1].id: rows[1]])
        #expect(try reader.users([]).isEmpty)
        #expect(try reader.user(lookup: rows[2].lookup) == rows[2])
        #expect(try reader.user(lookup: absent.lookup) == nil)
        #expect(try reader.users(after: nil, limit: 2) == [rows[1], rows[2]])
        #expect(try reader.users(after: rows[2].id, limit: 2) == [rows[0]])
        #expect(try reader.users(after: rows[0].id, limit: 2).isEmpty)
        #expect(try reader.users(after: nil, limit: 0).isEmpty)
      }
    }
  }

  /// - Every column that an update may change gets another value, then the optional ones get none
  @Test(arguments: stores) func anUpdateChangesOneAccount(_ maker: Maker) async throws {
    let (row, other) = (Self.user(1), Self.user(2))
    try await withStore(maker, [row, other]) { store in
      var changed = row
      (changed.lookup, changed.loginKey) = (Self.user(3).lookup, [3, 3])
      (changed.linkSeq, changed.linkHead, changed.signGen, changed.encGen) = (4, Self.user(5).linkHead, 6, 7)
      (changed.closedMs, changed.suspendedMs, changed.quotaBytes) = (8, 9, 0)
      for next in [changed, row] {
        try await store.write([.account(row.id)]) { try $0.updateUser(next) }
        #expect(try await store.read { try $0.user(row.id) } == next)
        #expect(try await store.read { try $0.user(lookup: next.lookup) } == next)
      }
      let given = changed.lookup
      #expect(try await store.read { try $0.user(lookup: given) } == nil)
      #expect(try await store.read { try $0.user(other.id) } == other)
    }
  }

  @Test(arguments: stores) func anUpdateInsertsNoAccount(_ maker: Maker) async throws {
    try await withStore(maker, []) { store in
      let absent = Self.user(1)
      try await store.write([.account(absent.id)]) { try $0.updateUser(absent) }
      #expect(try await store.read { try $0.user(absent.id) } == nil)
    }
  }

  /// - An account is inserted with the ID, and one with the lookup ID, of another account; an invite is used twice
  /// => each of these writes fails, and changes nothing
  @Test(arguments: stores) func noTwoRowsHaveOneKey(_ maker: Maker) async throws {
    let row = Self.user(1)
    try await withStore(maker, [row]) { store in
      try await store.write([.account(row.id)]) { try $0.useInvite([1], user: row.id, now: 5) }
      var (sameID, sameLookup) = (Self.user(2), Self.user(3))
      (sameID.id, sameLookup.lookup) = (row.id, row.lookup)
      for second in [sameID, sameLookup] {
        await #expect(throws: (any Error).self) {
          try await store.write([.account(second.id)]) { try $0.insertUser(second) }
        }
      }
      await #expect(throws: (any Error).self) {
        try await store.write([.account(row.id)]) { tx throws in
          try tx.setKeyring([1], of: row.id)
          try tx.useInvite([1], user: row.id, now: 6)
        }
      }
      #expect(try await store.read { try $0.users(after: nil, limit: 9) } == [row])
      #expect(try await store.read { try $0.keyring(of: row.id) } == nil)
    }
  }

  @Test(arguments: stores) func anInviteIsUsedOnceItsWriteEnds(_ maker: Maker) async throws {
    let row = Self.user(1)
    try await withStore(maker, [row]) { store in
      try await store.write([.account(row.id)]) { tx throws in
        #expect(try !tx.isInviteUsed([1]))
        try tx.useInvite([1], user: row.id, now: 5)
        #expect(try tx.isInviteUsed([1]))
      }
      #expect(try await store.read { [try $0.isInviteUsed([1]), try $0.isInviteUsed([2])] } == [true, false])
    }
  }

  @Test(arguments: stores) func theKeyringIsTheLastOneThatWasSet(_ maker: Maker) async throws {
    let (row, other) = (Self.user(1), Self.user(2))
    try await withStore(maker, [row, other]) { store in
      #expect(try await store.read { try $0.keyring(of: row.id) } == nil)
      for keyring in [[1], [2, 2]] as [[UInt8]] {
        try await store.write([.account(row.id)]) { try $0.setKeyring(keyring, of: row.id) }
        #expect(try await store.read { try $0.keyring(of: row.id) } == keyring)
      }
      #expect(
        try await store.read { [try $0.keyring(of: other.id), try $0.keyring(of: Self.user(9).id)] } == [nil, nil])
    }
  }

  /// - A link with a new key for encryption alone, and one with a new key for signatures
  /// => the chain is in order; each generation has the key that its first link brought
  @Test(arguments: stores) func aChainHasItsLinksInOrder(_ maker: Maker) async throws {
    let row = Self.user(1)
    try await withStore(maker, [row]) { store in
      let (account, newKey) = (try TestAccount(), SigningKey())
      let links = [account.genesis, try account.encryptionRotation()]
      let other = try account.rotation(to: newKey)
      try await store.write([.account(row.id)]) { tx in for link in links { try tx.appendLink(link, to: row.id) } }
      try await store.read { reader throws in
        let absent = Self.user(9).id
        #expect(try reader.links(of: row.id) == links.map(\.bytes))
        #expect(try (0...2).map { try reader.link($0, of: row.id) } == [links[0].bytes, links[1].bytes, nil])
        #expect(try reader.chainBytes(of: row.id) == links[0].bytes.count + links[1].bytes.count)
        #expect(try reader.links(after: [ChainPosition(user: row.id, count: 1)], limit: 0) == [links[1].bytes])
        #expect(try reader.signKey(user: row.id, generation: 1) == account.signKey.publicBytes)
        #expect(try reader.signKey(user: row.id, generation: other.signGen) == nil)
        #expect(try reader.links(of: absent).isEmpty && reader.chainBytes(of: absent) == 0)
        #expect(try reader.link(0, of: absent) == nil && reader.signKey(user: absent, generation: 1) == nil)
      }
    }
  }

  /// - Two links that bring a different key for one generation
  @Test(arguments: stores) func aGenerationKeepsItsFirstKey(_ maker: Maker) async throws {
    let row = Self.user(1)
    try await withStore(maker, [row]) { store in
      let account = try TestAccount()
      let keys = [SigningKey(), SigningKey()]
      try await store.write([.account(row.id)]) { tx throws in
        try tx.appendLink(account.genesis, to: row.id)
        try tx.appendLink(try account.rotation(to: keys[0]), to: row.id)
        try tx.appendLink(try account.rotation(to: keys[1], seq: 2), to: row.id)
      }
      #expect(try await store.read { try $0.signKey(user: row.id, generation: 1) } == account.signKey.publicBytes)
      #expect(try await store.read { try $0.signKey(user: row.id, generation: 2) } == keys[0].publicBytes)
    }
  }

  // MARK: - Devices

  @Test(arguments: stores) func devicesAreInTheOrderOfTheirRegistration(_ maker: Maker) async throws {
    let (row, other) = (Self.user(1), Self.user(2))
    try await withStore(maker, [row, other]) { store in
      let devices = [Self.device(9, at: 5), Self.device(4, at: 6), Self.device(5, at: 6), Self.device(1, at: 7)]
      var again = devices[1]
      again.key = [44]
      try await store.write([.account(row.id)]) { [again] tx throws in
        for device in [devices[3], devices[2], devices[1], devices[0], again] { try tx.putDevice(device, of: row.id) }
      }
      try await store.read { [again] reader throws in
        #expect(try reader.devices(of: row.id) == [devices[0], again, devices[2], devices[3]])
        #expect(try reader.device(again.id, of: row.id) == again)
        #expect(try reader.device(again.id, of: other.id) == nil && reader.devices(of: other.id).isEmpty)
        #expect(try reader.device(Self.device(8, at: 0).id, of: row.id) == nil)
      }
    }
  }

  /// - Two users have a device of the same ID, with a session each
  /// => the removal of one leaves the other; a device that is absent is removed without an error
  @Test(arguments: stores) func aDeviceIsRemovedWithItsSessions(_ maker: Maker) async throws {
    let (row, other) = (Self.user(1), Self.user(2))
    try await withStore(maker, [row, other]) { store in
      let (device, kept) = (Self.device(1, at: 5), Self.device(2, at: 5))
      let sessions = [
        Self.session(1, of: row, device, at: 6), Self.session(2, of: row, kept, at: 6),
        Self.session(3, of: other, device, at: 6),
      ]
      try await store.write([.account(row.id), .account(other.id)]) { tx throws in
        for user in [row, other] { for device in [device, kept] { try tx.putDevice(device, of: user.id) } }
        for session in sessions { try tx.insertSession(session) }
      }
      for _ in 0..<2 { try await store.write([.account(row.id)]) { try $0.removeDevice(device.id, of: row.id) } }
      try await store.read { reader throws in
        #expect(try reader.devices(of: row.id) == [kept] && reader.devices(of: other.id) == [device, kept])
        #expect(try reader.sessions(of: row.id) == [sessions[1]] && reader.sessions(of: other.id) == [sessions[2]])
        #expect(try reader.session(tokenHash: [1]) == nil)
      }
    }
  }

  /// - Devices without a session, with an old one beside a new one, and with one of between
  /// => those that no login has used lately are removed first, with their sessions
  @Test(arguments: stores) func theDevicesWithTheOldestLoginsAreTrimmed(_ maker: Maker) async throws {
    let row = Self.user(1)
    try await withStore(maker, [row]) { store in
      let (busy, quiet) = (Self.device(1, at: 1), Self.device(2, at: 4))
      let (second, first) = (Self.device(3, at: 3), Self.device(4, at: 2))
      try await store.write([.account(row.id)]) { tx throws in
        for device in [busy, quiet, second, first] { try tx.putDevice(device, of: row.id) }
        for (number, at) in [(1, 10), (2, 30)] {
          try tx.insertSession(Self.session(UInt8(number), of: row, busy, at: UInt64(at)))
        }
        try tx.insertSession(Self.session(3, of: row, quiet, at: 20))
      }
      func trimmed(_ count: Int) async throws -> [DeviceID] {
        try await store.write([.account(row.id)]) { try $0.trimDevices(of: row.id, keeping: count) }
      }
      #expect(try await trimmed(4).isEmpty)
      #expect(try await trimmed(2) == [first.id, second.id])
      #expect(try await trimmed(1) == [quiet.id])
      #expect(try await store.read { try $0.devices(of: row.id) } == [busy])
      #expect(try await store.read { try $0.sessions(of: row.id).map(\.tokenHash) } == [[1], [2]])
      #expect(try await trimmed(0) == [busy.id])
      #expect(try await store.read { try $0.sessions(of: row.id) }.isEmpty)
      let absent = Self.user(9).id
      #expect(try await store.write([.account(absent)]) { try $0.trimDevices(of: absent, keeping: 0) }.isEmpty)
    }
  }

  // MARK: - Sessions

  /// - One session is removed, twice; two expire
  /// => one that expires at this time is removed, one that expires later is not
  @Test(arguments: stores) func sessionsEnd(_ maker: Maker) async throws {
    let (row, other) = (Self.user(1), Self.user(2))
    try await withStore(maker, [row, other]) { store in
      let device = Self.device(1, at: 1)
      let sessions = [
        Self.session(1, of: row, device, at: 8, until: 50), Self.session(2, of: row, device, at: 7, until: 51),
        Self.session(3, of: row, device, at: 6, until: 52), Self.session(4, of: other, device, at: 6, until: 50),
      ]
      try await store.write([.account(row.id), .account(other.id)]) { tx throws in
        for session in sessions { try tx.insertSession(session) }
      }
      #expect(try await store.read { try $0.session(tokenHash: [1]) } == sessions[0])
      #expect(try await store.read { try $0.session(tokenHash: [9]) } == nil)
      #expect(try await store.read { try $0.sessions(of: row.id) } == [sessions[2], sessions[1], sessions[0]])
      for _ in 0..<2 { try await store.write([.account(row.id)]) { try $0.removeSession(tokenHash: [3]) } }
      #expect(try await store.read { try $0.sessions(of: row.id) } == [sessions[1], sessions[0]])
      try await store.write([.upkeep]) { try $0.removeExpiredSessions(now: 50) }
      #expect(try await store.read { try $0.sessions(of: row.id) } == [sessions[1]])
      #expect(try await store.read { try $0.sessions(of: other.id) }.isEmpty)
    }
  }

  @Test(arguments: stores) func theNewestSessionsOfADeviceAreKept(_ maker: Maker) async throws {
    let row = Self.user(1)
    try await withStore(maker, [row]) { store in
      let (device, other) = (Self.device(1, at: 1), Self.device(2, at: 1))
      let sessions = [
        Self.session(1, of: row, device, at: 5, until: 60), Self.session(2, of: row, device, at: 6, until: 60),
        Self.session(3, of: row, device, at: 7, until: 50), Self.session(4, of: row, other, at: 1, until: 40),
      ]
      try await store.write([.account(row.id)]) { tx in for session in sessions { try tx.insertSession(session) } }
      func trimmed(_ count: Int) async throws -> Set<[UInt8]> {
        try await store.write([.account(row.id)]) { tx throws in
          Set(try tx.trimSessions(of: row.id, device: device.id, keeping: count))
        }
      }
      #expect(try await trimmed(3).isEmpty)
      #expect(try await trimmed(1) == [[1], [3]])
      #expect(try await store.read { try $0.sessions(of: row.id) } == [sessions[3], sessions[1]])
      #expect(try await trimmed(0) == [[2]])
    }
  }

  // MARK: - Closed accounts

  /// - An account is closed at 10; another one is open
  /// => its data is removed in small steps once the time is over, its chain and its row stay
  @Test(arguments: stores) func aClosedAccountLosesAllButItsChain(_ maker: Maker) async throws {
    try await StoreContractTests.withStore(maker) { store in
      let (world, open) = (
        try await StoreCommitTests.World(store, try TestAccount()),
        try await StoreCommitTests.World(store, try TestAccount())
      )
      let (user, device) = (world.account.userID, Self.device(1, at: 1))
      try await world.commit { _, _, delta in delta.puts = (0..<3).map { _ in world.put(.random(), bytes: 150) } }
      try await store.write([.account(user)]) { tx throws in
        var row = try #require(try tx.user(user))
        try tx.putDevice(device, of: user)
        try tx.insertSession(Self.session(1, of: row, device, at: 5))
        #expect(try tx.setHandle(Handle("alice"), of: user, now: 5, freeBefore: 0))
        row.closedMs = 10
        try tx.updateUser(row)
      }
      func step(_ closedBefore: UInt64) async throws -> Bool {
        try await store.write([.upkeep]) { try $0.removeClosedAccounts(closedBefore: closedBefore, limit: 2) }.isMore
      }
      #expect(try await !step(10))
      #expect(try await store.read { try $0.devices(of: user) } == [device])
      while try await step(11) {}
      try await store.read { reader throws in
        #expect(try reader.user(user)?.closedMs == 10)
        #expect(try reader.links(of: user) == [world.account.genesis.bytes])
        #expect(try reader.user(lookup: world.account.lookupID) == nil && reader.keyring(of: user) == nil)
        #expect(try reader.devices(of: user).isEmpty && reader.sessions(of: user).isEmpty)
        #expect(try reader.handles(of: user).isEmpty && reader.handles(beginning: "alice", limit: 9).isEmpty)
        #expect(try reader.trees(of: user).isEmpty && reader.zone(world.zone) == nil)
        #expect(try reader.contentBytes(of: user) == 0 && reader.recordBytes(of: user) == 0)
        #expect(try reader.trees(of: open.account.userID).count == 4 && reader.zone(open.zone) != nil)
      }
    }
  }
}
