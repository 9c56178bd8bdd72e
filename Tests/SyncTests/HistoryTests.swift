import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Two devices perform the actions that a seed selects: changes, bursts of changes with a commit each, syncs, pushes
/// without pulls, lost answers, kills, relaunches. => At the end both and a third device show the same tree, every text
/// that no device deleted is in it, and no text is in it twice.
///
/// `ZDC_HISTORIES` is the number of histories; a failure names its seed.
struct HistoryTests {
  private static let count = ProcessInfo.processInfo.environment["ZDC_HISTORIES"].flatMap { UInt64($0) } ?? 100
  private static let worlds: UInt64 = 4

  @Test(arguments: 0..<worlds)
  func randomHistories_convergeAndLoseNothing(world number: UInt64) async throws {
    let clock = ManualClock()
    let server = try await TestServer.start(clock: clock)
    var devices: [TestDevice] = []
    for name in ["A", "B", "W"] { devices.append(try await TestDevice(name, server: server, clock: clock)) }
    let words = try await devices[0].createAccount()
    for device in devices.dropFirst() { try await device.login(words: words) }
    for device in devices {
      device.recorder.dataConflictPolicy = .mergeLines
      try await device.sync()
    }
    for seed in stride(from: number, to: Self.count, by: Int(Self.worlds)) {
      var history = History(seed: seed, a: devices[0], b: devices[1], witness: devices[2])
      try await history.run()
    }
    for device in devices { try await device.close() }
    try await server.stop()
  }
}

private struct History {
  private let seed: UInt64
  private let devices: [TestDevice]
  private let witness: TestDevice
  private let folder: String
  private var numbers: SeededNumbers
  private var model = HistoryModel()
  private var log: [String] = []
  private var nextToken = 0

  init(seed: UInt64, a: TestDevice, b: TestDevice, witness: TestDevice) {
    self.seed = seed
    devices = [a, b]
    self.witness = witness
    folder = "/h\(seed)"
    numbers = SeededNumbers(seed: seed)
  }

  mutating func run() async throws {
    do {
      endLeasesAndPauses()
      try await devices[0].create(folder)
      for device in devices { try await device.sync() }
      for _ in 0..<Int.random(in: 8...20, using: &numbers) { try await step() }
      try await settle()
      try await check()
      try await devices[0].delete(folder)
      try await settle()
      try await witness.pull()
    } catch { throw TestFailure("seed \(seed): \(error)\n\(log.joined(separator: "\n"))") }
  }

  // MARK: Steps

  private mutating func step() async throws {
    let device = devices[Int.random(in: 0...1, using: &numbers)]
    switch Int.random(in: 0..<20, using: &numbers) {
    case 0..<9: try await change(device)
    case 9..<12: try await burst(device)
    case 12: try await hoist(device)
    case 13:
      await attempt("loses an answer", device) {
        device.network.fail(.loseResponse, "POST", "/v1/commits")
        try await device.push()
      }
    case 14: try await die(device)
    case 15: await attempt("pushes", device) { try await device.push() }
    default:
      await attempt("syncs", device) {
        try await device.sync()
        try await device.download()
      }
    }
    device.network.restoreNetwork()
    if Int.random(in: 0..<8, using: &numbers) == 0 {
      await attempt("relaunches", device) { try await device.relaunch() }
    }
  }

  private mutating func change(_ device: TestDevice) async throws {
    switch Int.random(in: 0..<14, using: &numbers) {
    case 0..<5: try await create(device)
    case 5..<8: try await edit(device)
    case 8..<10: try await rename(device)
    case 10..<12: try await move(device)
    case 12: try await delete(device)
    default: try await replace(device)
    }
  }

  /// Makes several changes, each in a commit or all in one. The other device gets them with one pull.
  private mutating func burst(_ device: TestDevice) async throws {
    let isPushed = Bool.random(using: &numbers)
    for _ in 0..<Int.random(in: 2...5, using: &numbers) {
      try await change(device)
      if isPushed { await attempt("pushes", device) { try await device.push() } }
    }
  }

  /// Ends the process between two transactions of a sync, and launches it again.
  private mutating func die(_ device: TestDevice) async throws {
    let commits = Int.random(in: 0...6, using: &numbers)
    device.die(afterCommits: commits)
    await attempt("dies after \(commits) transactions of a sync", device) { try await device.sync() }
    try await device.relaunch()
  }

  private mutating func attempt(
    _ what: String, _ device: TestDevice, _ body: () async throws -> Void
  ) async {
    do {
      try await body()
      log.append("\(device.name) \(what)")
    } catch { log.append("\(device.name) \(what): \(error)") }
  }

  private mutating func token() -> String {
    nextToken += 1
    return "s\(seed)t\(nextToken)"
  }

  private mutating func name() -> String { ["x", "y", "z"].randomElement(using: &numbers) ?? "x" }

  /// Returns the path of a node of the history that the device has, or of its folder.
  private mutating func anyPath(_ device: TestDevice, withFolder: Bool) async throws -> String? {
    let paths = try await device.paths(below: folder) + (withFolder ? [folder] : [])
    return paths.randomElement(using: &numbers)
  }

