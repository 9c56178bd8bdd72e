import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// One random history of several people: draws their actions, performs them, and records them in a model.
struct PeopleHistory {
  let seed: UInt64
  let world: TestWorld
  let people: People
  var numbers: SeededNumbers
  /// The numbers that decide about rare changes. The others stay the same when one is added.
  var rareNumbers: SeededNumbers
  var model = PeopleModel()
  let log: HistoryLog
  var nextToken = 0
  /// Messages that were sent before the change of the access list on which they depend.
  let early = EarlyMessages()
  /// The senders of whom each person had messages that waited.
  private var heldFrom: [Int: Set<String>] = [:]

  init(_ world: TestWorld, seed: UInt64, log: HistoryLog) async throws {
    (self.world, self.seed, self.log) = (world, seed, log)
    numbers = SeededNumbers(seed: seed)
    rareNumbers = SeededNumbers(seed: ~seed)
    people = try await People(world, count: 2 + Int(seed % 4), &numbers)
  }

  mutating func run() async throws {
    try await begin()
    for _ in 0..<pick(30...55) { try await step() }
    try await people.unblockAll()
    try await people.settleAsTheyAre()
    try await accessCheck().checkWriters()
    try await people.settle(log)
    try await removeAMember()
    try await people.settle(log)
    heldFrom = try await people.acceptHeldMessages()
    if !heldFrom.isEmpty { try await people.settle(log) }
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
    case 31: try await changeKeys(device, of: person)
    case 32: await log.attempt("pushes", device) { try await device.push() }
    default: await sync(device)
    }
    device.network.restoreNetwork()
    try await model.noteIdentities(of: device)
  }

  private mutating func sync(_ device: TestDevice) async {
    let isSynced = await log.attempt("syncs", device) {
      try await device.sync()
      try await device.download()
    }
    guard isSynced, let count = try? await device.queueCount(), count == 0 else { return }
    model.sentAll(device)
  }

  private mutating func disturb(_ device: TestDevice) async throws {
    switch pick(0...2) {
    case 0:
      await log.attempt("loses an answer", device) {
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
    await log.attempt("dies after \(commits) transactions of a sync", device) { try await device.sync() }
    try await device.relaunch()
  }

  // MARK: The end

  private func check() async throws {
    let person = Int(seed % UInt64(people.count))
    let (first, fresh) = (people[person][0], try await people.newDevice(of: person))
    try await TestWorld.settle([fresh])
    let tree = try await first.tree()
    guard try await fresh.tree() == tree, try await fresh.received() == first.received() else {
      throw TestFailure("a new device of \(first.name) shows\n\(try await fresh.tree())\nand the first one\n\(tree)")
    }
    try await PeopleHistoryCheck(people: people.devicesByPerson, model: model).run()
    try await accessCheck().run()
    try await checkAskedRights()
    let former = try FormerMemberCheck(world.server)
    for devices in people.devicesByPerson { try former.run(try await devices[0].userKeys) }
    let messages = PeopleMessageCheck(
      people: people.devicesByPerson, model: model, early: early.texts, heldFrom: heldFrom)
    try await messages.run()
    for (person, devices) in people.devicesByPerson.enumerated() {
      for device in devices {
        world.expectsSecurityErrors(try await messages.explainedGaps(on: device, of: person), on: device)
      }
    }
  }

  private func checkAskedRights() async throws {
    var model = model
    for device in people.devices { try await model.noteIdentities(of: device) }
    let users = try people.devicesByPerson.map { try $0[0].userID }
    let changes = try RightsModel.Change.all(of: world.server)
    let unsent = try await people.unsentListChanges()
    let check = AskedRightsCheck(
      users: users, asks: people.asked.asks, unsent: unsent, nodes: model.nodes, changes: changes)
    try check.run()
    // Changes that the check has accepted stay queued.
    for device in people.devices where unsent.waiting.contains(where: { $0.device == device.name }) {
      world.mayWait(device)
    }
  }

  private func accessCheck() throws -> PeopleAccessCheck {
    PeopleAccessCheck(
      people: people.devicesByPerson, model: model, access: try AccessModel(world.server),
      rights: RightsModel(try RightsModel.Change.all(of: world.server)))
  }
}
