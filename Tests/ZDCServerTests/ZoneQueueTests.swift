import Testing
import ZDCProtocol

@testable import ZDCServer

/// The rule of busy zones (PROTOCOL 4.4, `zoneBusy`).
@Suite struct ZoneQueueTests {
  private static let ann = UserID([UInt8](repeating: 1, count: 32))!
  private static let bob = UserID([UInt8](repeating: 2, count: 32))!
  private static let cleo = UserID([UInt8](repeating: 3, count: 32))!

  private let a = device(of: ann)
  private let b = device(of: bob)
  private let c = device(of: cleo)

  private static func device(of user: UserID) -> ZoneWriter { ZoneWriter(user: user, device: .random()) }

  /// A queue in which the device has a lease from `now` on.
  private func queue(for writer: ZoneWriter, now: UInt64 = 0) -> ZoneQueue {
    var queue = ZoneQueue(now: now)
    for _ in 0..<ZoneQueue.losses { queue.lost(writer, now: now) }
    return queue
  }

  @Test func theThirdLossOpensTheQueue() {
    var queue = ZoneQueue(now: 0)
    for _ in 0..<2 { queue.lost(a, now: 1_000) }
    #expect(queue.ask(b, now: 1_000) == nil)
    queue.lost(a, now: 1_000)
    #expect(queue.ask(b, now: 1_500) == 2_500)
    #expect(queue.ask(a, now: 1_500) == nil)
  }

  @Test func lossesEndWithACommit_andAfterAMinute() {
    var queue = ZoneQueue(now: 0)
    for _ in 0..<2 { queue.lost(a, now: 0) }
    queue.committed(a, now: 0)
    for _ in 0..<2 { queue.lost(a, now: 0) }
    queue.lost(a, now: 60_000)
    #expect(queue.lease == nil)
    #expect(queue.ask(b, now: 60_000) == nil)
  }

  @Test func aQueueThatIsEmpty_isForgotten() {
    var queue = queue(for: a)
    queue.committed(a, now: 10)
    #expect(!queue.isBusy)
    _ = queue.ask(b, now: 60_010)
    #expect(queue.isForgettable)
  }

  /// A lease starts again with its holder's first request, with the 409 that it gets, and with one more request.
  @Test func requestsRenewALease_threeTimes() {
    var queue = queue(for: a)
    #expect(queue.ask(a, now: 2_000) == nil)
    queue.lost(a, now: 4_000)
    #expect(queue.ask(a, now: 6_000) == nil)
    #expect(queue.lease?.endMs == 9_000)
    #expect(queue.ask(a, now: 8_999) == nil)
    #expect(queue.lease?.endMs == 9_000)
    #expect(queue.ask(b, now: 9_000) == nil)
  }

