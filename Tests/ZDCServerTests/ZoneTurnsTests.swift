import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCServer

/// Requests in busy zones: held until their turn comes, bounded, and answered over the wire. ``ZoneQueueTests`` has the
/// rule.
@Suite struct ZoneTurnsTests {
  private let zone = ZoneID(tree: .zero, root: .random())
  private let a = device()
  private let b = device()
  private let c = device()

  private static func device() -> ZoneWriter {
    ZoneWriter(user: UserID([UInt8](repeating: 1, count: 32))!, device: .random())
  }

  private func turns(holdMs: UInt64 = 600_000) -> ZoneTurns {
    ZoneTurns(clock: ServerClock { 0 }, holdMs: holdMs)
  }

  private func hold(
    _ device: ZoneWriter, bytes: Int = 1, in turns: ZoneTurns
  ) async -> Task<Void, any Error> {
    let held = turns.heldCount
    let task = Task { [zone] in try await turns.enter([zone], as: device, bytes: bytes) }
    while turns.heldCount == held { await Task.yield() }
    return task
  }

  @Test func aRequestOutOfTurn_isHeldUntilItsTurn() async throws {
    let turns = turns()
    for _ in 0..<ZoneQueue.losses { turns.ended(.lost, in: [zone], of: a) }
    let second = await hold(b, in: turns)
    let third = await hold(c, in: turns)
    try await turns.enter([zone], as: a, bytes: 1)
    turns.ended(.committed, in: [zone], of: a)
    try await second.value
    #expect(turns.heldCount == 1)
    turns.ended(.committed, in: [zone], of: b)
    try await third.value
    #expect(turns.heldCount == 0)
  }

  @Test func aRequestThatCannotBeHeld_keepsItsPlace() async throws {
    let turns = turns()
    for _ in 0..<ZoneQueue.losses { turns.ended(.lost, in: [zone], of: a) }
    let big = await hold(b, bytes: 32 << 20, in: turns)
    await #expect(throws: ServerError.self) { try await turns.enter([zone], as: c, bytes: 1) }
    // A second request of the same device as well.
    await #expect(throws: ServerError.self) { try await turns.enter([zone], as: b, bytes: 0) }
    turns.ended(.committed, in: [zone], of: a)
    try await big.value
    turns.ended(.committed, in: [zone], of: b)
    try await turns.enter([zone], as: c, bytes: 1)
  }

