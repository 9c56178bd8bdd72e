import Foundation
import Synchronization
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A lie and its required outcome. The rows are those of the catalogue and of the list of scenarios in SECURITY.md.
struct HostileScenario: Sendable, CustomTestStringConvertible {
  enum Ending: Sendable {
    /// Nothing is pulled from or pushed to the zone until the user decides.
    case freezes
    /// The same until the next launch, when the server's log extends the pin.
    case suspends
    /// One node keeps its last good version until a valid put.
    case quarantines
    /// A typed error and nothing else; the next attempt succeeds if the server is honest then.
    case fails
    /// Nothing to detect.
    case passes
  }

  enum Start: Sendable {
    /// Has everything that the server had before the writer's latest commits, and queued changes.
    case behind
    /// Has everything that the server has.
    case current
    /// Has only the words.
    case fresh
  }

  enum Step: Sendable {
    case pull, push, sync, download, meta
    case export
  }

  var rows: [String]
  var story: String
  /// The error's code.
  var error: String
  var ending: Ending
  var start = Start.behind
  var step = Step.pull
  /// Whether the lie begins before a fresh device logs in.
  var fromLogin = false
  /// False for an answer with content of many nodes, which as a whole accuses none of them.
  var accusesNode = true
  var arrange: @Sendable (HostileAct) async throws -> Void
  /// Nodes that an authorised writer created on the way and that are shown like all others: the prefixes of their
  /// paths, and of the delegate's lines about them.
  var reveals: [String]
  /// Whether the step must write nothing, on the device or on the server.
  var isRefused = false
  /// The action that ends a quarantine.
  var mend: (@Sendable (HostileAct) async throws -> Void)?

  var testDescription: String { "\(rows.joined(separator: ",")): \(story) → \(error)" }

  init(
    _ rows: String..., story: String, error: String, _ ending: Ending, from start: Start = .behind,
    by step: Step = .pull,
    fromLogin: Bool = false, accusesNode: Bool = true, reveals: [String] = [],
    mend: (@Sendable (HostileAct) async throws -> Void)? = nil,
    _ arrange: @escaping @Sendable (HostileAct) async throws -> Void
  ) {
    self.rows = rows
    self.story = story
    self.error = error
    self.ending = ending
    self.start = start
    self.step = step
    self.fromLogin = fromLogin
    self.accusesNode = accusesNode
    self.reveals = reveals
    self.arrange = arrange
    self.mend = mend
  }
}

/// A scenario in progress: the stage, a fork of its server behind a lying proxy, and the victim.
struct HostileAct: Sendable {
  /// Commits that only the lying proxy shows.
  final class Injected: Sendable {
    private let commits = Mutex<[ZoneCommit]>([])
    var value: [ZoneCommit] { commits.withLock { $0 } }
    func add(_ more: [ZoneCommit]) { commits.withLock { $0 += more } }
  }

  /// Words that a person types in place of the stage's words.
  final class Typed: Sendable {
    private let words = Mutex<[String]?>(nil)
    var value: [String]? { words.withLock { $0 } }
    func set(_ new: [String]) { words.withLock { $0 = new } }
  }

  /// Servers besides the fork, which stop with it.
  final class Servers: Sendable {
    private let servers = Mutex<[TestServer]>([])
    var value: [TestServer] { servers.withLock { $0 } }
    func add(_ server: TestServer) { servers.withLock { $0.append(server) } }
  }

  let injected = Injected()
  let typed = Typed()
  let others = Servers()
  let stage: HostileStage
  let fork: TestServer
  let hostile: HostileServer
  let victim: TestDevice

  var zone: RogueZone { stage.zone }

  static func start(_ scenario: HostileScenario) async throws -> HostileAct {
    guard let stage = HostileStage.current else { throw TestFailure("no stage") }
    let clock = ManualClock()
    let fork = try await stage.server.fork(stage.late, clock: clock)
    let hostile = HostileServer(fork)
    let victim =
      switch scenario.start {
      case .behind: try await TestDevice("B", twinOf: stage.victim, through: hostile)
      case .current: try await TestDevice("B", twinOf: stage.current, through: hostile)
      case .fresh: try await TestDevice("B", server: stage.server, clock: clock, through: hostile)
      }
    let act = HostileAct(stage: stage, fork: fork, hostile: hostile, victim: victim)
    // Everything outside the scenario's subject is set up first.
    if scenario.start == .behind, ![.pull, .sync, .push].contains(scenario.step) { try await victim.pull() }
    if scenario.start == .fresh, !scenario.fromLogin { try await victim.login(words: stage.words) }
    return act
  }

  func rogue() async throws -> RogueWriter {
    try await RogueWriter(
      words: stage.words, user: stage.user, server: fork, origin: stage.server.url.absoluteString)
  }

  func tell(_ lies: Lie..., from occurrence: Int = 1, times: Int = .max) {
    for lie in lies { hostile.tell(lie, from: occurrence, times: times) }
  }

