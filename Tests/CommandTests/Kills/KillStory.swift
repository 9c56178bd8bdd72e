import Foundation
import Testing

/// Rounds of work on one world, each with one kill. After each kill, everything acknowledged must still exist. After
/// the recovery, everything wanted must exist, exactly once.
struct KillStory {
  enum Work: String, CaseIterable, Sendable {
    case pushSmall, pushLarge, change, pullSmall, pullLarge, register

    var isPull: Bool { self == .pullSmall || self == .pullLarge }
  }

  struct Scene: Sendable, Hashable {
    var work: Work
    var prey: ProgramWorld.Prey

    static let all = Work.allCases.flatMap { work in ProgramWorld.Prey.allCases.map { Scene(work: work, prey: $0) } }
  }

  let world: ProgramWorld
  var dice: Dice
  /// The traffic of each kind of work, from its last run.
  private var usual: [Work: Meter.Counts] = [:]
  private(set) var round = 0
  private(set) var tally = Tally()

  struct Tally: Sendable {
    var kills = 0
    var missed = 0
    /// Bytes sent again by interrupted large uploads, and the number of these uploads.
    var sentAgain = 0
    var cutUploads = 0
  }

  /// Four parts of 8 MiB.
  static let largeBytes = 32 << 20
  static let author = "author"

  init(_ world: ProgramWorld, seed: UInt64) {
    self.world = world
    dice = Dice(seed: seed)
  }

  // MARK: The frame

  /// Creates an account with a first tree, without a kill, to measure the usual traffic.
  mutating func begin() async throws {
    usual[.register] = try await world.mustRun(
      Self.author, "account", "create", "--server", world.url, "--words-file", words.path
    ).counts
    for name in ["small", "large"] {
      try FileManager.default.createDirectory(at: local(name), withIntermediateDirectories: true)
    }
    try await world.mustRun(Self.author, "put", local("small").path, local("large").path, "home:/")
    let small = try makeSmall()
    usual[.pushSmall] = try await world.mustRun(Self.author, "put", small.path, "home:/small/").counts
    usual[.change] = usual[.pushSmall]
    let large = try makeLarge()
    usual[.pushLarge] = try await world.mustRun(Self.author, "put", large.path, "home:/large/").counts
    try await measurePulls()
    try await expectAll("at the start")
  }

  private mutating func measurePulls() async throws {
    try await login("measure")
    let copy = world.folder.appendingPathComponent("measured")
    for (work, part) in [(Work.pullSmall, "small"), (.pullLarge, "large")] {
      let outcome = try await world.mustRun("measure", "get", "home:/\(part)", copy.path + "/")
      usual[work] = outcome.counts
    }
    try discard("measure", copy)
  }

  /// Plays one round.
  ///
  /// - Returns: whether the kill came in time.
  mutating func play(_ scene: Scene) async throws -> Bool {
    round += 1
    let hasStruck =
      switch scene.work {
      case .pushSmall: try await push(makeSmall(), to: "home:/small/", scene)
      case .pushLarge: try await pushLarge(scene)
      case .change: try await change(scene)
      case .pullSmall: try await pull("small", scene)
      case .pullLarge: try await pull("large", scene)
      case .register: try await register(scene)
      }
    if hasStruck { tally.kills += 1 } else { tally.missed += 1 }
    return hasStruck
  }

  private mutating func moment(_ scene: Scene) -> Moment {
    let usual = usual[scene.work] ?? Meter.Counts()
    let answers = usual.commitAnswers
    let down = Moment.down(dice.number(1...max(1, usual.down)))
    if scene.work.isPull { return dice.number(0...5) == 0 ? .up(dice.number(1...max(1, usual.up))) : down }
    switch dice.number(0...9) {
    case 0...2 where answers > 0: return .commitAnswer(dice.number(1...answers), isDelivered: dice.number(0...1) == 1)
    case 3: return down
    default: return .up(dice.number(1...max(1, usual.up)))
    }
  }

  /// Runs the command until it is killed, and restarts the server.
  private mutating func kill(
    _ device: String, _ arguments: [String], _ scene: Scene
  ) async throws -> (outcome: ProgramWorld.Outcome, said: String) {
    let moment = moment(scene)
    let outcome = try await world.zdc(device, arguments, killing: scene.prey, at: moment)
    let end = outcome.hasStruck ? "exit \(outcome.status)" : "too late"
    let story = "round \(round): \(scene.work), \(scene.prey) killed \(moment), \(end)"
    print("kills: \(story)")
    let said = "\(story)\n\(outcome.errors)"
    if outcome.hasStruck, scene.prey == .server { try await world.restartServer() }
    if !outcome.hasStruck { usual[scene.work] = outcome.counts }
    let expected: Set<Int32> =
      switch (outcome.hasStruck, scene.prey) {
      case (false, _): [0]
      // It may already have had everything that it needed.
      case (true, .client): [0, 128 + 9]
      // A get names the file whose download failed, and exits with 1.
      case (true, .server): scene.work.isPull ? [0, 1, 69, 75] : [0, 69, 75]
      }
    try #require(expected.contains(outcome.status), "\(said)")
    return (outcome, said)
  }

  // MARK: Pushing

  private mutating func push(_ source: URL, to target: String, _ scene: Scene) async throws -> Bool {
    let (outcome, said) = try await kill(Self.author, ["put", source.path, target], scene)
    try await expectAcknowledged(outcome.status == 0, said)
    let again = try await world.mustRun(Self.author, "put", source.path, target)
    if outcome.hasStruck, scene.work == .pushLarge { countAgain(outcome.counts, again.counts, said) }
    // No sync first: put reports only what was really sent.
    try await expectAll(said)
    return outcome.hasStruck
  }

