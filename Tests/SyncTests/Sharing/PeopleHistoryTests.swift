import Foundation
import Testing
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Random histories of three people, one of them with two devices. Each shares folders with the others, who graft them,
/// change what is in them, leave them and lose access; folders inside shared folders are shared as well, and grafts are
/// put into shared folders. Requests lose their answers, and processes end between two transactions.
///
/// => All devices of a person show the same tree, every graft shows what its owner sees, a person without access has no
/// graft, and every text that was sent is there unless a person deleted it.
///
/// `ZDC_PEOPLE_HISTORIES` is the number of histories; a failure names its seed.
struct PeopleHistoryTests {
  private static let count = ProcessInfo.processInfo.environment["ZDC_PEOPLE_HISTORIES"].flatMap { UInt64($0) } ?? 40

  @Test(arguments: 1...count) func everyoneAgrees(seed: UInt64) async throws {
    try await TestWorld.run { world in
      var history = try await PeopleHistory(world, seed: seed)
      try await history.run()
    }
  }
}

private struct PeopleHistory {
  /// The author of a text, and the owner of the tree.
  private struct Text {
    let device: String
    let writer: Int
    let owner: Int
    /// Whether the device had sent it, before the writer could lose access.
    var isSent = false
  }

  private let seed: UInt64
  private let world: TestWorld
  /// The devices of each person.
  private let people: [[TestDevice]]
  private var numbers: SeededNumbers
  private var model = HistoryModel()
  private var texts: [String: Text] = [:]
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
    switch pick(0...25) {
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
    default: await sync(device)
    }
    device.network.restoreNetwork()
  }

  private mutating func sync(_ device: TestDevice) async {
    await attempt("syncs", device) {
      try await device.sync()
      try await device.download()
    }
    guard isDone("syncs", device), let count = try? await device.queueCount(), count == 0 else { return }
    for (token, text) in texts where text.device == device.name && !isRestricted(text) { texts[token]?.isSent = true }
  }

  private func isRestricted(_ text: Text) -> Bool { restricted[text.owner]?.contains(text.writer) == true }

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
    guard let path = try await grafts(device).randomElement(using: &numbers) else { return }
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

  /// The tops of other people's branches in the tree of the device's user.
  private func grafts(_ device: TestDevice) async throws -> [String] {
    var found: [String] = []
    for path in try await paths(device) where path.split(separator: "/").last?.first == "g" { found.append(path) }
    return found
  }

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
    let owner = try people.firstIndex { try $0[0].localUserID == node.anchor?.userID } ?? person
    texts[token] = Text(device: device.name, writer: person, owner: owner)
  }

  private mutating func rename(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device) else { return }
    let name = name()
    await attempt("renames \(path) \(name)", device) { try await device.rename(path, to: name) }
  }

  private mutating func move(_ device: TestDevice) async throws {
    guard let path = try await anyInnerPath(device), let parent = try await anyPath(device) else { return }
    let target = "\(parent)/\(name())"
    let above = try await device.node(parent)
    let node = try await device.node(path)
    // A move to another branch changes cloudIDs, by which the model knows nodes: see ZoneMoveTests.
    let isInside = try await device.database.read { transaction in
      guard let row = try transaction.nodes.node(uuid: node.uuid) else { return false }
      return try transaction.place(of: row).zone == transaction.nodes.node(uuid: above.uuid)?.zone
    }
    guard isInside else { return }
    await attempt("moves \(path) \(target)", device) { try await device.move(path, to: target) }
    model.placed(node.cloudID, below: above.cloudID)
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
    for devices in people {
      let tree = try await devices[0].tree()
      for device in devices.dropFirst() where try await device.tree() != tree {
        throw TestFailure("\(device.name) shows\n\(try await device.tree())\nand \(devices[0].name)\n\(tree)")
      }
    }
    for devices in people { try await checkGrafts(devices[0]) }
    try await checkTexts()
  }

  /// Each graft shows its owner's branch, without the branches in it that the person may not read or has grafted elsewhere.
  private func checkGrafts(_ device: TestDevice) async throws {
    let grafts = try await grafts(device)
    for owner in people.map({ $0[0] }) where owner !== device {
      let originals = try await originals(of: grafts, on: device, in: owner)
      for (path, original) in originals {
        let hidden = originals.values.filter { $0.hasPrefix(original + "/") }
        let shown = try await lines(device, path, as: device, in: owner, original, except: hidden)
        let own = try await lines(owner, original, as: device, in: owner, original, except: hidden)
        guard shown != own else { continue }
        throw TestFailure("\(device.name) shows at \(path)\n\(shown)\nand \(owner.name) at \(original)\n\(own)")
      }
    }
  }

  /// The paths that an owner's device has for the nodes that are shown at grafts.
  private func originals(
    of grafts: [String], on device: TestDevice, in owner: TestDevice
  ) async throws -> [String: String] {
    var paths: [String: String] = [:]
    for path in try await self.paths(owner) { paths[try await owner.cloudID(path)] = path }
    var found: [String: String] = [:]
    for graft in grafts { found[graft] = paths[try await device.cloudID(graft)] }
    return found
  }

  /// The nodes below a path, as far as `guest` may read their originals.
  private func lines(
    _ device: TestDevice, _ path: String, as guest: TestDevice, in owner: TestDevice, _ original: String,
    except hidden: [String]
  ) async throws -> [String] {
    var lines: [String] = []
    for line in (try await device.branch(path) ?? "").split(separator: "\n") {
      let below = original + (line.range(of: "  ").map { line[..<$0.lowerBound] } ?? line)
      guard !hidden.contains(where: { below == $0 || below.hasPrefix($0 + "/") }),
        try await owner.members(guest, of: below)[guest.name] != nil
      else { continue }
      lines.append(String(line))
    }
    return lines
  }

  private func checkTexts() async throws {
    var found: Set<String> = []
    for devices in people {
      for path in try await paths(devices[0]) {
        let data = try await devices[0].content(of: path)?.data ?? Data()
        found.formUnion(String(decoding: data, as: UTF8.self).split(separator: "\n").map(String.init))
      }
    }
    for (token, text) in texts.sorted(by: { $0.key < $1.key }) where !found.contains(token) {
      if model.mayBeGone(token) || (isRestricted(text) && !text.isSent) { continue }
      throw TestFailure("\(token) is lost")
    }
  }
}
