import Foundation
import GRDB
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Random histories of three people, one of them with two devices. Each shares folders with the others, who graft them,
/// change what is in them, leave them and lose access; folders inside shared folders are shared as well, and grafts are
/// put into shared folders. Nodes move between all of these. Requests lose their answers, and processes end between two
/// transactions.
///
/// => All devices of a person, a new one included, show the same tree, every graft shows what its owner sees, a person
/// without access has no graft, and every text is there unless a person deleted it, a merge journal says what replaced it,
/// or its writer lost access before sending it.
///
/// `ZDC_PEOPLE_HISTORIES` is the number of histories; a failure names its seed, and `ZDC_PEOPLE_HISTORY` is the only seed
/// to run.
struct PeopleHistoryTests {
  private static let seeds: ClosedRange<UInt64> = {
    let environment = ProcessInfo.processInfo.environment
    if let seed = environment["ZDC_PEOPLE_HISTORY"].flatMap({ UInt64($0) }) { return seed...seed }
    return 1...(environment["ZDC_PEOPLE_HISTORIES"].flatMap { UInt64($0) } ?? 40)
  }()

  @Test(arguments: seeds) func everyoneAgrees(seed: UInt64) async throws {
    try await TestWorld.run { world in
      var history = try await PeopleHistory(world, seed: seed)
      try await history.run()
    }
  }
}

private struct PeopleHistory {
  private let seed: UInt64
  private let world: TestWorld
  /// The devices of each person.
  private let people: [[TestDevice]]
  private var numbers: SeededNumbers
  private var model = HistoryModel()
  private var texts: [String: WrittenText] = [:]
  /// For each owner, the people whose access may have ended or been narrowed.
  private var restricted: [Int: Set<Int>] = [:]
  private var log: [String] = []
  private var nextToken = 0

  init(_ world: TestWorld, seed: UInt64) async throws {
    self.world = world
    self.seed = seed
    numbers = SeededNumbers(seed: seed)
    let alice = [try await world.device("alice"), try await world.device("phone")]
    people = [
      alice, [try await world.device("bob", account: "bob")], [try await world.device("carol", account: "carol")],
    ]
    for device in people.joined() {
      device.recorder.dataConflictPolicy = .mergeLines
      try await device.sync()
    }
    for (number, devices) in people.enumerated() {
      for device in devices {
        for (other, others) in people.enumerated() where other != number { try await device.meet(others[0]) }
      }
    }
  }

  private var devices: [TestDevice] { Array(people.joined()) }
  private func folder(of person: Int) -> String { "/f\(person)" }

  mutating func run() async throws {
    do {
      for (person, devices) in people.enumerated() {
        for path in [folder(of: person), folder(of: person) + "/x", folder(of: person) + "/x/y"] {
          try await devices[0].create(path)
        }
        for device in devices { try await device.sync() }
      }
      for _ in 0..<Int.random(in: 25...50, using: &numbers) { try await step() }
      try await settle()
      try await check()
    } catch { throw TestFailure("seed \(seed): \(error)\n\(log.joined(separator: "\n"))") }
  }

  // MARK: Steps

  private mutating func pick(_ range: ClosedRange<Int>) -> Int { Int.random(in: range, using: &numbers) }

  private mutating func step() async throws {
    let person = pick(0...2)
    let device = people[person][pick(0...(people[person].count - 1))]
    switch pick(0...28) {
    case 0...3: try await share(device, of: person)
    case 4: try await unshare(device, of: person)
    case 5...7: try await graft(device, of: person)
    case 8: try await leave(device, of: person)
    case 9...15: try await change(device, of: person)
    case 16:
      await attempt("loses an answer", device) {
        device.network.fail(.loseResponse, "POST", "/v1/commits")
        try await device.sync()
      }
    case 17: try await die(device)
    case 18: await attempt("pushes", device) { try await device.push() }
    case 19: await rotateKeys(device)
    case 20: try await end(device, of: person)
    case 21...23: try await moveAcross(device)
    default: await sync(device)
    }
    device.network.restoreNetwork()
    try await noteIdentities(of: device)
  }