  /// Pushes a second large file, or a new version of the first.
  private mutating func pushLarge(_ scene: Scene) async throws -> Bool {
    let isNew = dice.number(0...1) == 0
    let old = try names(in: "large")
    if !isNew, let name = old.first { outdated["large/\(name)"] = try Data(contentsOf: local("large/\(name)")) }
    let file = try makeLarge(isNew ? nil : old.first)
    let hasStruck = try await push(file, to: "home:/large/", scene)
    outdated = [:]
    guard isNew, let name = old.first else { return hasStruck }
    // Keep no more than one of them, to save disk space.
    try await world.mustRun(Self.author, "rm", "home:/large/\(name)")
    try FileManager.default.removeItem(at: local("large/\(name)"))
    return hasStruck
  }

  private mutating func countAgain(_ first: Meter.Counts, _ second: Meter.Counts, _ said: String) {
    let again = max(0, first.up + second.up - (usual[.pushLarge]?.up ?? 0))
    tally.sentAgain += again
    tally.cutUploads += 1
    #expect(again <= Resuming.mostBytes, "\(again) bytes sent again; \(said)")
  }

  // MARK: Changing

  /// Edits some files, moves a folder, or removes one.
  private mutating func change(_ scene: Scene) async throws -> Bool {
    let folders = try names(in: "small")
    let name = folders[dice.number(0...folders.count - 1)]
    switch folders.count > 2 ? dice.number(0...2) : dice.number(0...1) {
    case 0: return try await edit(name, scene)
    case 1: return try await move(name, "moved-\(round)", scene)
    default: return try await remove(name, scene)
    }
  }

  private mutating func edit(_ name: String, _ scene: Scene) async throws -> Bool {
    for file in try files(below: local("small/\(name)")).sorted().prefix(dice.number(1...40)) {
      let url = local("small/\(name)/\(file)")
      let old = try Data(contentsOf: url)
      outdated["small/\(name)/\(file)"] = old
      try Data(dice.bytes(old.count + 1 + dice.number(0...500))).write(to: url)
    }
    let hasStruck = try await push(local("small/\(name)"), to: "home:/small/", scene)
    outdated = [:]
    return hasStruck
  }

  /// File content before the edit that is being sent.
  private(set) var outdated: [String: Data] = [:]

  private mutating func move(_ name: String, _ new: String, _ scene: Scene) async throws -> Bool {
    let arguments = ["mv", "home:/small/\(name)", "home:/small/\(new)"]
    let (outcome, said) = try await kill(Self.author, arguments, scene)
    // If the command was killed before it queued the change, it is repeated; afterwards the queue is responsible.
    let isQueued = try await world.zdc(Self.author, ["ls", "home:/small/\(name)"]).status != 0
    if outcome.status == 0 { #expect(isQueued, "\(said)") }
    if !isQueued { try await world.mustRun(Self.author, arguments[0], arguments[1], arguments[2]) }
    try FileManager.default.moveItem(at: local("small/\(name)"), to: local("small/\(new)"))
    try await expectSettled(said)
    return outcome.hasStruck
  }

  private mutating func remove(_ name: String, _ scene: Scene) async throws -> Bool {
    let arguments = ["rm", "--recursive", "home:/small/\(name)"]
    let (outcome, said) = try await kill(Self.author, arguments, scene)
    let isQueued = try await world.zdc(Self.author, ["ls", "home:/small/\(name)"]).status != 0
    if outcome.status == 0 { #expect(isQueued, "\(said)") }
    if !isQueued { try await world.mustRun(Self.author, arguments[0], arguments[1], arguments[2]) }
    try FileManager.default.removeItem(at: local("small/\(name)"))
    try await expectSettled(said)
    return outcome.hasStruck
  }

  // MARK: Pulling

  private mutating func pull(_ part: String, _ scene: Scene) async throws -> Bool {
    let device = "reader-\(round)"
    try await login(device)
    let copy = world.folder.appendingPathComponent("copy-\(round)")
    let (outcome, said) = try await kill(device, ["get", "home:/\(part)", copy.path], scene)
    // Existing files stay, and complete ones are not downloaded again: no --overwrite.
    try await world.mustRun(device, "get", "home:/\(part)", copy.path)
    try expectEqual(local(part), copy, said)
    try discard(device, copy)
    return outcome.hasStruck
  }

  // MARK: Registering

  /// An interrupted registration continues with the same account.
  private mutating func register(_ scene: Scene) async throws -> Bool {
    let device = "newcomer-\(round)"
    let arguments = ["account", "create", "--server", world.url, "--json"]
    let (outcome, said) = try await kill(device, arguments, scene)
    let again = try await world.zdc(device, arguments)
    // 73: the account was complete, only its words were not shown.
    try #require(again.status == 0 || again.status == 73, "\(said)\n\(again.errors)")
    let words = world.folder.appendingPathComponent("words-\(round)")
    let shown = try await world.mustRun(device, "account", "show-words")
    try Data(shown.output.utf8).write(to: words)
    try await world.mustRun(device, "put", self.words.path, "home:/first")
    try await world.mustRun(
      device, "--profile", "second", "account", "login", "--server", world.url, "--words-file", words.path)
    let content = try await world.mustRun(device, "--profile", "second", "get", "home:/first", "-")
    #expect(content.output == (try String(contentsOf: self.words, encoding: .utf8)), "\(said)")
    try world.remove(device)
    return outcome.hasStruck
  }
}