  /// Shows commits after the log's head that an honest server would not have accepted.
  func inject(_ commits: ZoneCommit..., records: [NodeRecord] = [], acl: ZoneACL? = nil, grants: [Grant] = []) {
    var items = (acl.map { [ServedItem($0)] } ?? []) + grants.map { ServedItem($0) }
    items += commits.map { ServedItem($0) } + records.map { ServedItem($0) }
    guard let last = commits.last else { return }
    injected.add(commits)
    tell(.add(items, to: zone.zone), .head(zone.zone, seq: last.fields.seq, hash: last.hash))
  }

  func end() async throws {
    try await victim.close()
    for server in others.value + [fork] { try await server.stop() }
  }
}

// MARK: Running

extension HostileScenario {
  /// Plays the lie and checks everything that SECURITY.md, "What every scenario must show", asks for.
  func perform() async throws {
    let act = try await HostileAct.start(self)
    do {
      try await perform(act)
    } catch {
      try await act.end()
      throw error
    }
    try await act.end()
  }

  private func perform(_ act: HostileAct) async throws {
    // Everything arranged before the lie is part of the world: other commits, an honest pull.
    try await arrange(act)
    let before = try await DeviceState(of: act.victim)
    act.hostile.forgetRequests()
    let thrown = await attempt(act)
    #expect(act.hostile.liesTold > 0 || mend != nil, "the server told no lie")
    let during = try await DeviceState(of: act.victim)
    checkError(thrown, during, before)
    // The largest limit is that of a chain; the slice that exceeds it comes on top.
    #expect(act.hostile.mostBytesTaken(by: "B") < 21 << 20, "too much was taken in")
    if isRefused || (step != .push && step != .sync) { try await checkLosses(during, before, act) }
    _ = await attempt(act)
    if isAboutContent { #expect(try await DeviceState(of: act.victim).events == during.events, "an event told twice") }
    checkRequests(act)
    if ending == .freezes { try await checkFrozen(act) }
    if ending == .suspends { try await checkLifted(act) }
    try await checkMended(act)
  }

  /// - Returns: The code of the thrown error.
  private func attempt(_ act: HostileAct) async -> String? {
    do {
      if start == .fresh, act.victim.localUserIDs.isEmpty {
        try await act.victim.login(words: act.typed.value ?? act.stage.words)
      }
      try await run(act.victim)
      return nil
    } catch { return Self.code(of: error) }
  }

  private func run(_ victim: TestDevice) async throws {
    switch step {
    case .pull: try await victim.pull()
    case .push: try await victim.push()
    case .sync: try await victim.sync()
    case .download: try await victim.download()
    case .meta:
      guard let manager = try victim.zdc.downloadManager else { return }
      _ = try await manager.downloadNodeMeta(try await victim.node("/film"), components: [.metadata, .thumbnail])
    case .export:
      guard let manager = try victim.zdc.downloadManager else { return }
      let url = victim.folder.appendingPathComponent("export.sqlite-film")
      do {
        _ = try await manager.downloadNodeData(try await victim.node("/film"), toFile: url)
      } catch {
        #expect(!FileManager.default.fileExists(atPath: url.path), "a file that was not verified")
        throw error
      }
    }
  }

  private var isAboutContent: Bool { [.download, .meta, .export].contains(step) }

  static func code(of error: any Error) -> String {
    switch error {
    case let error as ZDCSecurityError: error.code.rawValue
    case let error as TransportError: error.code.rawValue
    case let error as ServerError: error.code.rawValue
    case let error as ZDCError: error.code.rawValue
    default: String(describing: type(of: error))
    }
  }

  // MARK: Expectations

  private func checkError(_ thrown: String?, _ now: DeviceState, _ before: DeviceState) {
    let met = now.events.dropFirst(before.events.count)
    let codes = Set(met.map(\.code) + [thrown].compactMap { $0 })
    #expect(codes == (error.isEmpty ? [] : [error]))
    switch ending {
    case .freezes, .suspends:
      #expect(met.allSatisfy(\.hasZone) && !met.isEmpty, "an event without its zone")
      #expect(Array(now.frozen.values) == [error])
    case .quarantines:
      #expect(met.allSatisfy { $0.hasZone && $0.hasNode && $0.hasUser } && !met.isEmpty, "an event without ids")
      #expect(now.frozen.isEmpty)
    case .fails:
      #expect(now.frozen.isEmpty && now.quarantined.isEmpty)
      // An error of a pull may have no caller to report it to; the table has it.
      if step == .pull, !fromLogin { #expect(met.allSatisfy(\.hasZone) && !met.isEmpty, "an event without its zone") }
      if isRefused { #expect(met.allSatisfy(\.hasUser) && !met.isEmpty, "an event without its user") }
      // "Not found" is no proof, and the server's statements about itself are no security errors.
      if isAboutContent, ZDCSecurityError.Code(rawValue: error) ?? .objectMissing != .objectMissing {
        #expect(met.allSatisfy { $0.hasZone && $0.hasNode == accusesNode } && !met.isEmpty, "an event without its ids")
      }
    case .passes: #expect(now.frozen.isEmpty && now.quarantined.isEmpty)
    }
  }

  private func checkLosses(_ now: DeviceState, _ before: DeviceState, _ act: HostileAct) async throws {
    // A fresh device starts with some rows; the error must not have changed them.
    if start == .fresh, fromLogin {
      if ending != .passes, act.victim.localUserIDs.isEmpty {
        #expect(now.losses(since: before, reference: before) == [])
      }
    } else if start != .fresh {
      let log = try await act.signedLog()
      #expect(
        now.losses(since: before, reference: act.stage.reference, log: log).filter { !isRevealed($0) } == [])
    }
  }

  private func isRevealed(_ loss: String) -> Bool {
    guard !reveals.isEmpty else { return false }
    return loss.contains(": none became") || reveals.contains { loss.contains($0) }
  }

  /// After a lie, the device gives no one a key, and reveals nothing that the server did not know.
  private func checkRequests(_ act: HostileAct) {
    for request in act.hostile.requests where request.liesBefore > 0 {
      let made = ["/v1/accounts", "/v1/account/links", "/v1/trees/{appTreeID}"].contains(request.route.pattern)
      #expect(request.route.method == "GET" || !made, "\(request.route) after a lie")
      #expect(!isRefused || request.route.pattern != "/v1/commits", "a push after a lie")
      guard request.route.pattern == "/v1/commits" else { continue }
      #expect(ending != .freezes && ending != .suspends, "a push into a frozen zone")
      var reader = ZDCProtocol.Bundle.Reader(request.body)
      while let item = try? reader.next() {
        switch item {
        case .grant, .acl, .link: Issue.record("\(item) was sent after a lie")
        default: break
        }
      }
    }
  }

  /// Local data stays readable, and the queue accepts changes and waits.
  private func checkFrozen(_ act: HostileAct) async throws {
    act.hostile.stopTampering()
    try await act.victim.relaunch()
    if start == .fresh { return }
    let count = try await act.victim.queueCount()
    try await act.victim.create("/while-frozen", "x")
    try await act.victim.sync()
    #expect(try await act.victim.queueCount() > count)
    try await act.victim.delete("/while-frozen")
    try await act.victim.sync()
  }

  /// Nothing proves that the server lied, and it no longer does: the user has nothing to decide.
  private func checkLifted(_ act: HostileAct) async throws {
    act.hostile.stopTampering()
    try await act.victim.relaunch()
    try await act.victim.sync()
    #expect(try await DeviceState(of: act.victim).frozen == [:])
  }

  /// The server is honest again, or the user has decided: everything arrives, and nothing was lost.
  private func checkMended(_ act: HostileAct) async throws {
    act.hostile.stopTampering()
    try await mend?(act)
    if ending == .freezes { try await act.acceptServerState() }
    if act.victim.localUserIDs.isEmpty { try await act.victim.login(words: act.typed.value ?? act.stage.words) }
    act.victim.clock.advance(by: .seconds(3_600))
    try await TestWorld.settle([act.victim])
    let expected = start == .fresh ? act.stage.freshTree : act.stage.finalTree
    let tree = try await act.victim.tree(versions: false).split(separator: "\n")
      .filter { line in !reveals.contains { line.hasPrefix($0) } }
    #expect(tree.joined(separator: "\n") == expected)
    let state = try await DeviceState(of: act.victim)
    #expect(state.operations == [] && state.frozen == [:] && state.quarantined == [:])
  }
}

extension HostileAct {
  /// Accepts the server's state of each frozen zone, after a local copy, as the user may decide.
  func acceptServerState() async throws {
    let (manager, user) = (try victim.syncManager, try victim.localUserID)
    for zone in try await manager.frozenZones(localUserID: user) {
      try await manager.acceptServerState(ofZone: zone.zone, localUserID: user)
    }
  }

  /// Returns the commits that an authorised writer signed and that the server or the lying proxy shows.
  func signedLog() async throws -> Set<String> {
    var commits = injected.value
    commits += try await rogue().homeObjects().commits
    let key = zone.keys.signingKey.publicKey
    return Set(
      commits.filter { Signatures.isValid($0.signature, by: key, label: "commit", message: $0.signedBytes) }
        .map { hexadecimal($0.hash.bytes).uppercased() })
  }
}

extension HostileStage {
  /// The final tree of a device without local changes.
  var freshTree: String {
    finalTree.split(separator: "\n").filter { !$0.hasPrefix("/mine") }.joined(separator: "\n")
      .replacingOccurrences(of: "edited here", with: "kept")
  }
}
