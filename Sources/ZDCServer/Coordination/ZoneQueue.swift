internal import ZDCProtocol

/// The devices that commit in a busy zone, one after the other (PROTOCOL 4.4, `zoneBusy`). Pure: callers pass the time.
///
/// A device that has lost three races joins the queue. One queued device at a time holds a lease, and only its commits
/// are accepted. Users take turns, and so do the devices of each user.
///
/// After a lease without a commit, or one longer than a second, the device rests: it gets no other lease for at least
/// as long as that one lasted. Its user's other devices rest too if other users commit in the zone. A member who never
/// commits can therefore block a zone for at most half of the time. If all queued devices rest, any device may try.
package struct ZoneQueue: Sendable, Codable {
  package struct Lease: Hashable, Sendable, Codable {
    package var holder: ZoneWriter
    var beganMs: UInt64
    var endMs: UInt64
    /// The number of times that the holder's requests may still renew it.
    var renewals = ZoneQueue.renewals
  }

  static let losses = 3
  /// Long enough for most devices to read the commits that they missed and to send one.
  static let leaseMs: UInt64 = 3_000
  /// For a device whose leases keep expiring: it may be slow.
  static let longestLeaseMs: UInt64 = 24_000
  static let renewals = 3
  /// A commit within this time causes no rest.
  static let quickMs: UInt64 = 1_000
  static let longestRestMs: UInt64 = 600_000
  /// A waiting device asks every few seconds. After this time without a request it loses its place.
  static let goneMs: UInt64 = 15_000
  static let memoryMs: UInt64 = 60_000
  static let places = 64
  /// The limit for devices, and for users.
  static let remembered = 128

  private struct Place: Sendable, Codable {
    var writer: ZoneWriter
    var askedMs: UInt64
  }

  private struct Device: Sendable, Codable {
    var losses = 0
    var leaseMs = ZoneQueue.leaseMs
    /// The number of consecutive leases that expired.
    var expired: UInt64 = 0
    var restEndMs: UInt64 = 0
    var lastMs: UInt64
  }

  private struct User: Sendable, Codable {
    /// The number of the most recent lease of any of the user's devices.
    var lease: UInt64 = 0
    var restEndMs: UInt64 = 0
  }

  package private(set) var lease: Lease?
  /// Does not include the holder.
  private var places: [Place] = []
  private var devices: [ZoneWriter: Device] = [:]
  private var users: [UserID: User] = [:]
  private var leases: UInt64 = 0
  package private(set) var lastMs: UInt64

  package init(now: UInt64) { lastMs = now }

  /// Whether a device that asks now may have to wait.
  package var isBusy: Bool { lease != nil || !places.isEmpty }
  package var isForgettable: Bool { !isBusy && devices.isEmpty }
  /// The number of remembered places, devices and users.
  var count: Int { places.count + devices.count + users.count }

  // MARK: Requests of devices

  /// Returns nil if the device may send its commit, else the milliseconds until another device's lease ends.
  package mutating func ask(_ writer: ZoneWriter, now: UInt64) -> UInt64? {
    advance(now)
    guard let current = lease else { return nil }
    note(writer, now) { _ in }
    guard current.holder != writer else {
      renew(now)
      return nil
    }
    join(writer, now)
    return current.endMs - now
  }

  /// Records the outcome of a commit.
  package mutating func ended(_ end: ZoneTurnEnd, _ writer: ZoneWriter, now: UInt64) {
    switch end {
    case .committed: committed(writer, now: now)
    case .lost: lost(writer, now: now)
    case .failed: failed(writer, now: now)
    }
  }

  /// Records that another commit came first.
  mutating func lost(_ writer: ZoneWriter, now: UInt64) {
    advance(now)
    note(writer, now) { $0.losses += 1 }
    guard lease?.holder != writer else { return renew(now) }
    if isBusy || (devices[writer]?.losses ?? 0) >= Self.losses { join(writer, now) }
    advance(now)
  }

  mutating func committed(_ writer: ZoneWriter, now: UInt64) {
    places.removeAll { $0.writer == writer }
    if devices[writer] != nil {
      note(writer, now) { device in
        device.losses = 0
        device.expired = 0
      }
    }
    if let ended = lease, ended.holder == writer { end(ended, now: now, rests: now > ended.beganMs + Self.quickMs) }
    advance(now)
  }

  /// Records that the commit was refused or came too late in another zone. The next device gets the lease.
  mutating func failed(_ writer: ZoneWriter, now: UInt64) {
    if let ended = lease, ended.holder == writer { end(ended, now: now, rests: true) }
    advance(now)
  }

  // MARK: Leases

  /// Ends an expired lease and grants the next one.
  private mutating func advance(_ now: UInt64) {
    lastMs = max(lastMs, now)
    if let expired = lease, expired.endMs <= now {
      devices[expired.holder]?.expired += 1
      end(expired, now: expired.endMs, rests: true)
    }
    guard lease == nil else { return }
    places.removeAll { $0.askedMs + Self.goneMs <= now }
    forget(now)
    guard let next = next(now) else { return }
    let holder = places.remove(at: next).writer
    leases += 1
    note(holder, now) { _ in }
    users[holder.user]?.lease = leases
    lease = Lease(holder: holder, beganMs: now, endMs: now + leaseMs(of: holder))
  }

  /// Returns the first place of the user whose last lease is the longest ago, among those that do not rest.
  private func next(_ now: UInt64) -> Int? {
    places.indices.filter { !rests(places[$0].writer, now) }
      .min { lastLease(of: places[$0]) < lastLease(of: places[$1]) }
  }

  private func rests(_ writer: ZoneWriter, _ now: UInt64) -> Bool {
    if let device = devices[writer], device.restEndMs > now { return true }
    guard let user = users[writer.user], users.count > 1 else { return false }
    return user.restEndMs > now
  }

  private func lastLease(of place: Place) -> UInt64 { users[place.writer.user]?.lease ?? 0 }

  private func leaseMs(of writer: ZoneWriter) -> UInt64 { devices[writer]?.leaseMs ?? Self.leaseMs }

  private mutating func renew(_ now: UInt64) {
    guard var current = lease, current.renewals > 0 else { return }
    current.renewals -= 1
    current.endMs = now + leaseMs(of: current.holder)
    lease = current
  }

  /// A device rests 2ⁿ − 1 times as long as its n-th consecutive expired lease, and its next lease is twice as long.
  private mutating func end(_ ended: Lease, now: UInt64, rests: Bool) {
    lease = nil
    guard rests else { return }
    let lasted = now - min(ended.beganMs, now)
    note(ended.holder, now) { device in
      let times = max((UInt64(1) << min(device.expired, 16)) - 1, 1)
      device.restEndMs = now + min(lasted * times, Self.longestRestMs)
      if device.expired > 0 { device.leaseMs = min(2 * device.leaseMs, Self.longestLeaseMs) }
    }
    users[ended.holder.user]?.restEndMs = now + lasted
  }

  // MARK: Places in the queue

  private mutating func join(_ writer: ZoneWriter, _ now: UInt64) {
    if let index = places.firstIndex(where: { $0.writer == writer }) {
      places[index].askedMs = now
      return
    }
    if places.count >= Self.places { makePlace(for: writer.user) }
    guard places.count < Self.places else { return }
    places.append(Place(writer: writer, askedMs: now))
  }

  /// Removes the newest place of the user with the most places.
  private mutating func makePlace(for user: UserID) {
    let counts = Dictionary(places.map { ($0.writer.user, 1) }, uniquingKeysWith: +)
    guard let most = counts.max(by: { $0.value < $1.value }), most.value > counts[user, default: 0] + 1 else { return }
    if let index = places.lastIndex(where: { $0.writer.user == most.key }) { places.remove(at: index) }
  }

  // MARK: Memory

  private mutating func note(_ writer: ZoneWriter, _ now: UInt64, _ change: (inout Device) -> Void) {
    if users[writer.user] == nil { users[writer.user] = User() }
    var device = devices[writer] ?? Device(lastMs: now)
    change(&device)
    device.lastMs = now
    devices[writer] = device
    if devices.count > Self.remembered { forgetOne(but: writer) }
  }

  private mutating func forget(_ now: UInt64) {
    devices = devices.filter { max($0.value.lastMs, $0.value.restEndMs) + Self.memoryMs > now }
    let known = Set(devices.keys.map(\.user) + places.map(\.writer.user))
    users = users.filter { known.contains($0.key) || $0.value.restEndMs > now }
  }

  /// Forgets one device, resting ones last: forgetting a resting device would end its rest.
  private mutating func forgetOne(but writer: ZoneWriter) {
    let kept = Set(places.map(\.writer) + [writer] + [lease?.holder].compactMap(\.self))
    let least = devices.filter { !kept.contains($0.key) }
      .min { ($0.value.restEndMs, $0.value.lastMs) < ($1.value.restEndMs, $1.value.lastMs) }
    if let least { devices[least.key] = nil }
  }
}
