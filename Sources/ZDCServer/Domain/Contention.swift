internal import ZDCProtocol

/// Turns in a zone that many devices write into (PROTOCOL 4.4, `zoneBusy`): once a device has lost five races, who
/// wants to commit there stands in a queue, first come, first served, and nobody commits out of turn.
///
/// Pure: time comes in. A turn is one commit. Bounded: a turn that is not used ends by itself, who lets two pass gets
/// no third, who fails in sixteen gets no more, who is silent for a minute is forgotten, and so is whoever does not fit.
struct Contention: Sendable {
  struct Device: Hashable, Sendable {
    var user: UserID
    var device: DeviceID
  }

  struct Turn: Hashable, Sendable {
    var holder: Device
    var untilMs: UInt64
  }

  private struct Loser {
    var losses = 0
    var passes = 0
    var failures = 0
    var lastMs: UInt64
  }

  private struct Race {
    var losers: [Device: Loser] = [:]
    /// Without the one whose turn it is.
    var queue: [Device] = []
    var turn: Turn?

    var isOver: Bool { losers.isEmpty && queue.isEmpty && turn == nil }
  }

  static let losses = 5
  /// The first turn's length, and that of the one after a turn that was let pass: a slow device needs more.
  static let turnsMs: [UInt64] = [2_000, 8_000]
  /// A device that sends half of what was refused, to find the one operation, fails ten times.
  static let failures = 16
  private static let memoryMs: UInt64 = 60_000
  private static let zones = 1_024
  static let devicesPerZone = 64

  private var races: [ZoneID: Race] = [:]

  /// Whether who comes now may have to wait.
  func isBusy(_ zone: ZoneID) -> Bool { races[zone].map { $0.turn != nil || !$0.queue.isEmpty } ?? false }

  func turn(in zone: ZoneID) -> Turn? { races[zone]?.turn }

  /// Nil if the device may try, else how long the turn of somebody else may last; its place in the queue is kept.
  mutating func wait(_ device: Device, zone: ZoneID, now: UInt64) -> UInt64? {
    guard var race = races[zone] else { return nil }
    Self.endTurns(of: &race, now: now)
    defer { races[zone] = race.isOver ? nil : race }
    guard let turn = race.turn, turn.holder != device else { return nil }
    Self.join(device, &race)
    return turn.untilMs - now
  }

  /// Another commit came first.
  mutating func lost(_ device: Device, zone: ZoneID, now: UInt64) {
    makeRoom(now)
    var race = races[zone] ?? Race()
    race.losers = race.losers.filter { $0.value.lastMs + Self.memoryMs > now }
    var loser = race.losers[device] ?? Loser(lastMs: now)
    loser.losses += 1
    loser.lastMs = now
    if race.losers[device] != nil || race.losers.count < Self.devicesPerZone { race.losers[device] = loser }
    if loser.losses >= Self.losses || race.turn != nil { Self.join(device, &race) }
    Self.endTurns(of: &race, now: now)
    races[zone] = race
  }

  mutating func won(_ device: Device, zone: ZoneID, now: UInt64) {
    guard var race = races[zone] else { return }
    race.losers[device] = nil
    race.queue.removeAll { $0 == device }
    if race.turn?.holder == device { race.turn = nil }
    Self.endTurns(of: &race, now: now)
    races[zone] = race.isOver ? nil : race
  }

  /// It did not commit, and not because somebody else came first here: what is left of its turn is for others, and it
  /// may stand behind them.
  ///
  /// - Parameter hasFailed: for a reason of its own; so often only, or it would hold the queue up for ever.
  mutating func gaveUp(_ device: Device, zone: ZoneID, hasFailed: Bool, now: UInt64) {
    guard var race = races[zone], race.turn?.holder == device else { return }
    race.turn = nil
    if hasFailed { Self.note(\.failures, of: device, &race, now: now) }
    Self.endTurns(of: &race, now: now)
    races[zone] = race.isOver ? nil : race
  }

  private static func join(_ device: Device, _ race: inout Race) {
    let isIn = race.turn?.holder == device || race.queue.contains(device)
    guard !isIn, race.queue.count < devicesPerZone else { return }
    if let loser = race.losers[device], loser.passes >= turnsMs.count || loser.failures >= failures { return }
    race.queue.append(device)
  }

  /// Ends a turn whose time is over, and begins the next one's.
  private static func endTurns(of race: inout Race, now: UInt64) {
    if let turn = race.turn, turn.untilMs <= now { endTurn(of: &race, now: now) }
    guard race.turn == nil, !race.queue.isEmpty else { return }
    let next = race.queue.removeFirst()
    let passes = race.losers[next]?.passes ?? 0
    race.turn = Turn(holder: next, untilMs: now + turnsMs[min(passes, turnsMs.count - 1)])
  }

  /// The turn was not used.
  private static func endTurn(of race: inout Race, now: UInt64) {
    guard let holder = race.turn?.holder else { return }
    race.turn = nil
    note(\.passes, of: holder, &race, now: now)
  }

  private static func note(_ count: WritableKeyPath<Loser, Int>, of device: Device, _ race: inout Race, now: UInt64) {
    var loser = race.losers[device] ?? Loser(lastMs: now)
    loser[keyPath: count] += 1
    loser.lastMs = now
    race.losers[device] = loser
  }

  private mutating func makeRoom(_ now: UInt64) {
    guard races.count >= Self.zones else { return }
    races = races.filter { $0.value.losers.contains { $0.value.lastMs + Self.memoryMs > now } }
    if races.count >= Self.zones { races.removeAll() }
  }
}
