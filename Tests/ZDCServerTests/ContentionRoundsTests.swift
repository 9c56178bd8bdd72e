import Testing
import ZDCProtocol

@testable import ZDCServer

/// Devices that contend for a zone for minutes, on a clock that is turned by hand.
@Suite struct ContentionRoundsTests {
  /// One device: it asks, is answered, and needs its time for what it makes of the answer.
  private struct Contender {
    let id = Contention.Device(user: UserID([UInt8](repeating: 1, count: 32))!, device: .random())
    /// From an answer to the next commit.
    var needMs: UInt64
    var kind = Kind.honest
    var commits = 0
    /// The head that its commit continues.
    var base = 0
    var asksAtMs: UInt64 = 0

    enum Kind {
      case honest
      /// Asks, and never continues the head.
      case stale
      /// Asks as long as it is told to wait, and not when it is its turn.
      case absent
      /// Commits again and again, and each time the server refuses it.
      case refused
    }
  }

  /// The zone and who wants to commit there.
  private struct World {
    let zone = ZoneID(tree: .zero, root: .random())
    var contention = Contention()
    var contenders: [Contender]
    var head = 0
    /// How long it was the turn of one that is not honest.
    var lostMs: UInt64 = 0

    mutating func run(from start: UInt64, to end: UInt64) {
      for now in stride(from: start, to: end, by: 50) {
        if let holder = contention.turn(in: zone)?.holder, isHostile(holder) { lostMs += 50 }
        for index in contenders.indices where contenders[index].asksAtMs <= now { ask(index, now) }
      }
    }

    private func isHostile(_ device: Contention.Device) -> Bool {
      contenders.contains { $0.id == device && $0.kind != .honest }
    }

    private mutating func ask(_ index: Int, _ now: UInt64) {
      var contender = contenders[index]
      defer { contenders[index] = contender }
      if contender.kind == .absent, contention.turn(in: zone)?.holder == contender.id { return }
      if contention.wait(contender.id, zone: zone, now: now) != nil {
        // As often as the server says that one may come again.
        contender.asksAtMs = now + 250
        return
      }
      contender.asksAtMs = now + contender.needMs
      switch contender.kind {
      case .refused: contention.gaveUp(contender.id, zone: zone, hasFailed: true, now: now)
      case .honest where contender.base == head:
        head += 1
        contender.commits += 1
        contender.base = head
        contention.won(contender.id, zone: zone, now: now)
      case .honest, .stale, .absent:
        contender.base = head
        contention.lost(contender.id, zone: zone, now: now)
      }
    }
  }

  /// - Ten devices, each of which needs longer for a commit than a turn lasts
  /// => all of them commit, and none twice as often as another one
  @Test func tenSlowDevices_allProgress() {
    var world = World(contenders: (0..<10).map { Contender(needMs: 2_500 + 150 * $0) })
    world.run(from: 0, to: 900_000)
    let commits = world.contenders.map(\.commits).sorted()
    #expect(commits[0] >= 10)
    #expect(commits[9] <= 2 * commits[0])
  }

