import Synchronization
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// One random history of several people.
struct PeopleHistory {
  private static let names = ["alice", "bob", "carol", "dave", "eve"]
  private static let maximumDevices = 6

  let seed: UInt64
  let world: TestWorld
  /// The devices of each person.
  let people: [[TestDevice]]
  var numbers: SeededNumbers
  var model = HistoryModel()
  var messages = MessageModel()
  var texts: [String: WrittenText] = [:]
  /// For each owner, the people whose access may have ended or been narrowed.
  var restricted: [Int: Set<Int>] = [:]
  let log: HistoryLog
  var nextToken = 0
  /// Messages that were sent before the change of the access list on which they depend.
  let early = EarlyMessages()

  init(_ world: TestWorld, seed: UInt64, log: HistoryLog) async throws {
    (self.world, self.seed, self.log) = (world, seed, log)
    numbers = SeededNumbers(seed: seed)
    let count = 2 + Int(seed % 4)
    var people: [[TestDevice]] = []
    for name in Self.names.prefix(count) { people.append([try await world.device(name, account: name)]) }
    for _ in 0..<Int.random(in: 0...min(2, Self.maximumDevices - count), using: &numbers) {
      let person = Int.random(in: 0..<count, using: &numbers)
      let name = "\(Self.names[person]) \(people[person].count + 1)"
      people[person].append(try await world.device(name, account: Self.names[person]))
    }
    self.people = people
    for device in devices {
      device.recorder.dataConflictPolicy = .mergeLines
      device.countMessageCalls()
      try await device.sync()
    }
    try await introduce()
  }

  /// All people know each other, and take each other's messages.
  private func introduce() async throws {
    for (number, devices) in people.enumerated() {
      for device in devices {
        for (other, others) in people.enumerated() where other != number {
          try await device.meet(others[0])
          try await device.acceptMessages(of: others[0])
        }
      }
    }
  }

  var devices: [TestDevice] { Array(people.joined()) }
  func folder(of person: Int) -> String { "/f\(person)" }

  mutating func run() async throws {
    try await begin()
    for _ in 0..<pick(30...55) { try await step() }
    try await unblockAll()
    try await settleAsTheyAre()
    try await checkWriters()
    try await settle()
    try await removeAMember()
    try await settle()
    try await check()
  }

  // MARK: Steps

