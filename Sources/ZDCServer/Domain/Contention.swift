internal import ZDCProtocol

/// Turns in a zone that many devices write into (PROTOCOL 4.4, `zoneBusy`): once a device has lost five races,
/// or all of them together ten, who wants to commit there stands in a queue, first come, first served, and nobody
/// commits out of turn.
///
/// Pure: time comes in. A turn is one commit, and as long as its device needs. Nobody is shut out: who lets turns pass
/// gets longer ones, but so rarely that each costs the others half the share of time that the one before did.
struct Contention: Sendable {
  struct Device: Hashable, Sendable {
    var user: UserID
    var device: DeviceID
  }

  struct Turn: Hashable, Sendable {
    /// Each step gives the holder its time anew, once: it cannot do anything before.
    enum Step: Hashable, Sendable {
      case called
      case came
      /// It knows what came before its commit.
      case answered
    }

    var holder: Device
    var beganMs: UInt64
    var untilMs: UInt64
    var step = Step.called
  }

  static let losses = 5
  /// Of devices that have not committed since.
  static let lossesOfAll = 10
  /// A turn of who is not known to be slow.
  static let turnMs: UInt64 = 2_000
  /// A turn of who was seen to be slow.
  static let slowTurnMs: UInt64 = 8_000
  /// A turn of who lets one after the other pass.
  static let longestTurnMs: UInt64 = 32_000
  static let longestRestMs: UInt64 = 600_000
  /// A device that sends half of what was refused, to find the one operation, fails ten times.
  static let failures = 16
  /// Who waits asks every few seconds; who has not for so long is gone.
  static let goneMs: UInt64 = 15_000
  static let memoryMs: UInt64 = 60_000
  static let zones = 1_024
  static let devicesPerZone = 64
  /// More than may stand in the queue, so that there is always one that may be forgotten.
  static let knownPerZone = 2 * devicesPerZone

  private var races: [ZoneID: ZoneRace] = [:]

  /// Whether who comes now may have to wait.
  func isBusy(_ zone: ZoneID) -> Bool { races[zone].map { $0.turn != nil || !$0.queue.isEmpty } ?? false }

  func turn(in zone: ZoneID) -> Turn? { races[zone]?.turn }

  /// How many zones, and devices of all of them, are remembered.
  var remembered: (zones: Int, devices: Int) {
    (races.count, races.values.reduce(0) { $0 + $1.known.count + $1.queue.count })
  }

  /// Nil if the device may try, else how long to wait before it asks again; its place in the queue is kept.
  mutating func wait(_ device: Device, zone: ZoneID, now: UInt64) -> UInt64? {
    change(zone, now) { race -> UInt64? in
      race.asked(device, now)
      guard let turn = race.turn else { return nil }
      guard turn.holder != device else {
        race.came(now)
        return nil
      }
      race.join(device, now)
      return min(turn.untilMs, race.restEnd(of: device, now) ?? .max) - now
    } ?? nil
  }

  /// Another commit came first.
  mutating func lost(_ device: Device, zone: ZoneID, now: UInt64) {
    makeRoom(for: zone, now)
    races[zone, default: ZoneRace(lastMs: now)].lost(device, now)
  }

  mutating func won(_ device: Device, zone: ZoneID, now: UInt64) {
    change(zone, now) { $0.won(device, now) }
  }

  /// It did not commit, and not because somebody else came first here: what is left of its turn is for others, and it
  /// may stand behind them.
  ///
  /// - Parameter hasFailed: for a reason of its own; after so many it is as if it had let the turn pass.
  mutating func gaveUp(_ device: Device, zone: ZoneID, hasFailed: Bool, now: UInt64) {
    change(zone, now) { race in
      guard race.turn?.holder == device else { return }
      race.gaveUp(hasFailed: hasFailed, now)
    }
  }

  @discardableResult
  private mutating func change<Value>(
    _ zone: ZoneID, _ now: UInt64, _ body: (inout ZoneRace) -> Value
  ) -> Value? {
    guard var race = races[zone] else { return nil }
    race.lastMs = now
    let value = body(&race)
    races[zone] = race.isOver ? nil : race
    return value
  }

  /// The zone where nothing has happened for longest is forgotten: a busy one is not quiet.
  private mutating func makeRoom(for zone: ZoneID, _ now: UInt64) {
    guard races.count >= Self.zones, races[zone] == nil else { return }
    races = races.filter { $0.value.lastMs + Self.memoryMs > now }
    guard races.count >= Self.zones else { return }
    guard let quietest = races.min(by: { $0.value.lastMs < $1.value.lastMs })?.key else { return }
    races[quietest] = nil
  }
}