  /// - Nine fast devices and one that needs longer than what a slow one is given at first
  /// => it commits again and again, and the others do not stand still for it
  @Test(arguments: [3_000, 9_000, 20_000] as [UInt64]) func oneSlowDeviceAmongFastOnes_progresses(needMs: UInt64) {
    var world = World(contenders: (0..<9).map { _ in Contender(needMs: 300) } + [Contender(needMs: needMs)])
    var before = 0
    for round in 0..<3 as Range<UInt64> {
      world.run(from: round * 600_000, to: (round + 1) * 600_000)
      #expect(world.contenders[9].commits > before)
      before = world.contenders[9].commits
    }
    // Once in eight seconds, in the long run, each of those who need a third of one.
    for fast in world.contenders[0..<9] { #expect(fast.commits >= 225 && fast.commits >= before) }
  }

  /// - One device that asks and never commits, among others that do
  /// => its turns cost them a tenth of their time at first, and then a twentieth
  @Test(arguments: [0, 1_900, 7_900] as [UInt64]) func whoNeverCommits_costsLessAndLess(needMs: UInt64) {
    for kind in [Contender.Kind.stale, .absent, .refused] {
      var world = World(
        contenders: (0..<3).map { _ in Contender(needMs: 300) } + [Contender(needMs: needMs, kind: kind)])
      let costs = (0..<3 as Range<UInt64>).map { round in
        world.run(from: round * 600_000, to: (round + 1) * 600_000)
        defer { world.lostMs = 0 }
        return world.lostMs
      }
      #expect(costs[0] <= 66_000, "\(kind)")
      for cost in costs[1...] { #expect(cost <= 33_000, "\(kind)") }
      for honest in world.contenders[0..<3] { #expect(honest.commits >= 1_200, "\(kind)") }
    }
  }

  /// - A device is called and never asks again
  /// => that costs the others one turn; who has not asked for long when its turn comes costs them nothing
  @Test func whoIsGone_leavesTheQueue() {
    var contention = Contention()
    let zone = ZoneID(tree: .zero, root: .random())
    let devices = (0..<4).map { _ in Contender(needMs: 0).id }
    for _ in 0..<5 { contention.lost(devices[0], zone: zone, now: 0) }
    for device in devices[1...] { _ = contention.wait(device, zone: zone, now: 0) }
    #expect(contention.wait(devices[3], zone: zone, now: 2_000) != nil)
    #expect(contention.turn(in: zone)?.holder == devices[1])
    // Both of those who come next are gone by now.
    #expect(contention.wait(devices[3], zone: zone, now: Contention.goneMs) == nil)
    #expect(contention.turn(in: zone)?.holder == devices[3])
    contention.won(devices[3], zone: zone, now: Contention.goneMs)
    #expect(!contention.isBusy(zone))
  }

  /// - A device comes at the end of its turn
  /// => it has the time that it needs to make a commit of what it is told then, once
  @Test func aTurnsTime_beginsAnewWhenItsHolderIsAnswered_once() {
    var contention = Contention()
    let zone = ZoneID(tree: .zero, root: .random())
    let (a, b) = (Contender(needMs: 0).id, Contender(needMs: 0).id)
    for _ in 0..<5 { contention.lost(b, zone: zone, now: 0) }
    _ = contention.wait(a, zone: zone, now: 0)
    contention.won(b, zone: zone, now: 100)
    #expect(contention.wait(a, zone: zone, now: 2_000) == nil)
    #expect(contention.turn(in: zone)?.untilMs == 4_000)
    contention.lost(a, zone: zone, now: 3_000)
    #expect(contention.turn(in: zone)?.untilMs == 5_000)
    #expect(contention.wait(a, zone: zone, now: 4_000) == nil)
    contention.lost(a, zone: zone, now: 4_000)
    #expect(contention.turn(in: zone)?.untilMs == 5_000)
  }

  /// - A device comes three seconds after it was answered, when its turn is over
  /// => its next one is twice as long as that; and so it stays when it has committed
  @Test func turnIsAsLongAsItsDeviceNeeds() {
    var contention = Contention()
    let zone = ZoneID(tree: .zero, root: .random())
    let (a, b) = (Contender(needMs: 0).id, Contender(needMs: 0).id)
    for _ in 0..<5 { contention.lost(a, zone: zone, now: 0) }
    _ = contention.wait(b, zone: zone, now: 0)
    #expect(contention.wait(a, zone: zone, now: 3_000) == 1_000)
    _ = contention.wait(a, zone: zone, now: 4_000)
    contention.won(b, zone: zone, now: 4_000)
    #expect(contention.turn(in: zone)?.holder == a)
    #expect(contention.turn(in: zone)?.untilMs == 10_000)
    contention.won(a, zone: zone, now: 5_000)
    for _ in 0..<5 { contention.lost(a, zone: zone, now: 5_000) }
    #expect(contention.turn(in: zone)?.untilMs == 11_000)
  }

  /// - More devices and zones than there is room for
  /// => what is remembered has its bounds, and a zone in which something happens is not forgotten for others
  @Test func memoryIsBounded() {
    var contention = Contention()
    let busy = ZoneID(tree: .zero, root: .random())
    for number in 0..<1_000 {
      let device = Contender(needMs: 0).id
      for _ in 0..<5 { contention.lost(device, zone: busy, now: UInt64(number)) }
    }
    let perZone = Contention.knownPerZone + Contention.devicesPerZone
    #expect(contention.remembered.devices <= perZone)
    let user = Contender(needMs: 0).id
    for number in 0..<2 * Contention.zones {
      contention.lost(user, zone: ZoneID(tree: .zero, root: .random()), now: UInt64(1_000 + number))
      _ = contention.wait(user, zone: busy, now: UInt64(1_000 + number))
    }
    #expect(contention.remembered.zones == Contention.zones)
    #expect(contention.remembered.devices <= perZone + Contention.zones)
    #expect(contention.isBusy(busy))
  }
}
