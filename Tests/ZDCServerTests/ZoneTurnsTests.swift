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
    for task in waiting { _ = try? await task.value }
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

  /// - B sends three commits on a head that A has moved
  /// => A's request waits for B's, and is then answered with what B did
  @Test func overTheWire_aRequestOutOfTurnIsAnsweredInItsTurn() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, tokenA) = try await server.newAccount()
      let tokenB = try await server.login(account, device: .random())
      var zone = account.home
      let stale = try zone.put([zone.record(.random())]).body
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
      for _ in 0..<ZoneQueue.losses { #expect(try await server.commit(stale, token: tokenB).status == 409) }
      let mine = try zone.put([zone.record(.random())]).body
      let first = Task { try await server.commit(mine, token: tokenA) }
      try await server.put([zone.record(.random())], in: &zone, token: tokenB)
      let told = try await first.value
      #expect(told.status == 409)
      #expect(try told.outline() == "commit 2, record v1")
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
    }
  }

  /// - B sends three commits on a head that A has moved
  /// => A is told to wait, B's next commit goes through, then A may go on
  @Test func overTheWire_theOthersWaitForTheLoser() async throws {
    try await TestServer.run {
      $0.bounds.commitHoldMs = 0
    } _: { (server: TestServer) async throws in
      let (account, tokenA) = try await server.newAccount()
      let tokenB = try await server.login(account, device: .random())
      var zone = account.home
      let stale = try zone.put([zone.record(.random())]).body
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
      for _ in 0..<ZoneQueue.losses { #expect(try await server.commit(stale, token: tokenB).status == 409) }
      let mine = try zone.put([zone.record(.random())]).body
      let told = try await server.commit(mine, token: tokenA)
      #expect((told.status, told.error?.code, told.headers["retry-after"]) == (429, .zoneBusy, "1"))
      try await server.put([zone.record(.random())], in: &zone, token: tokenB)
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
    }
  }

  /// - B has the turn, and a stranger asks to commit there
  /// => he is told that there is no such zone, and stands in no queue; nor does B's failed request keep A waiting
  @Test func overTheWire_strangersStandInNoQueue_andAFailureGivesTheTurnBack() async throws {
    try await TestServer.run {
      $0.bounds.commitHoldMs = 0
    } _: { (server: TestServer) async throws in
      let (account, tokenA) = try await server.newAccount()
      let tokenB = try await server.login(account, device: .random())
      let (_, tokenC) = try await server.newAccount()
      var zone = account.home
      let stale = try zone.put([zone.record(.random())]).body
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
      for _ in 0..<ZoneQueue.losses { #expect(try await server.commit(stale, token: tokenB).status == 409) }
      let mine = try zone.put([zone.record(.random())]).body
      #expect(try await server.commit(mine, token: tokenC).error?.code == .notFound)
      // B's turn, and what it sends is not valid.
      let invalid = try zone.put([zone.record(.random()) { $0.recordVersion = 7 }]).body
      let refused = try await server.commit(invalid, token: tokenB)
      #expect(refused.status != 409 && refused.status / 100 == 4)
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
    }
  }

  /// - C may only read the zone, and sends commits there that come too late, again and again
  /// => they are answered, and keep nobody waiting
  @Test func overTheWire_whoMayOnlyRead_isNoContender() async throws {
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
