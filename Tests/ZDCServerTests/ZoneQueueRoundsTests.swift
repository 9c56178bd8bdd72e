import Testing
import ZDCProtocol

@testable import ZDCServer

/// Devices that commit in one zone for minutes, on a clock that is turned by hand.
@Suite struct ZoneQueueRoundsTests {
  /// One device: it asks, is answered, and needs its time for what it makes of the answer.
  private struct Contender {
    let id: ZoneWriter
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
      /// Asks as long as it has to wait, and not when it has the lease.
      case absent
      /// Commits again and again, and each time the server refuses it.
      case refused
    }

    init(needMs: UInt64, kind: Kind = .honest, user: UInt8 = 1) {
      id = ZoneWriter(user: UserID([UInt8](repeating: user, count: 32))!, device: .random())
      self.needMs = needMs
      self.kind = kind
    }
  }

  /// The zone and the devices that commit in it.
  private struct World {
    var queue = ZoneQueue(now: 0)
    var contenders: [Contender]
    var head = 0
    /// How long a device had the lease that is not honest.
    var lostMs: UInt64 = 0

    mutating func run(from start: UInt64, to end: UInt64) {
      for now in stride(from: start, to: end, by: 50) {
        if let holder = queue.lease?.holder, isHostile(holder) { lostMs += 50 }
        for index in contenders.indices where contenders[index].asksAtMs <= now { ask(index, now) }
      }
    }

    private func isHostile(_ device: ZoneWriter) -> Bool {
      contenders.contains { $0.id == device && $0.kind != .honest }
    }

    private mutating func ask(_ index: Int, _ now: UInt64) {
      var contender = contenders[index]
      defer { contenders[index] = contender }
      if contender.kind == .absent, queue.lease?.holder == contender.id { return }
      if queue.ask(contender.id, now: now) != nil {
        // As often as the server says that one may come again.
        contender.asksAtMs = now + 250
        return
      }
      contender.asksAtMs = now + contender.needMs
      switch contender.kind {
      case .refused: queue.failed(contender.id, now: now)
      case .honest where contender.base == head:
        head += 1
        contender.commits += 1
        contender.base = head
        queue.committed(contender.id, now: now)
      case .honest, .stale, .absent:
        contender.base = head
        queue.lost(contender.id, now: now)
      }
    }
  }

  /// - Ten devices, each of which needs nearly a lease for a commit, or more
  /// => all of them commit, and none twice as often as another one
  @Test func tenSlowDevices_allProgress() {
    var world = World(contenders: (0..<10).map { Contender(needMs: 2_500 + 150 * $0) })
    world.run(from: 0, to: 900_000)
    let commits = world.contenders.map(\.commits).sorted()
    #expect(commits[0] >= 10)
    #expect(commits[9] <= 2 * commits[0])
  }

  /// - Nine fast devices and one that needs longer than a slow one gets at first
  /// => it commits again and again, and the others need not wait for it
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
  /// => its leases cost them a seventh of their time at first, and then a twentieth; refusals, which take a tick, a tenth
  @Test(arguments: [0, 1_900, 7_900] as [UInt64]) func aDeviceThatNeverCommits_costsLessAndLess(needMs: UInt64) {
    for kind in [Contender.Kind.stale, .absent, .refused] {
      var world = World(
        contenders: (0..<3).map { _ in Contender(needMs: 300) } + [Contender(needMs: needMs, kind: kind)])
      let costs = (0..<3 as Range<UInt64>).map { round in
        world.run(from: round * 600_000, to: (round + 1) * 600_000)
        defer { world.lostMs = 0 }
        return world.lostMs
      }
      #expect(costs[0] <= 90_000, "\(kind)")
      for cost in costs[1...] { #expect(cost <= (kind == .refused ? 60_000 : 33_000), "\(kind)") }
      for honest in world.contenders[0..<3] { #expect(honest.commits >= 1_200, "\(kind)") }
    }
  }

  private enum Nuisance: CaseIterable {
    case expires
    case fails
    case commitsLate
    case commitsEverySecondTime
  }

  /// - Bob commits whenever the lease allows. Ann has five devices that never do, or as late as they can
  /// => she has the zone for half of the time at most
  @Test(arguments: Nuisance.allCases) private func aNuisanceHasHalfOfTheTime(_ nuisance: Nuisance) {
    let devices = (0..<5).map { _ in Contender(needMs: 0).id }
    let bob = Contender(needMs: 0, user: 2).id
    var queue = ZoneQueue(now: 0)
    var (taken, commits, leases) = (UInt64(0), 0, 0)
    let end: UInt64 = 1_200_000
    for now in stride(from: UInt64(0), to: end, by: 100) {
      for device in devices { queue.lost(device, now: now) }
      if queue.ask(bob, now: now) == nil {
        commits += 1
        queue.committed(bob, now: now)
      } else {
        taken += 100
      }
      guard let lease = queue.lease, lease.holder.user != bob.user else { continue }
      _ = queue.ask(lease.holder, now: now)
      guard let renewed = queue.lease, now + 100 >= renewed.endMs, nuisance != .expires else { continue }
      leases += 1
      let commitsNow = nuisance == .commitsLate || nuisance == .commitsEverySecondTime && leases % 2 == 0
      if commitsNow { queue.committed(lease.holder, now: now) } else { queue.failed(lease.holder, now: now) }
    }
    #expect(taken <= end / 2 + 120_000)
    #expect(commits > 500)
  }
}
