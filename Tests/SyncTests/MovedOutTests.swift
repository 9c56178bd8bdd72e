import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A node leaves a folder, and the folder is deleted, before another device has read the node's new record.
struct MovedOutTests {
  enum Variant: String, CaseIterable, Sendable {
    case online, queued, emptiedParent, parentFurtherUp, fetchedBefore, editQueued, renamedToo, intoNewFolder
    case bothMoved, insideOut, nameTakenSince, queuedMoveInside, deletedLater
  }

  /// Returns the steps of the other device, in order; "sync" sends them.
  private static func steps(_ variant: Variant) -> [String] {
    switch variant {
    case .online: ["mv /k/n /n", "sync", "rm /k", "sync"]
    case .emptiedParent: ["rm /k/beside", "mv /k/n /n", "sync", "rm /k", "sync"]
    case .parentFurtherUp: ["mv /k/n /top/n", "rm /k", "sync"]
    case .renamedToo: ["mv /k/n /m", "rm /k", "sync"]
    case .intoNewFolder: ["create /fresh", "create /fresh/er", "mv /k/n /fresh/er/n", "rm /k", "sync"]
    case .bothMoved: ["mv /k/beside /beside", "mv /k/n /beside/n", "sync", "rm /k", "sync"]
    case .insideOut: ["mv /k/n/p /p", "mv /k/n /p/n", "sync", "rm /k", "sync"]
    case .nameTakenSince: ["mv /k/n /m", "create /n", "sync", "rm /k", "sync"]
    case .deletedLater: ["mv /k/n /n", "sync", "rm /k", "sync", "rm /n/p", "sync"]
    case .queued, .fetchedBefore, .editQueued, .queuedMoveInside: ["mv /k/n /n", "rm /k", "sync"]
    }
  }

  private static func run(_ steps: [String], on device: TestDevice) async throws {
    for step in steps.map({ $0.split(separator: " ").map(String.init) }) {
      switch step[0] {
      case "mv": try await device.move(step[1], to: step[2])
      case "rm": try await device.delete(step[1])
      case "create": try await device.create(step[1])
      default: try await device.sync()
      }
    }
  }

  @Test("M1: a folder moved out of a deleted folder keeps its nodes on other devices", arguments: Variant.allCases)
  func keepsItsNodes(variant: Variant) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for path in ["/k", "/top", "/k/beside", "/k/n", "/k/n/p"] { try await a.create(path) }
      for path in ["/k/n/f", "/k/n/p/g"] { try await a.create(path, "1") }
      try await a.sync()
      try await b.sync()
      let before = try await b.node("/k/n").uuid
      if variant == .fetchedBefore { try await world.settle(a, b) }
      if variant == .editQueued { try await b.edit("/k/n/f", "mine") }
      if variant == .queuedMoveInside { try await b.move("/k/n", to: "/k/beside/n") }
      _ = b.recorder.take()
      try await Self.run(Self.steps(variant), on: a)
      try await b.pull()
      let lines = b.recorder.take()
      #expect(lines.filter { $0.hasPrefix("new") }.allSatisfy { $0.contains("fresh") || $0 == "new /n" })
      try await world.settle(b, a)
      #expect(try await b.tree(versions: false) == (try await a.tree(versions: false)))
      let place = try await a.tree(versions: false).split(separator: "\n").first {
        $0.hasSuffix("/f  \"1\"") || $0.hasSuffix("/f  \"mine\"")
      }
      let folder = String(try #require(place).prefix { $0 != " " }.dropLast(2))
      #expect(try await b.node(folder).uuid == before, "the same node, with its links")
    }
  }

  @Test("M1: a device that moves into what another one deletes keeps its nodes")
  func moverKeepsItsNodes() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let c = try await world.device("C")
      for path in ["/k", "/n", "/n/p"] { try await a.create(path) }
      try await a.create("/n/p/f", "1")
      try await world.settle(a, c)
      try await a.delete("/k")
      try await c.move("/n", to: "/k/n")
      try await c.sync()
      try await a.sync()
      try await c.sync()
      #expect(try await c.tree(versions: false) == "/n\n/n/p\n/n/p/f  \"1\"")
      try await world.settle(a, c)
    }
  }

  /// - A deletes a folder; B moves a node into it, and the server does not have the node's new record for a while
  /// => A keeps the node and holds the delete back; once the record is here, it takes the node out, and the folder goes
  @Test func aDeleteWaits_forTheRecordOfANodeMovedIntoTheFolder() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["objectMissing"], on: a)
      for path in ["/k", "/n"] { try await a.create(path) }
      try await a.create("/n/f", "1")
      try await world.settle(a, b)
      let moved = try await a.node("/n").uuid
      try await a.delete("/k")
      try await b.create("/g")
      try await b.sync()
      try await b.move("/n", to: "/k/n")
      try await b.sync()
      // The two newest records: those of /g and of the moved node.
      try UnreadableRecordTests.damage(world) { _ in Data() }
      try await a.sync()
      try await a.push()
      // The server would refuse it, because it cannot read the damaged record.
      #expect(try await !a.queue().contains("serverSaid"), "the delete was sent")
      #expect(try await a.queueCount() == 1)
      #expect(try await a.node("/n").uuid == moved)
      try UnreadableRecordTests.repair(world)
      try await world.settle(a, b)
      for device in [a, b] { #expect(try await device.tree(versions: false) == "/g\n/n\n/n/f  \"1\"") }
      #expect(try await a.node("/n").uuid == moved)
    }
  }

  // MARK: Renamed and deleted

  @Test("M5: a node that was only renamed here and deleted elsewhere goes", arguments: [false, true])
  func renamedNodeGoes(isFetched: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await a.create("/d")
      try await a.create("/d/g", "1")
      try await world.settle(a)
      try await b.sync()
      if isFetched { try await b.download() }
      for path in ["/f", "/d"] { try await a.delete(path) }
      try await a.sync()
      try await b.rename("/f", to: "f2")
      try await b.rename("/d", to: "d2")
      try await b.rename("/d2/g", to: "g2")
      _ = b.recorder.take()
      try await b.sync()
      #expect(try await b.queueCount() == 0)
      #expect(try await b.tree() == "")
      #expect(b.recorder.take().sorted() == ["deleted /d2", "deleted /f2"])
      // The names that the user wanted are in the journal.
      let entries = try await b.write { _, cloud in cloud.mergeJournal() }
      #expect(entries.allSatisfy { $0.kind == .deletedInCloud && $0.result.isDeleted })
      #expect(entries.count == 3)
    }
  }
}
