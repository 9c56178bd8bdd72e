import Foundation
import Testing
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// A move to another zone that is interrupted twice: other content at the old place follows to the copies, and before it is
/// sent, the old place changes again.
struct ZoneMoveInterruptionTests {
  typealias Moving = ZoneMoveTests.Moving

  enum SecondChange: CaseIterable, Sendable {
    case edit, rename, sibling
  }

  /// Moves a folder of Alice's to her list. Another device changes its content before it is deleted at the old place, the
  /// process ends after some transactions, and the other device changes the old place again.
  ///
  /// - Returns: Whether the process ended, and whether the other device had changed the content before.
  private static func interrupt(
    _ moving: Moving, _ second: TestDevice, _ change: SecondChange, afterCommits commits: Int
  ) async throws -> (isKilled: Bool, isEdited: Bool) {
    let (alice, old) = (moving.alice, "/old\(commits)")
    try await alice.create(old, "top")
    try await alice.create(old + "/inner", "first")
    try await TestWorld.settle([alice, second])
    try await alice.move(old, to: "/list/new\(commits)")
    let edit: @Sendable () async throws -> Void = {
      try await second.edit(old + "/inner", "second")
      try await second.push()
    }
    alice.network.fail(.before(edit), "POST", Routes.commits, occurrence: 2)
    alice.die(afterCommits: commits)
    do { try await alice.sync() } catch { #expect(alice.isDead, "\(error)") }
    let isEdited = try await second.content(of: old + "/inner")?.data == Data("second".utf8)
    guard alice.isDead, isEdited else { return (alice.isDead, isEdited) }
    switch change {
    case .edit: try await second.edit(old + "/inner", "third")
    case .rename: try await second.rename(old + "/inner", to: "renamed")
    case .sibling: try await second.create(old + "/sibling", "sibling")
    }
    try await second.push()
    return (true, true)
  }

  @Test("killed while other content follows a move, and the old place changes again: the newest content arrives once")
  func killedTwice() async throws {
    for change in SecondChange.allCases {
      try await TestWorld.run { world in
        let moving = try await Moving(world)
        let (alice, second) = (moving.alice, try await world.device("second"))
        var interrupted = 0
        for commits in 0..<30 {
          let (isKilled, isEdited) = try await Self.interrupt(moving, second, change, afterCommits: commits)
          if isKilled, isEdited { interrupted += 1 }
          alice.network.restoreNetwork()
          try await alice.relaunch()
          try await moving.expectEqual(second)
          let copies = try await alice.branch("/list/new\(commits)") ?? ""
          let text = !isEdited ? "first" : isKilled && change == .edit ? "third" : "second"
          #expect(
            copies.contains("\"\(text)\"") && copies.components(separatedBy: "inner").count <= 2,
            "\(commits): \(copies)")
          #expect(try await second.branch("/old\(commits)") == nil)
          if !isKilled { break }
        }
        #expect(interrupted > 3)
      }
    }
  }
}
