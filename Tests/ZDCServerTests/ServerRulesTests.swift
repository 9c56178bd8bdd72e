import Synchronization
import Testing
import ZDCProtocol

@testable import ZDCServer
@testable import ZDCServerSQLite

/// The decisions behind the limits, without a server.
@Suite struct ServerRulesTests {
  // MARK: Rates

  @Test func tokensAreRefilled_andADebtIsWaitedFor() {
    let limiter = RateLimiter<String>(perMinute: 60, burst: 2)
    #expect(limiter.take("a", now: 0) == nil)
    #expect(limiter.take("a", now: 0) == nil)
    #expect(limiter.take("a", now: 0) == 1_000)
    #expect(limiter.take("b", now: 0) == nil)
    #expect(limiter.take("a", now: 1_000) == nil)
    limiter.charge("a", 5, now: 1_000)
    #expect(limiter.wait("a", now: 1_000) == 5_000)
    #expect(limiter.wait("a", now: 6_000) == nil)
  }

  /// - A flood of addresses, after one that is out of calls
  /// => the oldest of the flood are forgotten, never all; the table stays small
  @Test("S9: a flood of addresses does not reset the limit of those that are in use")
  func floodForgetsOnlyTheOldest() {
    let limiter = RateLimiter<Int>(perMinute: 1, keys: 64)
    for address in 0..<1_000 {
      #expect(limiter.take(-1, now: UInt64(address)) != nil || address == 0)
      _ = limiter.take(address, now: UInt64(address))
      #expect(limiter.count <= 64)
    }
  }

  // MARK: Addresses

  @Test("S9: an IPv6 client is counted by its /64")
  func addressesAreCountedByNetwork() {
    #expect(IPAddress("2001:db8:1:2::1")?.party == IPAddress("2001:db8:1:2:ffff::9")?.party)
    #expect(IPAddress("2001:db8:1:2::1")?.party != IPAddress("2001:db8:1:3::1")?.party)
    #expect(IPAddress("::ffff:192.0.2.7")?.party == IPAddress("192.0.2.7")?.party)
    #expect(IPAddress("192.0.2.7")?.party != IPAddress("192.0.2.8")?.party)
    #expect(IPAddress("127.0.0.2")?.isLoopback == true && IPAddress("::1")?.isLoopback == true)
    #expect(IPAddress("fe80::1%eth0") == IPAddress("fe80::1"))
    #expect(IPAddress("localhost") == nil)
  }