  private mutating func create(_ device: TestDevice) async throws {
    guard let parent = try await anyPath(device, withFolder: true) else { return }
    try await create(device, "\(parent)/\(name())")
  }

  private mutating func create(_ device: TestDevice, _ path: String) async throws {
    let parent = "/" + path.split(separator: "/").dropLast().joined(separator: "/")
    let text = token()
    await attempt("creates \(path) \(text)", device) { try await device.create(path, text) }
    guard log.last == "\(device.name) creates \(path) \(text)" else { return }
    let node = try await device.node(path)
    model.wrote(text, cloudID: node.cloudID)
    model.placed(node.cloudID, below: try await device.node(parent).cloudID)
  }

  /// Adds a line to the app's content. The app never overwrites content that it has not seen.
  private mutating func edit(_ device: TestDevice) async throws {
    try await device.download()
    guard let path = try await anyPath(device, withFolder: false) else { return }
    let text = token()
    let before = try await device.content(of: path).map { String(decoding: $0.data, as: UTF8.self) } ?? ""
    let node = try await device.node(path)
    await attempt("edits \(path) \(text)", device) { try await device.edit(path, before + "\n" + text) }
    model.wrote(text, cloudID: node.cloudID)
  }

  private mutating func rename(_ device: TestDevice) async throws {
    guard let path = try await anyPath(device, withFolder: false) else { return }
    let name = name()
    await attempt("renames \(path) \(name)", device) { try await device.rename(path, to: name) }
  }

  private mutating func move(_ device: TestDevice) async throws {
    guard let path = try await anyPath(device, withFolder: false),
      let parent = try await anyPath(device, withFolder: true)
    else { return }
    let target = "\(parent)/\(name())"
    let node = try await device.node(path)
    let above = try await device.node(parent)
    await attempt("moves \(path) \(target)", device) { try await device.move(path, to: target) }
    model.placed(node.cloudID, below: above.cloudID)
  }

  private mutating func delete(_ device: TestDevice) async throws {
    guard let path = try await anyPath(device, withFolder: false) else { return }
    try await delete(device, path)
  }

  private mutating func delete(_ device: TestDevice, _ path: String) async throws {
    // A sync may have renamed it in the meantime.
    guard try await device.paths(below: folder).contains(path) else { return }
    let (ids, texts) = try await device.subtree(path)
    await attempt("deletes \(path)", device) { try await device.delete(path) }
    model.delete(ids, texts: texts)
  }

  /// Moves a node out of its folder and deletes the folder.
  private mutating func hoist(_ device: TestDevice) async throws {
    let paths = try await device.paths(below: folder)
    let deep = paths.filter { $0.split(separator: "/").count > 2 }
    guard let path = deep.randomElement(using: &numbers) else { return }
    let above = path.split(separator: "/").dropLast().joined(separator: "/")
    let target = "\(folder)/\(name())"
    let node = try await device.node(path)
    let top = try await device.node(folder)
    await attempt("moves \(path) \(target)", device) { try await device.move(path, to: target) }
    guard log.last == "\(device.name) moves \(path) \(target)" else { return }
    model.placed(node.cloudID, below: top.cloudID)
    if Bool.random(using: &numbers) { await attempt("pushes", device) { try await device.push() } }
    try await delete(device, "/" + above)
  }

  /// Deletes a node and creates another one with its name, with or without a child: file and folder change places.
  private mutating func replace(_ device: TestDevice) async throws {
    guard let path = try await anyPath(device, withFolder: false) else { return }
    try await delete(device, path)
    try await create(device, path)
    if Bool.random(using: &numbers) { try await create(device, "\(path)/\(name())") }
  }

  // MARK: Final checks

  /// Advances the clock, which never moves otherwise. A device that has lost three races holds a lease of the zone
  /// until it commits or the lease expires (PROTOCOL 4.4), and failed operations are paused.
  private func endLeasesAndPauses() { devices[0].clock.advance(by: .seconds(120)) }

  /// Syncs until nothing changes any more. Changes to nodes that were deleted elsewhere are queued again.
  private mutating func settle() async throws {
    for _ in 0..<10 {
      endLeasesAndPauses()
      try await TestWorld.settle(devices)
      var isQuiet = true
      for device in devices where try await device.queueCount() > 0 {
        isQuiet = false
        try await device.reviveAll()
      }
      if isQuiet { return }
    }
    throw TestFailure("the queues do not drain:\n\(try await devices[0].queue())\n--\n\(try await devices[1].queue())")
  }

  private func check() async throws {
    try await witness.pull()
    try await witness.download()
    let tree = try await witness.tree()
    for device in devices {
      let own = try await device.tree()
      guard own == tree else { throw TestFailure("\(device.name) shows\n\(own)\nand the server has\n\(tree)") }
      let errors = try await device.securityErrors()
      guard errors.isEmpty else { throw TestFailure("\(device.name) met \(errors)") }
    }
    let texts = try await witness.subtree(folder).texts
    for token in model.tokens {
      let count = texts.filter { $0 == token }.count
      guard count <= 1 else { throw TestFailure("\(token) is there \(count) times\n\(tree)") }
      guard count == 1 || model.mayBeGone(token) else { throw TestFailure("\(token) is lost\n\(tree)") }
    }
  }
}