  /// Records which cloud IDs are the same node: a move to another zone changes them, but not a device's local ID.
  private mutating func noteIdentities(of device: TestDevice) async throws {
    let rows = try await device.database.read { transaction in
      try Row.fetchAll(transaction.database, sql: "SELECT uuid, nodeID FROM zdc_node").map { row in
        (uuid: row["uuid"] as String, cloudID: NodeID(row["nodeID"] as Data)?.text ?? "")
      }
    }
    for row in rows { model.isSame("\(device.name) \(row.uuid)", row.cloudID) }
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
      let users = try #require(try device.zdc.localUserManager)
      try await users.rotateKeys(for: try device.localUserID)
      try await device.syncManager.replaceOldKeys(forLocalUserID: try device.localUserID)
    }
  }

  /// Deletes the person's folder, with all that is shared in it, and creates another one.
  private mutating func end(_ device: TestDevice, of person: Int) async throws {
    let path = folder(of: person)
    guard try await paths(device).contains(path) else { return }
    try await delete(device, path)
    for path in [path, path + "/x"] { await attempt("creates \(path)", device) { try await device.create(path) } }
  }

  private mutating func attempt(_ what: String, _ device: TestDevice, _ body: () async throws -> Void) async {
    do {
      try await body()
      log.append("\(device.name) \(what)")
    } catch { log.append("\(device.name) \(what): \(error)") }
  }

  private func isDone(_ what: String, _ device: TestDevice) -> Bool { log.last == "\(device.name) \(what)" }

  private mutating func other(than person: Int) -> Int { (person + pick(1...2)) % 3 }

  private mutating func branch(of person: Int) -> String { folder(of: person) + ["", "", "/x"][pick(0...2)] }

  private mutating func share(_ device: TestDevice, of person: Int) async throws {
    let (path, other) = (branch(of: person), other(than: person))
    let letters = ["r", "rw", "rw", "rws"][pick(0...3)]
    if letters == "r" { restricted[person, default: []].insert(other) }
    let guest = people[other][0]
    await attempt("shares \(path) with \(guest.name) \(letters)", device) {
      try await device.share(path, with: guest, letters)
    }
  }

  private mutating func unshare(_ device: TestDevice, of person: Int) async throws {
    let (path, other) = (branch(of: person), other(than: person))
    restricted[person, default: []].insert(other)
    let guest = people[other][0]
    await attempt("unshares \(path) with \(guest.name)", device) { try await device.unshare(path, with: guest) }
  }

  private mutating func graft(_ device: TestDevice, of person: Int) async throws {
    let owner = other(than: person)
    let path = branch(of: owner)
    let sender = people[owner][0]
    guard try await sender.members(device, of: path)[device.name] != nil else { return }
    nextToken += 1
    let place = [pick(0...3) == 0 ? folder(of: person) : ""][0] + "/g\(nextToken)"
    await attempt("grafts \(path) of \(sender.name) at \(place)", device) {
      try await device.graft(place, try await sender.invite(path), from: sender)
    }
  }

  private mutating func leave(_ device: TestDevice, of person: Int) async throws {
    guard let path = try await device.graftPaths().randomElement(using: &numbers) else { return }
    // Leaving discards the changes that the person has not sent.
    for owner in people.indices where owner != person { restricted[owner, default: []].insert(person) }
    await attempt("leaves \(path)", device) { try await device.delete(path) }
  }

  private mutating func change(_ device: TestDevice, of person: Int) async throws {
    switch pick(0...9) {
    case 0...3: try await create(device, of: person)
    case 4...5: try await edit(device, of: person)
    case 6: try await rename(device)
    case 7...8: try await move(device)
    default: try await delete(device)
    }
  }

  // MARK: Changes of nodes

  private func paths(_ device: TestDevice) async throws -> [String] { try await device.paths(below: "") }

  private mutating func anyPath(_ device: TestDevice) async throws -> String? {
    try await paths(device).randomElement(using: &numbers)
  }

  /// A node that is neither a person's folder nor a graft.
  private mutating func anyInnerPath(_ device: TestDevice) async throws -> String? {
    try await paths(device).filter { path in
      let parts = path.split(separator: "/")
      return parts.count > 1 && parts.last?.first != "g"
    }.randomElement(using: &numbers)
  }

  private mutating func token() -> String {
    nextToken += 1
    return "s\(seed)t\(nextToken)"
  }

  private mutating func name() -> String { ["x", "y", "z"].randomElement(using: &numbers) ?? "x" }

  private mutating func create(_ device: TestDevice, of person: Int) async throws {
    guard let parent = try await anyPath(device) else { return }
    let (path, text) = ("\(parent)/\(name())", token())
    let what = "creates \(path) \(text)"
    await attempt(what, device) { try await device.create(path, text) }
    guard isDone(what, device) else { return }
    let node = try await device.node(path)
    try wrote(text, node, device, person)
    model.placed(node.cloudID, below: try await device.node(parent).cloudID)
  }

  private mutating func edit(_ device: TestDevice, of person: Int) async throws {
    await attempt("downloads", device) { try await device.download() }
    guard let path = try await anyInnerPath(device) else { return }
    let text = token()
    let before = try await device.content(of: path).map { String(decoding: $0.data, as: UTF8.self) } ?? ""
    let node = try await device.node(path)
    let what = "edits \(path) \(text)"
    await attempt(what, device) { try await device.edit(path, before + "\n" + text) }
    if isDone(what, device) { try wrote(text, node, device, person) }
  }

  private mutating func wrote(_ token: String, _ node: ZDCNode, _ device: TestDevice, _ person: Int) throws {
    model.wrote(token, cloudID: node.cloudID)
    let owner = try owner(of: node) ?? person
    texts[token] = WrittenText(device: device.name, writer: person, owners: [owner])
  }

  private func owner(of node: ZDCNode) throws -> Int? {
    try people.firstIndex { try $0[0].localUserID == node.anchor?.userID }
  }

  private mutating func rename(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device) else { return }
    let name = name()
    await attempt("renames \(path) \(name)", device) { try await device.rename(path, to: name) }
  }

  private mutating func move(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device), let parent = try await anyPath(device) else { return }
    try await move(device, path, below: parent)
  }

  /// Moves a node to another top folder or graft.
  private mutating func moveAcross(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device) else { return }
    let others = try await paths(device).filter { $0.split(separator: "/").first != path.split(separator: "/").first }
    guard let parent = others.randomElement(using: &numbers) else { return }
    try await move(device, path, below: parent)
  }

  private mutating func move(_ device: TestDevice, _ path: String, below parent: String) async throws {
    let target = "\(parent)/\(name())"
    let (above, node) = (try await device.node(parent), try await device.node(path))
    let moved = Set(try await device.subtree(path).ids)
    let what = "moves \(path) \(target)"
    await attempt(what, device) { try await device.move(path, to: target) }
    guard isDone(what, device) else { return }
    model.placed(node.cloudID, below: above.cloudID)
    guard let owner = try owner(of: above) else { return }
    for token in model.tokens where model.isWritten(token, into: moved) { texts[token]?.owners.insert(owner) }
  }

  private mutating func delete(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device) else { return }
    try await delete(device, path)
  }

  private mutating func delete(_ device: TestDevice, _ path: String) async throws {
    let (ids, texts) = try await device.subtree(path)
    await attempt("deletes \(path)", device) { try await device.delete(path) }
    model.delete(ids, texts: texts)
  }

  // MARK: Final checks

  /// Syncs until nothing changes any more. Every member may write in the end, so that what is queued can go.
  private mutating func settle() async throws {
    for round in 0..<12 {
      world.clock.advance(by: .seconds(120))
      try await TestWorld.settle(devices)
      if try await isEmpty() { return }
      if round % 2 == 0 { try await letEveryoneWrite() }
      for device in devices where try await device.queueCount() > 0 { try await device.reviveAll() }
    }
    var queues = ""
    for device in devices { queues += "\(device.name): \(try await device.queue())\n" }
    throw TestFailure("the queues do not drain:\n\(queues)")
  }

  private func isEmpty() async throws -> Bool {
    for device in devices where try await device.queueCount() > 0 { return false }
    return true
  }

  private mutating func letEveryoneWrite() async throws {
    for (person, devices) in people.enumerated() {
      for path in [folder(of: person), folder(of: person) + "/x"] {
        for (other, guests) in people.enumerated() where other != person {
          let letters = try await devices[0].members(guests[0], of: path)[guests[0].name]
          if letters == "r" { try await devices[0].share(path, with: guests[0], "rw") }
        }
      }
    }
  }

  private func check() async throws {
    let newcomer = people[Int(seed % 3)][0]
    let account = ["alice", "bob", "carol"][Int(seed % 3)]
    let fresh = try await world.device("fresh", account: account)
    try await TestWorld.settle([fresh])
    let tree = try await newcomer.tree()
    guard try await fresh.tree() == tree else {
      throw TestFailure("a new device of \(account) shows\n\(try await fresh.tree())\nand the first one\n\(tree)")
    }
    try await PeopleHistoryCheck(people: people, model: model, texts: texts, restricted: restricted).run()
  }
}