  private func client(
    _ peer: String, forwarded: [String] = [], forwardedFor: [String] = [], trusted: [String]
  ) throws -> String? {
    var proxies = TrustedProxies()
    for text in trusted where !proxies.add(text) { Issue.record("\(text) is not taken") }
    let client = proxies.client(of: try #require(IPAddress(peer)), forwarded: forwarded, forwardedFor: forwardedFor)
    return client.party
  }

  @Test("S9: only a trusted proxy names the client, and the client's own header fields do not")
  func trustedProxiesNameTheClient() throws {
    let trusted = ["127.0.0.1", "10.0.0.0/8", "::1"]
    #expect(try client("192.0.2.1", forwardedFor: ["198.51.100.1"], trusted: trusted) == "192.0.2.1")
    #expect(try client("127.0.0.1", forwardedFor: ["198.51.100.1"], trusted: trusted) == "198.51.100.1")
    // The client sent the first one itself; each proxy appends whom it saw.
    #expect(
      try client("127.0.0.1", forwardedFor: ["203.0.113.9, 198.51.100.1, 10.1.2.3"], trusted: trusted)
        == "198.51.100.1")
    #expect(try client("127.0.0.1", forwardedFor: ["203.0.113.9", "198.51.100.1"], trusted: trusted) == "198.51.100.1")
    #expect(
      try client("::1", forwarded: ["for=203.0.113.9, for=\"198.51.100.1:8080\";proto=https"], trusted: trusted)
        == "198.51.100.1")
    #expect(
      try client("::1", forwarded: ["For=\"[2001:db8:0:1::7]:99\""], trusted: trusted) == "32.1.13.184.0.0.0.1")
    // A proxy that writes one field passes the other one on as the client sent it.
    #expect(
      try client("127.0.0.1", forwarded: ["for=203.0.113.9"], forwardedFor: ["198.51.100.1"], trusted: trusted)
        == "127.0.0.1")
    #expect(try client("127.0.0.1", forwardedFor: ["unknown"], trusted: trusted) == "127.0.0.1")
    #expect(try client("127.0.0.1", trusted: trusted) == "127.0.0.1")
    var proxies = TrustedProxies()
    let wrong = ["proxy", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/8/8", ""].filter { proxies.add($0) }
    #expect(wrong == [])
  }

  // MARK: Clocks

  @Test("S16: a clock that jumps ahead collects nothing for a day")
  func jumpAheadHoldsCollectionBack() {
    let day = CollectionGuard.dayMs
    let now = 100 * day
    var guarded = CollectionGuard(now: now, elapsed: 0)
    let answers = [
      guarded.mayCollect(now: now + 3_600_000, elapsed: 3_600_000, newest: now),
      guarded.mayCollect(now: now + 40 * day, elapsed: 7_200_000, newest: now),
      guarded.mayCollect(now: now + 41 * day - 1, elapsed: day, newest: now),
      guarded.mayCollect(now: now + 41 * day, elapsed: day + 7_200_000, newest: now),
      guarded.mayCollect(now: now + 50 * day, elapsed: 10 * day + 7_200_000, newest: now),
      // Set back again: nothing is older by it.
      guarded.mayCollect(now: now, elapsed: 10 * day + 7_200_001, newest: now),
    ]
    #expect(answers == [true, false, false, true, true, true])
  }

  @Test("S16: a server that starts long after its newest commit collects nothing for a day")
  func startAheadHoldsCollectionBack() {
    let day = CollectionGuard.dayMs
    var guarded = CollectionGuard(now: 100 * day, elapsed: 0)
    let answers = [
      guarded.mayCollect(now: 100 * day, elapsed: 10, newest: 60 * day),
      guarded.mayCollect(now: 101 * day - 11, elapsed: day - 1, newest: 60 * day),
      guarded.mayCollect(now: 101 * day, elapsed: day, newest: 60 * day),
    ]
    #expect(answers == [false, false, true])
    var fresh = CollectionGuard(now: 100 * day, elapsed: 0)
    let mayCollect = fresh.mayCollect(now: 100 * day, elapsed: 10, newest: nil)
    #expect(mayCollect)
  }

  @Test("S16: a turn in a busy zone lasts its time when the wall clock is set back")
  func turnsCountByTheClockThatNeverJumps() async throws {
    let elapsed = Mutex<UInt64>(1_000_000)
    let turns = ZoneTurns(clock: ServerClock(nowMs: { 0 }, elapsedMs: { elapsed.withLock { $0 } }), holdMs: 0)
    let zone = ZoneID(tree: .zero, root: .zero)
    let devices = (0..<2).map { _ in ZoneWriter(user: .zero, device: .random()) }
    for _ in 0..<ZoneQueue.losses { turns.ended(.lost, in: [zone], of: devices[0]) }
    await #expect(throws: ServerError.self) { try await turns.enter([zone], as: devices[1], bytes: 0) }
    elapsed.withLock { $0 += ZoneQueue.leaseMs }
    try await turns.enter([zone], as: devices[1], bytes: 0)
  }

  // MARK: Durable names

  /// - A second part of a new content comes while the first one's folder is being synced
  /// => it syncs the folder itself before it is acknowledged; a third one, after both, does not
  @Test("S14: a part is acknowledged only after its file's name is durable")
  func eachPartWaitsForADurableName() throws {
    let blob = BlobID.random()
    let box = SyncBox()
    let names = DurableNames {
      box.syncs += 1
      if box.syncs == 1 { try box.names?.makeDurable(blob) }
    }
    box.names = names
    try names.makeDurable(blob)
    #expect(box.syncs == 2)
    try names.makeDurable(blob)
    #expect(box.syncs == 2)
    names.forget(blob)
    try names.makeDurable(blob)
    #expect(box.syncs == 3)
  }

  @Test("S14: a part is not opened before the name of its file is durable")
  func partsAreOpenedWithDurableNames() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let store = try FolderBlobStore(folder: folder, names: DurableNames { throw ServerError(.storageFull, "no sync") })
    await #expect(throws: ServerError.self) {
      _ = try await store.openPart(.random(), index: 0, cipherLength: 100_000)
    }
  }

  private final class SyncBox: @unchecked Sendable {
    // One thread only.
    var syncs = 0
    var names: DurableNames?
  }

  // MARK: Sessions in memory

  @Test("S17: the end of one session leaves those of others in memory")
  func oneSessionEndsAlone() {
    let cache = SessionCache()
    let rows = (UInt8(0)..<5).map { number in
      SessionRow(tokenHash: [number], user: .zero, device: .zero, createdMs: 0, expiresMs: 1)
    }
    for row in rows { cache.put(row, epoch: cache.epoch) }
    let before = cache.epoch
    cache.remove([[2]])
    #expect(cache.count == 4 && cache.get([2]) == nil)
    // A row that was read before a session ended may be that session's.
    cache.put(rows[2], epoch: before)
    #expect(cache.get([2]) == nil)
  }
}
