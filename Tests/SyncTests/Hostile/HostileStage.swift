import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// One world for all scenarios, made once: an account with a writer and a victim, snapshots of the server, and the
/// outcome with an honest server. Each scenario gets a fork of the server and a twin of the victim.
struct HostileStage: Sendable {
  let server: TestServer
  /// The server when the victim last synced (`early`), and with all later changes of the writer (`late`).
  let early: TestServer.Backup
  let late: TestServer.Backup
  let words: [String]
  let user: UserID
  /// Closed. It has pulled and downloaded everything of `early`, and has changes queued.
  let victim: TestDevice
  /// Closed. A twin of the victim that has everything of `late` as well.
  let current: TestDevice
  /// The home zone as of `late`, opened, and as of `early`.
  let zone: RogueZone
  let earlyZone: RogueZone
  /// The film's ciphertext before it was edited.
  let oldFilm: [UInt8]
  /// Another user's account on the same server.
  let stranger: RogueWriter
  let strangerZone: RogueZone
  /// The state of an honest twin after a pull and a download, without a push.
  let reference: DeviceState
  /// The tree after everything was synced.
  let finalTree: String

  @TaskLocal static var current: HostileStage?

  static func make() async throws -> HostileStage {
    let clock = ManualClock()
    let server = try await TestServer.start(clock: clock)
    let writer = try await TestDevice("A", server: server, clock: clock)
    let words = try await writer.createAccount()
    try await writeEarly(writer)
    let victim = try await TestDevice("B", server: server, clock: clock)
    try await victim.login(words: words)
    try await TestWorld.settle([victim])
    try await victim.create("/mine", "queued")
    try await victim.edit("/kept", "edited here")
    try await victim.close()
    guard let user = UserID(text: try writer.localUserID) else { throw TestFailure("no user id") }
    let rogue = try await RogueWriter(words: words, user: user, server: server)
    let earlyZone = try await rogue.home()
    let oldFilm = try await rogue.content(try earlyZone.node("film").record)
    let early = try await server.backup()
    try await writeLate(writer)
    try await writer.close()
    let (stranger, strangerZone) = try await makeStranger(server, clock)
    let zone = try await rogue.home()
    let late = try await server.backup()
    let honest = try await TestDevice("B", twinOf: victim)
    try await honest.pull()
    try await honest.download()
    let reference = try await DeviceState(of: honest)
    try await honest.close()
    let current = try await TestDevice("B", twinOf: honest)
    try await current.close()
    let finalTree = try await finish(honest, server, late, clock)
    return HostileStage(
      server: server, early: early, late: late, words: words, user: user, victim: victim, current: current, zone: zone,
      earlyZone: earlyZone, oldFilm: oldFilm, stranger: stranger, strangerZone: strangerZone, reference: reference,
      finalTree: finalTree)
  }

  private static func writeEarly(_ a: TestDevice) async throws {
    for path in ["/folder", "/gone"] { try await a.create(path) }
    for (path, text) in [("/folder/inner", "i"), ("/small", "one"), ("/other", "two"), ("/kept", "kept")] {
      try await a.create(path, text)
    }
    try await a.create("/left", "same size")
    try await a.create("/right", "size same")
    try await a.create("/film", film(seed: 1))
    try await a.sync()
  }

  /// Makes one commit of each group of changes.
  private static func writeLate(_ a: TestDevice) async throws {
    try await a.edit("/small", "one more")
    try await a.sync()
    try await a.create("/new", "fresh")
    try await a.sync()
    try await a.rename("/other", to: "renamed")
    try await a.sync()
    try await a.edit("/left", "same Size")
    try await a.edit("/right", "Size same")
    try await a.sync()
    try await a.delete("/gone")
    try await a.sync()
    try await a.edit("/film", to: film(seed: 2))
    try await a.sync()
  }

  /// A film larger than what a reader holds in memory.
  private static func film(seed: UInt8) -> TestContent {
    TestContent(
      data: EndToEndTests.bytes(2_300_000, seed: seed), metadata: Data("a film".utf8),
      thumbnail: EndToEndTests.bytes(3_000, seed: 9))
  }

  private static func makeStranger(
    _ server: TestServer, _ clock: ManualClock
  ) async throws -> (RogueWriter, RogueZone) {
    let device = try await TestDevice("M", server: server, clock: clock)
    let words = try await device.createAccount()
    // This log is longer than the victim's.
    for number in 0..<4 {
      try await device.create("/planted\(number)", "planted")
      try await device.sync()
    }
    guard let user = UserID(text: try device.localUserID) else { throw TestFailure("no user id") }
    try await device.close()
    let rogue = try await RogueWriter(words: words, user: user, server: server)
    return (rogue, try await rogue.home())
  }

  private static func finish(
    _ honest: TestDevice, _ server: TestServer, _ late: TestServer.Backup, _ clock: ManualClock
  ) async throws -> String {
    let fork = try await server.fork(late, clock: clock)
    let hostile = HostileServer(fork)
    let twin = try await TestDevice("B", twinOf: honest, through: hostile)
    try await TestWorld.settle([twin])
    let tree = try await twin.tree(versions: false)
    try await twin.close()
    try await fork.stop()
    return tree
  }

  func end() async throws { try await server.stop() }
}

/// Makes the stage when the suite begins, and ends it with the suite.
struct HostileStageTrait: SuiteTrait, TestScoping {
  let isRecursive = false

  func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @Sendable () async throws -> Void
  ) async throws {
    let stage = try await HostileStage.make()
    do {
      try await HostileStage.$current.withValue(stage) { try await function() }
    } catch {
      try await stage.end()
      throw error
    }
    try await stage.end()
  }
}
