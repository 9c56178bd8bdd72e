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
      let rogue = try await Self.rogue(world, a)
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

  /// - the tree's key is replaced; A deletes or renames a node, which waits for content that the app does not have yet, and
  ///   creates another one with its name
  /// => the server accepts the new node, because the tags differ; until the name is free, it has another one, and no device
  ///   sees two nodes with one name
  @Test("N-2: a name that a node keeps under an older key of the folder", arguments: [true, false])
  func aNameThatIsNotFreeYet(isDeleted: Bool) async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      for path in ["/late", "/n"] { try await a.create(path) }
      try await world.settle(a, b)
      try await (try await Self.rogue(world, a)).rotateHome()
      try await world.settle(a, b)
      let promise = ZDCDataPromise()
      a.recorder.serve(ZDCData(promise: promise), forNodeID: try await a.node("/late").uuid)
      try await a.edit("/late", "here")
      try await Self.leave(a, "/n", isDeleted: isDeleted)
      try await a.create("/n", "new")
      try await a.push()
      #expect(try await a.queueCount() > 0)
      try await b.sync()
      #expect(try await b.tree(versions: false).hasPrefix("/late\n/n\n/n 2"))
      promise.fulfill(ZDCData(data: Data("here".utf8)))
      try await world.settle(a, b)
      let expected = "/late  \"here\"\n/n  \"new\"" + (isDeleted ? "" : "\n/old")
      for device in [a, b] { #expect(try await device.tree(versions: false) == expected, "\(device.name)") }
    }
  }

  /// Deletes or renames a node, after the queued operations of /late.
  private static func leave(_ device: TestDevice, _ path: String, isDeleted: Bool) async throws {
    let (uuid, late) = (try await device.node(path).uuid, try await device.node("/late").uuid)
    try await device.write { _, cloud in
      var node = try #require(cloud.node(id: uuid))
      if !isDeleted { node.name = "old" }
      let leaving: ZDCCloudOperation? = isDeleted ? try cloud.delete(node) : try cloud.modifyNode(node)
      var operation = try #require(leaving)
      operation.dependencies.formUnion(cloud.pendingOperations(forNodeID: late).map(\.uuid))
      try cloud.modifyOperation(operation)
    }
  }

  // MARK: The same numbers on every device

  /// - the app changes the node that has the name, which is the later one from then on
  /// => the other one gets the name, as on a device that reads both only now
  @Test func theNextVersionOfTheNodeWithTheName_givesTheNameToTheOther() async throws {
    try await Self.run { world, a, _ in
      world.expectsSecurityErrors(["duplicateName", "duplicateName"], on: a)
      try await world.settle(a)
      try await a.edit("/n", "A2")
      let c = try await world.device("C")
      world.expectsSecurityErrors(["duplicateName"], on: c)
      try await world.settle(a, c)
      for device in [a, c] {
        #expect(try await device.tree(versions: false) == "/n  \"B\"\n/n 2  \"A2\"", "\(device.name)")
      }
    }
  }

  /// - a device reads a change of a node's content, and a later node with its name, in one pull: the later one first
  /// => the later one has another name, although the other one's name and place have not changed
  @Test(arguments: [0, 255] as [UInt8]) func anEditBesideANewNodeWithTheSameName(id: UInt8) async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/n", "A")
      try await world.settle(a, b)
      try await a.edit("/n", "A2")
      try await a.sync()
      try await Self.add(id, try await Self.rogue(world, a), world)
      for device in [a, b] { world.expectsSecurityErrors(["duplicateName"], on: device) }
      try await world.settle(a, b)
      for device in [a, b] {
        #expect(try await device.tree(versions: false) == "/n  \"A2\"\n/n 2", "\(device.name)")
      }
      world.skipsComparison()
    }
  }

  /// A change of one of three nodes with the name n, which have the nodes a, b and c inside.
  enum Change: String, CaseIterable {
    case none, editFirst, editSecond, deleteFirst, deleteSecond, renameFirst, moveFirst, moveSecond, freeNumber

    /// The nodes afterwards, without the others of the folder.
    var nodes: [String] {
      switch self {
      case .none: ["/n/a", "/n 3/b", "/n 4/c"]
      case .editFirst: ["/n/b", "/n 3/c", "/n 4/a"]
      case .editSecond: ["/n/a", "/n 3/b", "/n 4/c"]
      case .deleteFirst: ["/n/b", "/n 3/c"]
      case .deleteSecond: ["/n/a", "/n 3/c"]
      case .renameFirst: ["/x/a", "/n/b", "/n 3/c"]
      case .moveFirst: ["/n 2/n/a", "/n/b", "/n 3/c"]
      case .moveSecond: ["/n/a", "/n 2/n/b", "/n 3/c"]
      case .freeNumber: ["/n/a", "/n 2/b", "/n 3/c"]
      }
    }

    func make(_ device: TestDevice) async throws {
      switch self {
      case .none: break
      case .editFirst: try await device.edit("/n", "edited")
      case .editSecond: try await device.edit("/n 3", "edited")
      case .deleteFirst: try await device.delete("/n")
      case .deleteSecond: try await device.delete("/n 3")
      case .renameFirst: try await device.rename("/n", to: "x")
      case .moveFirst: try await device.move("/n", to: "/n 2/n")
      case .moveSecond: try await device.move("/n 3", to: "/n 2/n")
      case .freeNumber: try await device.delete("/n 2")
      }
    }
  }

  /// - three nodes have the name n, and another one is named n 2; a device changes one of them
  /// => devices that have read each step, and those that read the result only, show the same names
  @Test(arguments: Change.allCases) func threeNodesWithOneName(change: Change) async throws {
    try await TestWorld.run { world in
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      try await a.create("/n 2")
      try await a.create("/n")
      try await a.create("/n/a")
      for id in [9, 5] as [UInt8] {
        try await world.settle(a, b)
        try await Self.add(id, try await Self.rogue(world, a), world)
      }
      try await world.settle(a, b)
      for path in ["/n 3/b", "/n 4/c"] { try await a.create(path) }
      try await world.settle(a, b)
      try await change.make(a)
      let c = try await world.device("C")
      try await world.settle(a, b, c)
      for device in [a, b, c] {
        let shown = try await device.tree(versions: false).split(separator: "\n").map { $0.prefix { $0 != "\"" } }
        let leaves = shown.map { $0.trimmingCharacters(in: .whitespaces) }.filter { "abc".contains($0.last ?? "n") }
        #expect(leaves.sorted() == change.nodes.sorted(), "\(device.name)")
        let errors = try await Self.writers(device)
        world.expectsSecurityErrors(errors.map { _ in "duplicateName" }, on: device)
      }
      world.skipsComparison()
    }
  }

  /// - a folder of Alice's has two nodes with one name, and she shares the folder
  /// => in the new zone no node is older than another one, so the smaller ID has the name: on the device that splits,
  ///   on one that reads it, on a new one and on the member's
  @Test("S-6: two nodes with one name in a folder that is split off", arguments: [false, true])
  func twoNodesInAFolderThatIsSplitOff(isFirstSmaller: Bool) async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let (alice, bob) = (people.alice, people.bob)
      let second = try await world.device("second")
      try await alice.create("/list")
      try await alice.create("/list/n", "first")
      try await world.settle(alice, second)
      try await Self.add(isFirstSmaller ? 255 : 0, try await people.rogue("alice", alice), below: "list", world)
      try await world.settle(alice, second)
      for device in [alice, second] { #expect(try await device.branch("/list") == "/n  \"first\"\n/n 2") }
      try await alice.share("/list", with: bob)
      try await world.settle(alice, second)
      let fresh = try await world.device("fresh")
      try await bob.graft("/list", try await alice.invite("/list"), from: alice)
      for device in [alice, second, fresh, bob] {
        // The first two have shown the other one under another name before.
        let isAgain = !isFirstSmaller && [alice, second].contains { $0 === device }
        world.expectsSecurityErrors(Array(repeating: "duplicateName", count: isAgain ? 2 : 1), on: device)
        try await world.settle(device)
        let expected = isFirstSmaller ? "/n  \"first\"\n/n 2" : "/n\n/n 2  \"first\""
        #expect(try await device.branch("/list") == expected, "\(device.name)")
      }
      world.skipsComparison()
    }
  }

  /// Puts another node named n.
  ///
  /// - Parameter id: The first byte of its ID, which is otherwise small.
  private static func add(
    _ id: UInt8, _ rogue: RogueWriter, below parent: String = "", _ world: TestWorld
  ) async throws {
    try VerificationTests.server(world) { db in try db.execute(sql: "UPDATE node_names SET tag = randomblob(16)") }
    let home = try await rogue.home()
    var draft = try home.draft(new: "n", below: parent)
    draft.node = try #require(NodeID([id] + [UInt8](repeating: 0, count: 14) + [1]))
    let record = try RecordSealer.seal(draft)
    try await rogue.push(try home.commit(putting: record), [record])
  }

  private static func rogue(_ world: TestWorld, _ device: TestDevice) async throws -> RogueWriter {
    try await RogueWriter(words: try #require(world.words()), user: try device.userID, server: world.server)
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
      guard var row = try transaction.nodes.node(uuid: uuid), let id = row.parent,
        let parent = try transaction.nodes.node(id: id)
      else { return }
      row.name = Array(name.utf8)
      row.nameTag = try transaction.nodes.nameKeys(of: parent).nameTag(folded: row.name)
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
