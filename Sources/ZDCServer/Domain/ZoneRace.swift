/// The devices that want to commit in one zone: ``Contention`` has the rule.
struct ZoneRace: Sendable {
  typealias Device = Contention.Device

  /// What is known of a device that has lost, or let a turn pass.
  struct Known: Sendable {
    var losses = 0
    /// Turns in a row that it let pass.
    var passes = 0
    var failures = 0
    /// How long its next turn is.
    var turnMs = Contention.turnMs
    /// When it was told in its turn what it has missed, until it asks again: so long it needs for a commit.
    var answeredMs: UInt64?
    /// Before this it gets no turn.
    var restUntilMs: UInt64 = 0
    var lastMs: UInt64

    func isForgotten(_ now: UInt64) -> Bool { max(lastMs, restUntilMs) + Contention.memoryMs <= now }
  }

  struct Place: Sendable {
    var device: Device
    var askedMs: UInt64
  }

  private(set) var known: [Device: Known] = [:]
  /// Without the one whose turn it is.
  private(set) var queue: [Place] = []
  private(set) var turn: Contention.Turn?
  var lastMs: UInt64

  init(lastMs: UInt64) { self.lastMs = lastMs }

  var isOver: Bool { known.isEmpty && queue.isEmpty && turn == nil }

  func restEnd(of device: Device, _ now: UInt64) -> UInt64? {
    known[device].flatMap { $0.restUntilMs > now ? $0.restUntilMs : nil }
  }

  // MARK: What a device does

  /// A device is here: its place is kept, the turn that it came too late for is over, and what it needed since it was
  /// told what it has missed is its measure.
  mutating func asked(_ device: Device, _ now: UInt64) {
    if let index = queue.firstIndex(where: { $0.device == device }) { queue[index].askedMs = now }
    endTurn(now)
    guard var known = known[device] else { return }
    if let answered = known.answeredMs {
      let need = min(max(2 * (now - min(answered, now)), Contention.turnMs), Contention.slowTurnMs)
      // Half of what it was: one quick commit does not make it a fast device.
      known.turnMs = max(known.passes > 0 ? known.turnMs : known.turnMs / 2, need)
      known.answeredMs = nil
    }
    known.lastMs = now
    self.known[device] = known
  }

  /// The holder has come for its turn.
  mutating func came(_ now: UInt64) {
    if turn?.step == .called { advance(to: .came, now) }
  }

  mutating func lost(_ device: Device, _ now: UInt64) {
    lastMs = now
    known = known.filter { !$0.value.isForgotten(now) || $0.key == turn?.holder }
    asked(device, now)
    note(device, now) { $0.losses += 1 }
    if turn != nil || isLost(for: device) { join(device, now) }
    endTurn(now)
    guard let turn, turn.holder == device else { return }
    note(device, now) { $0.answeredMs = now }
    if turn.step != .answered { advance(to: .answered, now) }
  }

  /// Where many contend, each would wait long for its own five while one of them wins one race after the other.
  private func isLost(for device: Device) -> Bool {
    (known[device]?.losses ?? 0) >= Contention.losses
      || known.values.reduce(0) { $0 + $1.losses } >= Contention.lossesOfAll
  }

  mutating func won(_ device: Device, _ now: UInt64) {
    queue.removeAll { $0.device == device }
    if turn?.holder == device { turn = nil }
    // That it is slow is worth to be known for its next turn.
    if let turnMs = known[device]?.turnMs, turnMs > Contention.turnMs {
      known[device] = Known(turnMs: min(turnMs, Contention.slowTurnMs), lastMs: now)
    } else {
      known[device] = nil
    }
    endTurn(now)
  }

  mutating func gaveUp(hasFailed: Bool, _ now: UInt64) {
    guard let given = turn else { return }
    turn = nil
    if hasFailed {
      note(given.holder, now) { $0.failures += 1 }
      if (known[given.holder]?.failures ?? 0) >= Contention.failures { pass(given, endedMs: now, now) }
    }
    endTurn(now)
  }

  mutating func join(_ device: Device, _ now: UInt64) {
    let isIn = turn?.holder == device || queue.contains { $0.device == device }
    guard !isIn, queue.count < Contention.devicesPerZone, restEnd(of: device, now) == nil else { return }
    queue.append(Place(device: device, askedMs: now))
  }

  // MARK: Turns

  /// Ends a turn whose time is over, and begins the next one's.
  mutating func endTurn(_ now: UInt64) {
    if let passed = turn, passed.untilMs <= now {
      turn = nil
      pass(passed, endedMs: passed.untilMs, now)
    }
    guard turn == nil, !queue.isEmpty else { return }
    queue.removeAll { $0.askedMs + Contention.goneMs <= now }
    guard !queue.isEmpty else { return }
    let next = queue.removeFirst().device
    turn = Contention.Turn(holder: next, beganMs: now, untilMs: now + turnMs(of: next))
  }

  private func turnMs(of device: Device) -> UInt64 { known[device]?.turnMs ?? Contention.turnMs }

  private mutating func advance(to step: Contention.Turn.Step, _ now: UInt64) {
    guard var current = turn else { return }
    current.step = step
    current.untilMs = now + turnMs(of: current.holder)
    turn = current
  }

  /// The turn was not used: the next one is longer, because the device may be slow, and so much later that it has half
  /// the share of time, because it may be broken.
  private mutating func pass(_ turn: Contention.Turn, endedMs: UInt64, _ now: UInt64) {
    let cost = max(endedMs - min(turn.beganMs, endedMs), Contention.turnMs)
    note(turn.holder, now) { known in
      known.passes = min(known.passes + 1, 16)
      known.turnMs = min(2 * known.turnMs, Contention.longestTurnMs)
      let rest = min(cost * ((1 << UInt64(known.passes)) - 1), Contention.longestRestMs)
      known.restUntilMs = endedMs + rest
    }
  }

  // MARK: Memory

  private mutating func note(_ device: Device, _ now: UInt64, _ change: (inout Known) -> Void) {
    if known[device] == nil { makeRoom() }
    var value = known[device] ?? Known(lastMs: now)
    change(&value)
    value.lastMs = now
    known[device] = value
  }

  /// Forgets who does not rest, before who does: it would come back as if nothing had been.
  private mutating func makeRoom() {
    guard known.count >= Contention.knownPerZone else { return }
    var kept = Set(queue.map(\.device))
    if let turn { kept.insert(turn.holder) }
    let least = known.filter { !kept.contains($0.key) }
      .min { ($0.value.restUntilMs, $0.value.lastMs) < ($1.value.restUntilMs, $1.value.lastMs) }
    if let least { known[least.key] = nil }
  }
}