  @Test func heldRequestsAreBounded() async throws {
    let turns = turns()
    let zones = try (UInt8(0)..<32).map { number in
      ZoneID(tree: try #require(TreeID([UInt8](repeating: number, count: 32))), root: .zero)
    }
    for zone in zones { for _ in 0..<ZoneQueue.losses { turns.ended(.lost, in: [zone], of: a) } }
    let waiting = (0..<1_024).map { number in
      Task { try await turns.enter([zones[number % zones.count]], as: Self.device(), bytes: 1) }
    }
    while turns.heldCount < waiting.count { await Task.yield() }
    await #expect(throws: ServerError.self) { try await turns.enter([zones[0]], as: Self.device(), bytes: 1) }
    turns.close()
    for task in waiting { await #expect(throws: ServerError.self) { try await task.value } }
  }

  @Test func aServerThatStops_holdsNoRequest() async throws {
    let turns = turns()
    for _ in 0..<ZoneQueue.losses { turns.ended(.lost, in: [zone], of: a) }
    let held = await hold(b, in: turns)
    turns.close()
    let error = await #expect(throws: ServerError.self) { try await held.value }
    #expect(error?.code == .shuttingDown)
  }

  /// - More zones than there is room for
  /// => a zone in which something happens is not forgotten for others
  @Test func zonesAreBounded() async throws {
    let now = Mutex<UInt64>(0)
    let turns = ZoneTurns(clock: ServerClock { now.withLock { $0 } }, holdMs: 0)
    for _ in 0..<ZoneQueue.losses { turns.ended(.lost, in: [zone], of: a) }
    for _ in 0..<2 * ZoneTurns.zones {
      now.withLock { $0 += 1 }
      turns.ended(.lost, in: [ZoneID(tree: .zero, root: .random())], of: b)
      await #expect(throws: ServerError.self) { try await turns.enter([zone], as: c, bytes: 1) }
    }
    #expect(turns.remembered.zones == ZoneTurns.zones)
    #expect(turns.isBusy(zone))
  }

  @Test func aChallengeIsUsedOnce() async throws {
    let coordination = LocalCoordination(clock: ServerClock { 0 }, bounds: Configuration.Bounds())
    #expect(coordination.use(nonce: [1], expiresMs: 1_100, now: 1_000))
    #expect(!coordination.use(nonce: [1], expiresMs: 1_100, now: 1_000))
    for number in 0..<2_000 { _ = coordination.use(nonce: Array("\(number)".utf8), expiresMs: 1_050, now: 1_000) }
    #expect(!coordination.use(nonce: [1], expiresMs: 1_100, now: 1_099))
  }

  /// A zone in which B has lost three races and holds the lease.
  private struct BusyZone {
    var zone: TestZone
    let a: [UInt8]
    let b: [UInt8]

    init(on server: TestServer) async throws {
      let account: TestAccount
      (account, a) = try await server.newAccount()
      b = try await server.login(account, device: .random())
      zone = account.home
      let stale = try zone.put([zone.record(.random())]).body
      try await server.put([zone.record(.random())], in: &zone, token: a)
      for _ in 0..<ZoneQueue.losses { #expect(try await server.commit(stale, token: b).status == 409) }
    }
  }

  /// - B has lost three races, and A sends a commit
  /// => the server holds A's request until B has committed, and answers it with B's commit
  @Test func overTheWire_aRequestOutOfTurnIsAnsweredInItsTurn() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      var busy = try await BusyZone(on: server)
      let mine = try busy.zone.put([busy.zone.record(.random())]).body
      let first = Task { [a = busy.a] in try await server.commit(mine, token: a) }
      try await server.put([busy.zone.record(.random())], in: &busy.zone, token: busy.b)
      let answer = try await first.value
      #expect(answer.status == 409)
      #expect(try answer.outline() == "commit 2, record v1")
      try await server.put([busy.zone.record(.random())], in: &busy.zone, token: busy.a)
    }
  }

  /// - B has lost three races, and A sends a commit to a server that holds no requests
  /// => A's commit is refused with `zoneBusy`; B's is accepted, then A's next one
  @Test func overTheWire_theOthersWaitForTheLoser() async throws {
    try await TestServer.run {
      $0.bounds.commitHoldMs = 0
    } _: { (server: TestServer) async throws in
      var busy = try await BusyZone(on: server)
      let mine = try busy.zone.put([busy.zone.record(.random())]).body
      let answer = try await server.commit(mine, token: busy.a)
      #expect((answer.status, answer.error?.code, answer.headers["retry-after"]) == (429, .zoneBusy, "1"))
      try await server.put([busy.zone.record(.random())], in: &busy.zone, token: busy.b)
      try await server.put([busy.zone.record(.random())], in: &busy.zone, token: busy.a)
    }
  }

  /// - B holds the lease; a user without access sends a commit, then B sends an invalid one
  /// => the first gets `notFound` and no place in the queue; B's lease ends with the refusal, and A may commit
  @Test func overTheWire_strangersGetNoPlace_andARefusalEndsTheLease() async throws {
    try await TestServer.run {
      $0.bounds.commitHoldMs = 0
    } _: { (server: TestServer) async throws in
      var busy = try await BusyZone(on: server)
      let (_, stranger) = try await server.newAccount()
      let mine = try busy.zone.put([busy.zone.record(.random())]).body
      #expect(try await server.commit(mine, token: stranger).error?.code == .notFound)
      let invalid = try busy.zone.put([busy.zone.record(.random()) { $0.recordVersion = 7 }]).body
      let refused = try await server.commit(invalid, token: busy.b)
      #expect(refused.status != 409 && refused.status / 100 == 4)
      try await server.put([busy.zone.record(.random())], in: &busy.zone, token: busy.a)
    }
  }

  /// - a member who may only read sends commits that come too late, again and again
  /// => each gets a 409, and the zone does not become busy
  @Test func overTheWire_readersDoNotMakeAZoneBusy() async throws {
    try await TestServer.run {
      $0.bounds.commitHoldMs = 0
    } _: { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let (reader, readersToken) = try await server.newAccount()
      var zone = account.home
      let member = zone.member(reader.userID)
      let list = try zone.list(adding: [member.entry])
      let change = try zone.change(to: list, grants: [member.grant])
      _ = try await server.commit(change.body, token: token).expect(200)
      zone.acl = list
      zone.accepted(change.commit)
      let commit = try zone.commit([.retireKey(user: reader.home.owner, gen: 1)]) { $0.writer = reader.home.owner }
      let body = TestZone.body(commit)
      try await server.put([zone.record(.random())], in: &zone, token: token)
      for _ in 0..<9 { #expect(try await server.commit(body, token: readersToken).status == 409) }
      try await server.put([zone.record(.random())], in: &zone, token: token)
    }
  }
}
