import Testing
import ZDCProtocol

@testable import ZDCServer

/// Who loses for ever in a busy zone gets his turn.
@Suite struct ContentionTests {
  private let zone = ZoneID(tree: .zero, root: .random())
  private let a = device()
  private let b = device()
  private let c = device()

  private static func device() -> Contention.Device {
    Contention.Device(user: UserID([UInt8](repeating: 1, count: 32))!, device: .random())
  }

  private func lose(_ device: Contention.Device, _ times: Int, _ contention: inout Contention, now: UInt64) {
    for _ in 0..<times { contention.lost(device, zone: zone, now: now) }
  }

  @Test func fourLossesGiveNothing_theFifthTwoSeconds() {
    var contention = Contention()
    lose(a, 4, &contention, now: 1_000)
    #expect(contention.wait(b, zone: zone, now: 1_000) == nil)
    lose(a, 1, &contention, now: 1_000)
    #expect(contention.wait(b, zone: zone, now: 1_500) == 1_500)
    #expect(contention.wait(a, zone: zone, now: 1_500) == nil)
    #expect(contention.wait(b, zone: ZoneID(tree: .zero, root: .random()), now: 1_500) == nil)
    #expect(contention.wait(b, zone: zone, now: 3_000) == nil)
  }

  /// - Many devices contend, and one is always the first
  /// => that ends before each of the others has lost five times
  @Test func tenLossesOfAll_beginTurns_ifNoneOfThemCommitted() {
    var contention = Contention()
    let others = (0..<9).map { _ in Self.device() }
    for device in others { lose(device, 1, &contention, now: 0) }
    contention.won(others[0], zone: zone, now: 0)
    lose(others[0], 1, &contention, now: 0)
    #expect(contention.turn(in: zone) == nil)
    lose(others[1], 1, &contention, now: 0)
    #expect(contention.turn(in: zone)?.holder == others[1])
    #expect(contention.wait(a, zone: zone, now: 0) == 2_000)
  }

  @Test func whoHasBeenLosingLongest_isFirst_theOthersFollow() {
    var contention = Contention()
    lose(a, 4, &contention, now: 100)
    lose(b, 5, &contention, now: 200)
    lose(a, 1, &contention, now: 300)
    lose(c, 5, &contention, now: 400)
    // B was the first with five; then A, who began to lose before C.
    #expect(contention.wait(b, zone: zone, now: 500) == nil)
    contention.won(b, zone: zone, now: 500)
    #expect(contention.wait(a, zone: zone, now: 500) == nil)
    #expect(contention.wait(c, zone: zone, now: 500) == 2_000)
    // A does not come: C is next, and B waits.
    #expect(contention.wait(c, zone: zone, now: 2_500) == nil)
    #expect(contention.wait(b, zone: zone, now: 2_500) == 2_000)
    contention.won(c, zone: zone, now: 2_600)
    #expect(contention.wait(b, zone: zone, now: 2_600) == nil)
  }

  @Test func aWinEndsTheCount_andAMinuteOfSilenceToo() {
    var contention = Contention()
    lose(a, 4, &contention, now: 0)
    contention.won(a, zone: zone, now: 0)
    lose(a, 4, &contention, now: 0)
    #expect(contention.wait(b, zone: zone, now: 0) == nil)
    lose(a, 1, &contention, now: 60_000)
    #expect(contention.wait(b, zone: zone, now: 60_000) == nil)
  }

  /// - A has a turn, B and C come, A commits and comes again
  /// => B, C, A: a turn is one commit
  @Test func whoCommitted_standsBehindWhoWaits() {
    var contention = Contention()
    lose(a, 5, &contention, now: 0)
    _ = contention.wait(b, zone: zone, now: 0)
    _ = contention.wait(c, zone: zone, now: 0)
    var order: [Contention.Device] = []
    for _ in 0..<9 {
      guard let holder = contention.turn(in: zone)?.holder else { break }
      order.append(holder)
      contention.won(holder, zone: zone, now: 0)
      _ = contention.wait(holder, zone: zone, now: 0)
    }
    #expect(order == [a, b, c, a, b, c, a, b, c])
  }

  @Test func aZoneWithoutQueue_isNoLongerBusy() {
    var contention = Contention()
    lose(a, 5, &contention, now: 0)
    contention.won(a, zone: zone, now: 0)
    #expect(contention.turn(in: zone) == nil)
    lose(b, 4, &contention, now: 0)
    #expect(contention.turn(in: zone) == nil)
  }

