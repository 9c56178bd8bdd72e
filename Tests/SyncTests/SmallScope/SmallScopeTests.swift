import Foundation
import Testing
import ZeroDarkCloudTesting

/// Every short sequence of changes of two devices over a small tree, under every placement of pulls and pushes. => Both
/// devices and a fresh one show what the table of outcomes of PROTOCOL 3.7 says, and every text is there unless an app
/// deleted it or wrote over it.
@Suite("Small scope", .serialized, .timeLimit(.minutes(30))) struct SmallScopeTests {
  @Test("every sequence of one or two operations, every schedule")
  func upToTwoOperations() async throws {
    let cases = (1...2).flatMap { SmallSchedule.all(operations: $0) }.flatMap { SmallCase.all($0) }
    try await SmallScope(name: "up to two operations", cases).check()
  }

  /// Schedules in which no device is overtaken: those with a 409 are in the sample. About 31,000 cases, for `make test-long`.
  @Test(
    "every sequence of three operations that change the shape of the tree around a folder",
    .enabled(if: ProcessInfo.processInfo.environment["ZDC_SMALL_SCOPE"] != nil))
  func threeOperations() async throws {
    let schedules = SmallSchedule.all(operations: 3).filter { !$0.isOvertaken }
    let cases = schedules.flatMap { SmallCase.all($0, isCore: true) }
    try await SmallScope(name: "three operations around a folder", cases).check()
  }

  /// `ZDC_SMALL_SCOPE` says how many cases, `ZDC_SEED` which ones.
  @Test("a sample of the sequences of three and of four operations, every schedule", arguments: 3...4)
  func sample(operations count: Int) async throws {
    let environment = ProcessInfo.processInfo.environment
    let wanted = environment["ZDC_SMALL_SCOPE"].flatMap { Int($0) } ?? 250
    let seed = environment["ZDC_SEED"].flatMap { UInt64($0) } ?? 1
    let cases = SmallCase.sample(operations: count, cases: wanted, seed: seed)
    try await SmallScope(name: "a sample of \(count) operations, ZDC_SEED=\(seed)", cases).check()
  }

  // MARK: What it has found

  @Test(
    "M1: a folder that was moved out of a deleted one keeps its children on a device that pulls both",
    arguments: [SmallNode.top, .e], ["a0 a1 A> Bv", "a0 A> a1 A> Bv"])
  func movedOutOfADeletedFolder(target: SmallNode, schedule: String) async throws {
    try await Self.check([.move(.n, target), .delete(.k)], schedule)
  }

  @Test(
    "M19: what another device moved out in time keeps its children on the device that deletes the folder",
    arguments: [SmallNode.top, .e])
  func movedOutBeforeTheDelete(target: SmallNode) async throws {
    try await Self.check([.delete(.k), .move(.n, target)], "a0 b1 B> Av A> Bv")
  }

  @Test(
    "M18: a node that is replaced while another device moves something into it does not block the queue",
    arguments: [SmallNode.n, .f, .k])
  func replacedWhileSomethingIsMovedIn(moved: SmallNode) async throws {
    try await Self.check([.replace(.e), .move(moved, .e)], "a0 b1 B> Av A> Bv")
  }

  private static func check(_ operations: [SmallOperation], _ schedule: String) async throws {
    let schedules = SmallSchedule.all(operations: operations.count)
    let found = try #require(schedules.first { $0.description == schedule })
    try await SmallScope(name: "one case", [SmallCase(schedule: found, operations: operations)]).check()
  }
}

/// Plays cases, hundreds at a time.
struct SmallScope: Sendable {
  let name: String
  private let batches: [[SmallCase]]
  private let count: Int
  private let undecided: Int

  /// Cases in one world; a commit has at most 1,000 operations, and each push must fit into one.
  private static let size = 250
  private static let weight = 900
  private static let width = 2

  init(name: String, _ all: [SmallCase]) {
    self.name = name
    let models = all.map { ($0, $0.expected()) }.filter { $0.1 != nil }
    count = models.count
    undecided = models.count { $0.1?.isUndecided == true }
    var batches: [[SmallCase]] = []
    var weight = 0
    for (played, _) in models {
      weight += played.weight
      let isFull = weight > Self.weight || batches.last?.count == Self.size
      if isFull || batches.last?.last?.schedule != played.schedule {
        batches.append([])
        weight = played.weight
      }
      batches[batches.count - 1].append(played)
    }
    self.batches = batches
  }

  func check() async throws {
    print("small scope: \(name): \(count) cases, \(undecided) of them in part not in the table")
    let failures = try await play()
    for failure in failures.prefix(40) { print("small scope: \(failure.played)\n  \(failure.text)") }
    expectNone(failures)
  }

  private func expectNone(_ failures: [SmallWorld.Failure]) {
    let first = failures.first.map { "\($0.played)\n\($0.text)" } ?? ""
    #expect(failures.count == 0, "\(failures.count) of \(count) cases of \(name); the first: \(first)")
  }

  /// Each world takes every second batch.
  private func play() async throws -> [SmallWorld.Failure] {
    try await withThrowingTaskGroup(of: [SmallWorld.Failure].self) { group in
      for first in 0..<min(Self.width, batches.count) {
        let mine = stride(from: first, to: batches.count, by: Self.width).map { batches[$0] }
        group.addTask { try await Self.play(mine) }
      }
      return try await group.reduce(into: []) { $0 += $1 }
    }
  }

  private static func play(_ batches: [[SmallCase]]) async throws -> [SmallWorld.Failure] {
    let world = try await SmallWorld(size: batches.map(\.count).max() ?? 1)
    var failures: [SmallWorld.Failure] = []
    do {
      for batch in batches {
        failures += try await failuresAlone(try await world.play(batch))
        if failures.count > 200 { break }
      }
    } catch {
      try await world.end()
      throw error
    }
    try await world.end()
    return failures
  }

  /// A commit that the server refuses takes the other cases in it along: only what fails alone is a failure.
  private static func failuresAlone(_ suspects: [SmallWorld.Failure]) async throws -> [SmallWorld.Failure] {
    guard !suspects.isEmpty else { return [] }
    let world = try await SmallWorld(size: 1)
    var failures: [SmallWorld.Failure] = []
    for suspect in suspects { failures += try await world.play([suspect.played]) }
    try await world.end()
    return failures
  }
}