  mutating func pick(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &numbers) }

  /// Another person.
  mutating func other(than person: Int) -> Int { (person + pick(1...(people.count - 1))) % people.count }

  mutating func token() -> String {
    nextToken += 1
    return "s\(seed)t\(nextToken)"
  }

  private mutating func step() async throws {
    let person = pick(0...(people.count - 1))
    let device = people[person][pick(0...(people[person].count - 1))]
    switch pick(0...39) {
    case 0...10: try await shareStep(device, of: person)
    case 11...17: try await change(device, of: person)
    case 18...20: try await moveAcross(device)
    case 21: try await end(device, of: person)
    case 22...27: try await messageStep(device, of: person)
    case 28...30: try await disturb(device)
    case 31: await rotateKeys(device)
    case 32: await attempt("pushes", device) { try await device.push() }
    default: await sync(device)
    }
    device.network.restoreNetwork()
    try await noteIdentities(of: device)
  }

  /// Records which cloud IDs are the same node: a move to another zone changes them, but not a device's local ID.
  private mutating func noteIdentities(of device: TestDevice) async throws {
    for row in try await device.rows() { model.isSame("\(device.name) \(row.uuid)", row.cloudID) }
  }

  private mutating func sync(_ device: TestDevice) async {
    await attempt("syncs", device) {
      try await device.sync()
      try await device.download()
    }
    guard isDone("syncs", device), let count = try? await device.queueCount(), count == 0 else { return }
    for (token, text) in texts where text.device == device.name && !text.isRestricted(restricted) {
      texts[token]?.isSent = true
    }
  }

  private mutating func disturb(_ device: TestDevice) async throws {
    switch pick(0...2) {
    case 0:
      await attempt("loses an answer", device) {
        device.network.fail(.loseResponse, "POST", "/v1/commits")
        try await device.sync()
      }
    case 1: try await die(device)
    // After that, another device takes over messages that were not sent.
    default: world.clock.advance(by: .seconds(1_800))
    }
  }

  /// Ends the process between two transactions of a sync, and launches it again.
  private mutating func die(_ device: TestDevice) async throws {
    let commits = pick(0...8)
    device.die(afterCommits: commits)
    await attempt("dies after \(commits) transactions of a sync", device) { try await device.sync() }
    try await device.relaunch()
  }

  /// Replaces the person's keys, and after a removal those of the nodes.
  private mutating func rotateKeys(_ device: TestDevice) async {
    await attempt("rotates keys", device) {
      try await device.rotateKeys()
      try await device.syncManager.replaceOldKeys(forLocalUserID: try device.localUserID)
    }
  }

  mutating func attempt(_ what: String, _ device: TestDevice, _ body: () async throws -> Void) async {
    do {
      try await body()
      log.append("\(device.name) \(what)")
    } catch { log.append("\(device.name) \(what): \(error)") }
  }

  func isDone(_ what: String, _ device: TestDevice) -> Bool { log.lines.last == "\(device.name) \(what)" }

  // MARK: The end

  /// Syncs until nothing changes any more. What members may not write stays queued.
  private func settleAsTheyAre() async throws {
    for _ in 0..<3 {
      world.clock.advance(by: .seconds(1_800))
      try await TestWorld.settle(devices)
    }
  }

  /// Syncs until nothing changes any more. Every member may write in the end, so that what is queued can go.
  private mutating func settle() async throws {
    for round in 0..<12 {
      world.clock.advance(by: .seconds(120))
      try await TestWorld.settle(devices)
      if try await isEmpty() { return }
      if round % 2 == 0 { try await letEveryoneWrite() }
      // A device that has not read yet that its user may write refuses this, and does it in the next round.
      for device in devices where try await device.queueCount() > 0 {
        await attempt("revives its queue", device) { try await device.reviveAll() }
      }
    }
    var queues = ""
    for device in devices { queues += "\(device.name): \(try await device.queue())\n" }
    throw TestFailure("the queues do not drain:\n\(queues)")
  }

  private func isEmpty() async throws -> Bool {
    for device in devices where try await device.queueCount() > 0 { return false }
    return true
  }

  private var account: Int { Int(seed % UInt64(people.count)) }

  private func check() async throws {
    let newcomer = people[account][0]
    let fresh = try await world.device("fresh", account: Self.names[account])
    try await TestWorld.settle([fresh])
    let tree = try await newcomer.tree()
    guard try await fresh.tree() == tree, try await fresh.received() == newcomer.received() else {
      throw TestFailure("a new device of \(newcomer.name) shows\n\(try await fresh.tree())\nand the first one\n\(tree)")
    }
    let access = try AccessModel(world.server)
    try await PeopleHistoryCheck(people: people, model: model, texts: texts, restricted: restricted).run()
    try await PeopleAccessCheck(people: people, texts: texts, access: access).run()
    try await PeopleMessageCheck(people: people, messages: messages.messages, early: early.texts).run()
  }

  /// Each text that another person has was written by a person whom an access list allowed to write it.
  private func checkWriters() async throws {
    let access = try AccessModel(world.server)
    try await PeopleAccessCheck(people: people, texts: texts, access: access).checkWriters()
  }
}

/// The steps of a history, with their outcomes.
final class HistoryLog: Sendable {
  private let kept = Mutex<[String]>([])

  var lines: [String] { kept.withLock { $0 } }

  func append(_ line: String) { kept.withLock { $0.append(line) } }
}