  /// - A lets its turns pass, which B has to wait out
  /// => each is longer, because A may be slow, and comes so late that B has the zone for longer and longer
  @Test func whoLetsTurnsPass_getsLongerOnes_butRarely() {
    var contention = Contention()
    var now: UInt64 = 0
    lose(a, 5, &contention, now: now)
    var seen: [[UInt64]] = []
    for _ in 0..<6 {
      guard let turn = contention.turn(in: zone) else { break }
      #expect(turn.holder == a)
      #expect(contention.wait(b, zone: zone, now: now) == turn.untilMs - now)
      now = turn.untilMs
      #expect(contention.wait(b, zone: zone, now: now) == nil)
      let rest = contention.wait(a, zone: zone, now: now) ?? 0
      contention.won(b, zone: zone, now: now)
      let resumes = restEnd(of: a, &contention, from: now)
      seen.append([turn.untilMs - turn.beganMs, resumes - now])
      #expect(rest <= resumes - now)
      now = resumes
    }
    #expect(
      seen == [
        [2_000, 2_000], [4_000, 12_000], [8_000, 56_000], [16_000, 240_000], [32_000, 600_000], [32_000, 600_000],
      ])
  }

  /// When the device gets its next turn, if B has one after the other until then.
  private func restEnd(of device: Contention.Device, _ contention: inout Contention, from: UInt64) -> UInt64 {
    var now = from
    while contention.turn(in: zone)?.holder != device, now < from + 1_000_000 {
      lose(b, 5, &contention, now: now)
      let pause = contention.wait(device, zone: zone, now: now) ?? 0
      contention.won(b, zone: zone, now: now)
      if contention.turn(in: zone)?.holder == device { break }
      now += pause
    }
    return now
  }

  /// - it is A's turn, and its commit fails for a reason of its own
  /// => the next one need not wait for the end of the turn
  @Test func whoFails_givesItsTurnBack() {
    var contention = Contention()
    lose(a, 5, &contention, now: 0)
    _ = contention.wait(b, zone: zone, now: 0)
    contention.gaveUp(b, zone: zone, hasFailed: true, now: 0)
    #expect(contention.turn(in: zone)?.holder == a)
    contention.gaveUp(a, zone: zone, hasFailed: true, now: 0)
    #expect(contention.turn(in: zone)?.holder == b)
  }

  /// - A and B take turns, and A's commits fail, because it looks for the operation that is refused
  /// => A has its turn each time, until there is no end of it
  @Test func whoFails_mayTryAgain_soOftenOnly() {
    var contention = Contention()
    lose(a, 5, &contention, now: 0)
    for _ in 0..<Contention.failures {
      #expect(contention.turn(in: zone)?.holder == a)
      _ = contention.wait(b, zone: zone, now: 0)
      contention.gaveUp(a, zone: zone, hasFailed: true, now: 0)
      _ = contention.wait(a, zone: zone, now: 0)
      contention.won(b, zone: zone, now: 0)
    }
    // From now on a failure is a turn let pass.
    #expect(contention.turn(in: zone) == nil)
    lose(a, 5, &contention, now: 1_999)
    #expect(contention.turn(in: zone) == nil)
    lose(a, 1, &contention, now: 2_000)
    #expect(contention.turn(in: zone)?.holder == a)
    contention.gaveUp(a, zone: zone, hasFailed: true, now: 2_000)
    lose(a, 1, &contention, now: 7_999)
    #expect(contention.turn(in: zone) == nil)
  }

  /// - A's commit for two zones is stale in the other one
  /// => that is no failure here, however often it happens
  @Test func whoIsStaleElsewhere_standsAtTheEnd_withoutACharge() {
    var contention = Contention()
    lose(a, 5, &contention, now: 0)
    for _ in 0..<100 {
      _ = contention.wait(b, zone: zone, now: 0)
      contention.gaveUp(a, zone: zone, hasFailed: false, now: 0)
      #expect(contention.turn(in: zone)?.holder == b)
      _ = contention.wait(a, zone: zone, now: 0)
      contention.won(b, zone: zone, now: 0)
      #expect(contention.turn(in: zone)?.holder == a)
    }
  }

  /// However many devices come: the queue has its bound, and who stands in it is served.
  @Test func queueIsBounded() {
    var contention = Contention()
    lose(a, 5, &contention, now: 0)
    for _ in 0..<1_000 { #expect(contention.wait(Self.device(), zone: zone, now: 0) == 2_000) }
    var served = 0
    while let turn = contention.turn(in: zone) {
      served += 1
      contention.won(turn.holder, zone: zone, now: 0)
    }
    #expect(served == 1 + Contention.devicesPerZone)
  }

  // MARK: Requests that wait

  private func table(holdMs: UInt64 = 600_000) -> ContentionTable {
    ContentionTable(clock: ServerClock { 0 }, holdMs: holdMs)
  }

  private func hold(
    _ device: Contention.Device, bytes: Int = 1, in table: ContentionTable
  ) async -> Task<Void, any Error> {
    let held = table.heldCount
    let task = Task { [zone] in try await table.admit(device, to: [zone], bytes: bytes) }
    while table.heldCount == held { await Task.yield() }
    return task
  }

  @Test func requestOutOfTurn_isHeldUntilItsTurn() async throws {
    let table = table()
    for _ in 0..<5 { table.lost(a, in: zone) }
    let second = await hold(b, in: table)
    let third = await hold(c, in: table)
    try await table.admit(a, to: [zone], bytes: 1)
    table.won(a, in: [zone])
    try await second.value
    #expect(table.heldCount == 1)
    table.won(b, in: [zone])
    try await third.value
    #expect(table.heldCount == 0)
  }

  @Test func whoCannotBeHeld_isToldToComeAgain_andKeepsItsPlace() async throws {
    let table = table()
    for _ in 0..<5 { table.lost(a, in: zone) }
    let big = await hold(b, bytes: 32 << 20, in: table)
    await #expect(throws: ServerError.self) { try await table.admit(c, to: [zone], bytes: 1) }
    // A second request of the same device as well.
    await #expect(throws: ServerError.self) { try await table.admit(b, to: [zone], bytes: 0) }
    table.won(a, in: [zone])
    try await big.value
    table.won(b, in: [zone])
    try await table.admit(c, to: [zone], bytes: 1)
  }

  @Test func heldRequestsAreBounded() async throws {
    let table = table()
    let zones = try (UInt8(0)..<32).map { number in
      ZoneID(tree: try #require(TreeID([UInt8](repeating: number, count: 32))), root: .zero)
    }
    for zone in zones { for _ in 0..<5 { table.lost(a, in: zone) } }
    let waiting = (0..<1_024).map { number in
      Task { try await table.admit(Self.device(), to: [zones[number % zones.count]], bytes: 1) }
    }
    while table.heldCount < waiting.count { await Task.yield() }
    await #expect(throws: ServerError.self) { try await table.admit(Self.device(), to: [zones[0]], bytes: 1) }
    table.close()
    for task in waiting { _ = try? await task.value }
  }

  @Test func serverThatStops_holdsNobody() async throws {
    let table = table()
    for _ in 0..<5 { table.lost(a, in: zone) }
    let held = await hold(b, in: table)
    table.close()
    let error = await #expect(throws: ServerError.self) { try await held.value }
    #expect(error?.code == .shuttingDown)
  }

  /// - B sends five commits on a head that A has moved
  /// => A's request waits for B's, and is then answered with what B did
  @Test func overTheWire_aRequestOutOfTurnIsAnsweredInItsTurn() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, tokenA) = try await server.newAccount()
      let tokenB = try await server.login(account, device: .random())
      var zone = account.home
      let stale = try zone.put([zone.record(.random())]).body
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
      for _ in 0..<5 { #expect(try await server.commit(stale, token: tokenB).status == 409) }
      let mine = try zone.put([zone.record(.random())]).body
      let first = Task { try await server.commit(mine, token: tokenA) }
      try await server.put([zone.record(.random())], in: &zone, token: tokenB)
      let told = try await first.value
      #expect(told.status == 409)
      #expect(try told.outline() == "commit 2, record v1")
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
    }
  }

  /// - B sends five commits on a head that A has moved
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
      for _ in 0..<5 { #expect(try await server.commit(stale, token: tokenB).status == 409) }
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
      for _ in 0..<5 { #expect(try await server.commit(stale, token: tokenB).status == 409) }
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