  /// - Ann has three devices in the queue, then Bob comes, then Cleo
  /// => users take turns, then the devices of each
  @Test func usersTakeTurns() {
    let others = [Self.device(of: Self.ann), Self.device(of: Self.ann)]
    var queue = queue(for: a)
    for writer in others + [b, c] { #expect(queue.ask(writer, now: 0) == 3_000) }
    var order: [ZoneWriter] = []
    while let holder = queue.lease?.holder {
      order.append(holder)
      queue.committed(holder, now: 0)
    }
    #expect(order == [a, b, c] + others)
  }

  @Test func aDeviceThatCommitted_queuesAfterThoseThatWait() {
    var queue = queue(for: a)
    for writer in [b, c] { _ = queue.ask(writer, now: 0) }
    var order: [ZoneWriter] = []
    for _ in 0..<9 {
      guard let holder = queue.lease?.holder else { break }
      order.append(holder)
      queue.committed(holder, now: 0)
      _ = queue.ask(holder, now: 0)
    }
    #expect(order == [a, b, c, a, b, c, a, b, c])
  }

  /// A device that waits asks again and again. One that no longer does is passed over.
  @Test func aDeviceThatIsGone_isPassedOver() {
    var queue = queue(for: a)
    _ = queue.ask(b, now: 0)
    for now in [2_500, 5_000, 7_500] as [UInt64] { _ = queue.ask(a, now: now) }
    _ = queue.ask(c, now: 9_000)
    _ = queue.ask(c, now: 15_000)
    #expect(queue.lease?.holder == c)
  }

  /// - Ann's device lets one lease after the other expire
  /// => the next one is twice as long, because the device may be slow, and comes later and later
  @Test func leasesThatExpire_areLonger_andRarer() {
    var queue = queue(for: a)
    var now: UInt64 = 0
    var seen: [[UInt64]] = []
    for _ in 0..<5 {
      guard let lease = queue.lease else { break }
      let length = lease.endMs - lease.beganMs
      now = lease.endMs
      let began = now
      while queue.lease == nil || queue.lease == lease, now < 10_000_000 {
        queue.lost(a, now: now)
        now += 1_000
      }
      now = queue.lease?.beganMs ?? now
      seen.append([length, now - began])
    }
    #expect(seen == [[3_000, 3_000], [6_000, 18_000], [12_000, 84_000], [24_000, 360_000], [24_000, 600_000]])
  }

  /// - all that wait in the queue rest
  /// => there is no lease, and everyone may try
  @Test func whileAllRest_allMayTry() {
    var queue = queue(for: a)
    queue.lost(b, now: 1_000)
    queue.failed(a, now: 2_000)
    queue.failed(b, now: 2_500)
    _ = queue.ask(a, now: 2_500)
    queue.lost(a, now: 2_500)
    queue.lost(c, now: 2_500)
    #expect(queue.lease?.holder == c)
    queue.committed(c, now: 2_600)
    #expect(queue.lease == nil)
    #expect(queue.isBusy)
    #expect(queue.ask(b, now: 2_700) == nil)
    #expect(queue.ask(b, now: 4_000) == 3_000)
    #expect(queue.lease?.holder == a)
  }

  /// - one of Ann's devices let its lease expire
  /// => her other devices get a lease immediately, because no other user commits in the zone
  @Test func devicesOfOneUser_doNotRestForEachOther() {
    let other = Self.device(of: Self.ann)
    var queue = queue(for: a)
    _ = queue.ask(other, now: 0)
    _ = queue.ask(other, now: 3_000)
    #expect(queue.lease?.holder == other)
  }

  /// - Ann's commit is refused a second after her lease began
  /// => the next device may commit immediately, and Ann rests for a second
  @Test func aDeviceWhoseCommitFails_givesItsLeaseBack() {
    var queue = queue(for: a)
    _ = queue.ask(b, now: 0)
    queue.failed(b, now: 0)
    #expect(queue.lease?.holder == a)
    queue.failed(a, now: 1_000)
    #expect(queue.lease?.holder == b)
    _ = queue.ask(a, now: 1_500)
    queue.committed(b, now: 1_500)
    #expect(queue.lease == nil)
    _ = queue.ask(c, now: 2_000)
    #expect(queue.lease?.holder == a)
  }

  /// - Ann has more devices than the queue has places
  /// => others get a place, and each device that has one gets a lease
  @Test func placesAreBounded_andShared() {
    var queue = queue(for: a)
    for _ in 0..<1_000 { #expect(queue.ask(Self.device(of: Self.ann), now: 0) == 3_000) }
    #expect(queue.ask(b, now: 0) == 3_000)
    #expect(queue.count <= 2 * ZoneQueue.remembered)
    var served: [UserID: Int] = [:]
    while let holder = queue.lease?.holder {
      served[holder.user, default: 0] += 1
      queue.committed(holder, now: 0)
    }
    #expect(served == [Self.ann: ZoneQueue.places, Self.bob: 1])
  }

  @Test func rememberedDevicesAreBounded() {
    var queue = ZoneQueue(now: 0)
    for number in 0..<2_000 {
      var bytes = [UInt8](repeating: 0, count: 32)
      (bytes[0], bytes[1]) = (UInt8(number & 0xff), UInt8(number >> 8))
      guard let user = UserID(bytes) else { continue }
      queue.lost(Self.device(of: user), now: UInt64(number))
    }
    #expect(queue.count <= 3 * ZoneQueue.remembered)
  }
}
