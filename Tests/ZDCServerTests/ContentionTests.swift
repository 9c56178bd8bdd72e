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

  /// - B sends five commits on a head that A has moved
  /// => A is told to wait, B's next commit goes through, then A may go on
  @Test func overTheWire_theOthersWaitForTheLoser() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, tokenA) = try await server.newAccount()
      let tokenB = try await server.login(account, device: .random())
      var zone = account.home
      let stale = try zone.put([zone.record(.random())]).body
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
      for _ in 0..<5 { #expect(try await server.commit(stale, token: tokenB).status == 409) }
      let mine = try zone.put([zone.record(.random())]).body
      let told = try await server.commit(mine, token: tokenA)
      #expect((told.status, told.error?.code, told.headers["retry-after"]) == (429, .zoneBusy, "2"))
      try await server.put([zone.record(.random())], in: &zone, token: tokenB)
      try await server.put([zone.record(.random())], in: &zone, token: tokenA)
    }
  }
}
