import Foundation
import Testing

/// SIGKILL to real processes at moments that a seed chooses. ZDC_SEED repeats a run, ZDC_KILLS sets the number of
/// kills.
@Suite("Kills", .serialized)
struct KillTests {
  static let seed = number("ZDC_SEED") ?? UInt64.random(in: 1...999_999_999)
  static let count = Int(number("ZDC_KILLS") ?? 20)
  /// Kills on one server with one account; then the next world begins.
  static let killsPerWorld = 10

  private static func number(_ variable: String) -> UInt64? {
    ProcessInfo.processInfo.environment[variable].flatMap { UInt64($0) }
  }

  static let worlds = Array(0..<(count + killsPerWorld - 1) / killsPerWorld)

  @Test("acknowledged changes stay, nothing is duplicated, and the queue drains", arguments: worlds)
  func killing(_ number: Int) async throws {
    let seed = Self.seed &+ UInt64(number)
    let wanted = min(Self.killsPerWorld, Self.count - number * Self.killsPerWorld)
    print("kills: ZDC_SEED=\(Self.seed), world \(number), \(wanted) kills")
    let world = try await ProgramWorld()
    var story = KillStory(world, seed: seed)
    do { try await play(&story, wanted, number) } catch {
      await world.end()
      throw error
    }
    await world.end()
    let tally = story.tally
    print(
      "kills: \(tally.kills) kills, \(tally.missed) came too late; \(tally.cutUploads) large uploads were cut, "
        + "\(tally.sentAgain) bytes of them were sent again")
  }

  /// Plays every scene in turn, in an order that the seed determines, over all worlds.
  private func play(_ story: inout KillStory, _ wanted: Int, _ number: Int) async throws {
    var order = Dice(seed: Self.seed)
    let deck = KillStory.Scene.all.shuffled(using: &order)
    try await story.begin()
    for turn in 0..<wanted {
      let scene = deck[(number * Self.killsPerWorld + turn) % deck.count]
      var tries = 0
      while try await !story.play(scene) {
        tries += 1
        try #require(tries < 5, "the kill never came in time: \(scene)")
      }
    }
  }

  /// The second run finds the small files that the first one wrote, and continues the large one where it stopped.
  @Test(arguments: [ProgramWorld.Prey.client, .server])
  func anInterruptedGet_isContinued(_ prey: ProgramWorld.Prey) async throws {
    let world = try await ProgramWorld()
    var story = KillStory(world, seed: Self.seed)
    do {
      try await story.begin()
      try await story.login("late")
      let copy = world.folder.appendingPathComponent("copy")
      let get = ["get", "home:/", copy.path]
      let cut = try await world.zdc("late", get, killing: prey, at: .down(KillStory.largeBytes * 3 / 4))
      #expect(cut.hasStruck && cut.status != 0)
      if prey == .server {
        try await world.restartServer()
        // The files and folders that were written are known, so they are neither conflicts nor changes.
        let small = copy.appendingPathComponent("small").path + "/."
        let put = try await world.mustRun("late", "put", small, "home:/small", "--dry-run")
        #expect(put.errors.contains("would send 0 nodes"), "\(put.errors)")
      }
      let again = try await world.mustRun("late", "get", "home:/", copy.path)
      #expect(again.counts.down < KillStory.largeBytes * 3 / 4, "\(again.counts.down) bytes")
      try story.expectEqual(world.want, copy, "\(prey)")
    } catch {
      await world.end()
      throw error
    }
    await world.end()
  }

  /// Proves that the expectations notice a server that loses acknowledged work.
  @Test func aServerThatForgets_isNoticed() async throws {
    let world = try await ProgramWorld()
    var story = KillStory(world, seed: Self.seed)
    do {
      try await story.begin()
      try Data([1]).write(to: story.local("forgotten"))
      try await world.forgetting {
        try await world.mustRun(KillStory.author, "put", story.local("forgotten").path, "home:/")
      }
      await withKnownIssue { try await story.expectAcknowledged(true, "forgotten") }
    } catch {
      await world.end()
      throw error
    }
    await world.end()
  }

  @Test func theMeter_countsToTheByte_andKnowsCommitAnswers() {
    var awaits = false
    var meter = Meter(.up(10))
    #expect(meter.pass(Array(0..<7)[...], .up, awaitsCommitAnswer: &awaits) == (7, false))
    #expect(meter.pass(Array(0..<7)[...], .down, awaitsCommitAnswer: &awaits) == (7, false))
    #expect(meter.pass(Array(0..<7)[...], .up, awaitsCommitAnswer: &awaits) == (3, true))
    #expect(meter.counts == .init(up: 10, down: 7))

    for isDelivered in [true, false] {
      let answer = Array("HTTP/1.1 200 OK\r\n\r\n".utf8)
      meter = Meter(.commitAnswer(2, isDelivered: isDelivered))
      for count in 1...2 {
        _ = meter.pass(Array("POST /v1/commits HTTP/1.1\r\n".utf8)[...], .up, awaitsCommitAnswer: &awaits)
        #expect(awaits)
        let verdict = meter.pass(answer[...], .down, awaitsCommitAnswer: &awaits)
        #expect(verdict == (count == 2 && !isDelivered ? 0 : answer.count, count == 2))
        #expect(!awaits)
        #expect(meter.counts.commitAnswers == count)
      }
    }
  }
}
