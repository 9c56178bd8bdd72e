import Foundation
import GRDB
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Two nodes in the cloud with one name: neither the server nor the writer checks for it (SECURITY 5.7, 35).
struct DuplicateNameTests {
  @Test func bothNodesAreKept_theLaterOneIsRenamed_onEveryDevice() async throws {
    try await Self.run { world, a, _ in
      try await a.sync()
      #expect(try await a.tree(versions: false) == "/n  \"A\"\n/n 2  ?")
      #expect(a.recorder.take().filter { $0.hasPrefix("new") } == ["new /n 2"])
      #expect(try await Self.writers(a) == [try a.localUserID])
      // A fresh device gets the later one first, and shows the same tree.
      let c = try await world.device("C")
      world.expectsSecurityErrors(["duplicateName"], on: c)
      try await world.settle(a, c)
      #expect(try await c.tree(versions: false) == "/n  \"A\"\n/n 2  \"B\"")
      #expect(try await a.tree(versions: false) == "/n  \"A\"\n/n 2  \"B\"")
      // The error is reported once, and nothing is sent.
      let commits = try world.server.commitCount()
      try await a.relaunch()
      try await world.settle(a, c)
      #expect(try world.server.commitCount() == commits)
    }
  }

  /// - the app changes the node that is shown under another name
  /// => its next version has the shown name, and the name clash is over
  @Test func theNextVersion_takesTheShownNameAlong() async throws {
    try await Self.run { world, a, _ in
      try await world.settle(a)
      try await a.edit("/n 2", "B2")
      try await world.settle(a)
      #expect(try await a.node("/n 2").quarantine == nil)
      let c = try await world.device("C")
      try await world.settle(c)
      #expect(try await c.tree(versions: false) == "/n  \"A\"\n/n 2  \"B2\"")
    }
  }

  @Test(arguments: [true, false])
  func theNameIsFreeAgain_andGivenBack(isRenamed: Bool) async throws {
    try await Self.run { world, a, _ in
      let c = try await world.device("C")
      world.expectsSecurityErrors(["duplicateName"], on: c)
      try await world.settle(a, c)
      if isRenamed { try await a.rename("/n", to: "x") } else { try await a.delete("/n") }
      try await world.settle(a, c)
      let expected = isRenamed ? "/n  \"B\"\n/x  \"A\"" : "/n  \"B\""
      #expect(try await a.tree(versions: false) == expected)
      #expect(try await c.tree(versions: false) == expected)
      #expect(c.recorder.lines.contains("moved /n 2 -> /n"))
    }
  }

  /// - the app throws each time it is notified that the node has its name again
  /// => one call per pull, and the node keeps the other name until the call succeeds
  @Test func theNameIsGivenBack_whenTheAppHasTakenIt() async throws {
    try await Self.run { world, a, _ in
      let c = try await world.device("C")
      world.expectsSecurityErrors(["duplicateName"], on: c)
      try await world.settle(a, c)
      c.recorder.on(.moved, "/n 2", times: 3) { _, _ in throw AppError() }
      try await a.delete("/n")
      try await a.sync()
      _ = c.recorder.take()
      for _ in 0..<3 {
        await #expect(throws: AppError.self) { try await c.pull() }
        #expect(try await c.tree(versions: false) == "/n 2  \"B\"")
        #expect(c.recorder.take().count { $0.hasPrefix("moved") } == 1)
      }
      try await c.pull()
      #expect(try await c.tree(versions: false) == "/n  \"B\"")
      #expect(try await c.write { _, cloud in cloud.explainDelegateFailures() } == [])
      try await world.settle(a, c)
    }
  }

  /// - the tree's key is replaced, and a device that has not opened an older node creates another one with its name
  /// => the tags differ, so the server accepts it; all devices show the later one under another name, until
  ///   its next version has that name
  @Test("N-1: two nodes with one name under two generations of the folder's key")
  func twoNodesUnderTwoGenerations() async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      for device in [a, b] { world.expectsSecurityErrors(["duplicateName"], on: device) }
      try await a.create("/n", "A")
      try await world.settle(a, b)
      let rogue = try await RogueWriter(
        words: try #require(world.words()), user: try a.userID, server: world.server)
      try await rogue.rotateHome()
      let home = try await rogue.home()
      let record = try RecordSealer.seal(try home.draft(new: "n"))
      #expect(try home.node("n").record.fields.nameTag != record.fields.nameTag)
      try await rogue.push(try home.commit(putting: record), [record])
      try await world.settle(a, b)
      let c = try await world.device("C")
      world.expectsSecurityErrors(["duplicateName"], on: c)
      try await world.settle(c)
      for device in [a, b, c] { #expect(try await device.tree(versions: false) == "/n  \"A\"\n/n 2", "\(device.name)") }
      try await b.create("/n 2/below", "B")
      try await b.edit("/n 2", "later")
      try await world.settle(b, a, c)
      #expect(try await a.syncManager.replaceOldKeys(forLocalUserID: try a.localUserID) == 0)
      try await world.settle(a, b, c)
      for device in [a, b, c] {
        let tree = try await device.tree(versions: false)
        #expect(tree == "/n  \"A\"\n/n 2  \"later\"\n/n 2/below  \"B\"", "\(device.name)")
      }
    }
  }

  // MARK: The scene

  private struct AppError: Error {}

  /// A and B have each created a node named n, and A has not seen B's yet.
  private static func run(
    _ body: @Sendable (TestWorld, TestDevice, TestDevice) async throws -> Void
  ) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["duplicateName"], on: a)
      world.mayWait(b)
      world.skipsComparison()
      try await a.create("/n", "A")
      try await world.settle(a, b)
      try await b.create("/m", "B")
      try await forge(b, "/m", name: "n")
      // This server does not compare names: it has forgotten the tags.
      try VerificationTests.server(world) { db in
        try db.execute(sql: "UPDATE node_names SET tag = randomblob(16)")
      }
      try await b.push()
      try await body(world, a, b)
    }
  }

  /// Stores another name in the row, against all rules.
  private static func forge(_ device: TestDevice, _ path: String, name: String) async throws {
    let uuid = try await device.node(path).uuid
    try await device.write { transaction, _ in
      guard var row = try transaction.nodes.node(uuid: uuid), let parent = row.parent else { return }
      row.name = Array(name.utf8)
      row.nameTag = try transaction.nodes.keys(ofNode: parent).nameTag(folded: row.name)
      try transaction.nodes.update(row)
    }
  }

  private static func writers(_ device: TestDevice) async throws -> [String] {
    try await device.database.read { transaction in
      try Row.fetchAll(transaction.database, sql: "SELECT userID FROM zdc_security_event WHERE code = 'duplicateName'")
        .compactMap { try UserID($0, 0).text }
    }
  }
}
