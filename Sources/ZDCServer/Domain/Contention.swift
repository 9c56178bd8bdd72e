internal import Synchronization
internal import ZDCProtocol

/// Precedence in a zone that many devices write into (PROTOCOL 3.7, "Push"): who has lost five races is given two
/// seconds in which nobody else may commit, the one who has been losing longest first.
///
/// Pure: time comes in. Bounded: who is silent for a minute is forgotten, and so is whoever does not fit.
struct Contention: Sendable {
  struct Device: Hashable, Sendable {
    var user: UserID
    var device: DeviceID
  }

  private struct Loser {
    var losses = 0
    var sinceMs: UInt64
    var lastMs: UInt64
  }

  private struct Race {
    var losers: [Device: Loser] = [:]
    var lease: (holder: Device, untilMs: UInt64)?
  }

  static let losses = 5
  static let leaseMs: UInt64 = 2_000
  private static let memoryMs: UInt64 = 60_000
  private static let zones = 1_024
  private static let losersPerZone = 64

  private var races: [ZoneID: Race] = [:]

  /// Nil if the device may try, else how long somebody else has precedence.
  mutating func wait(_ device: Device, zone: ZoneID, now: UInt64) -> UInt64? {
    guard let lease = races[zone]?.lease else { return nil }
    guard lease.untilMs > now else {
      endLease(in: zone, now: now)
      return races[zone]?.lease.flatMap { $0.holder == device ? nil : $0.untilMs - now }
    }
    return lease.holder == device ? nil : lease.untilMs - now
  }

  /// Another commit came first.
  mutating func lost(_ device: Device, zone: ZoneID, now: UInt64) {
    makeRoom(now)
    var race = races[zone] ?? Race()
    race.losers = race.losers.filter { $0.value.lastMs + Self.memoryMs > now }
    guard race.losers[device] != nil || race.losers.count < Self.losersPerZone else { return }
    var loser = race.losers[device] ?? Loser(sinceMs: now, lastMs: now)
    loser.losses += 1
    loser.lastMs = now
    race.losers[device] = loser
    races[zone] = race
    grant(in: zone, now: now)
  }

  mutating func won(_ device: Device, zone: ZoneID, now: UInt64) {
    guard races[zone] != nil else { return }
    races[zone]?.losers[device] = nil
    if races[zone]?.lease?.holder == device { endLease(in: zone, now: now) }
    if races[zone]?.losers.isEmpty == true, races[zone]?.lease == nil { races[zone] = nil }
  }

  /// The holder committed, or did not come: the next one's turn.
  private mutating func endLease(in zone: ZoneID, now: UInt64) {
    guard let lease = races[zone]?.lease else { return }
    races[zone]?.lease = nil
    races[zone]?.losers[lease.holder] = nil
    grant(in: zone, now: now)
  }

  private mutating func grant(in zone: ZoneID, now: UInt64) {
    guard let race = races[zone], race.lease == nil else { return }
    let entitled = race.losers.filter { $0.value.losses >= Self.losses && $0.value.lastMs + Self.memoryMs > now }
    guard let oldest = entitled.min(by: { $0.value.sinceMs < $1.value.sinceMs }) else { return }
    races[zone]?.lease = (oldest.key, now + Self.leaseMs)
  }

  private mutating func makeRoom(_ now: UInt64) {
    guard races.count >= Self.zones else { return }
    races = races.filter { $0.value.losers.contains { $0.value.lastMs + Self.memoryMs > now } }
    if races.count >= Self.zones { races.removeAll() }
  }
}

/// The contention of all zones of a server.
final class ContentionTable: Sendable {
  private let state = Mutex(Contention())

  func admit(_ device: Contention.Device, to zones: [ZoneID], now: UInt64) throws {
    let wait = state.withLock { state in zones.compactMap { state.wait(device, zone: $0, now: now) }.max() }
    guard let wait else { return }
    throw ServerError(.zoneBusy, "another device has precedence", retryable: true, retryAfterMs: wait)
  }

  func lost(_ device: Contention.Device, in zone: ZoneID, now: UInt64) {
    state.withLock { $0.lost(device, zone: zone, now: now) }
  }

  func won(_ device: Contention.Device, in zones: [ZoneID], now: UInt64) {
    state.withLock { state in for zone in zones { state.won(device, zone: zone, now: now) } }
  }
}
