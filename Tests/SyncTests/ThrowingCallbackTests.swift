import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// An app that throws in every call of a callback: the failure is recorded and the call is made again, other nodes
/// continue, and nothing is lost.
struct ThrowingCallbackTests {
  private struct AppError: Error {}

  /// Stores an object, and throws.
  private static let fails: RecordingDelegate.Action = { _, transaction in
    let transaction = try #require(transaction as? ZDCReadWriteTransaction)
    transaction.setObject(TestContent("half"), forKey: "half", inCollection: TestContent.collection)
    throw AppError()
  }

  private static func hasHalf(_ device: TestDevice) async throws -> Bool {
    try await device.database.read { $0.hasObject(forKey: "half", inCollection: TestContent.collection) }
  }

  private static func failures(_ device: TestDevice) async throws -> [ZDCDelegateFailure] {
    try await device.write { _, cloud in cloud.explainDelegateFailures() }
  }

  // MARK: Pushing

  /// => the content is in the cloud and its operation is gone, as is the other node's, and later edits are pushed
  @Test func didPush_thatAlwaysThrows_blocksNothing() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/bad", "1")
      try await a.create("/good", "2")
      a.recorder.on(.pushed, "/bad", times: 3, Self.fails)
      await #expect(throws: AppError.self) { try await a.sync() }
      #expect(try await a.queueCount() == 0)
      #expect(try await !Self.hasHalf(a))
      try await world.settle(b)
      #expect(try await b.tree() == "/bad  v1  \"1\"\n/good  v1  \"2\"")
      try await a.edit("/good", "3")
      await #expect(throws: AppError.self) { try await a.sync() }
      #expect(try await a.tree(versions: false).contains("/good  \"3\""))
      let failure = try #require(try await a.explain("/bad")?.delegateFailures.first)
      #expect(failure.call == .didPushNodeData && failure.error == "AppError" && failure.times == 2)
      #expect(try await a.explain("/bad")?.isInSync == true)
      try await a.relaunch()
      await #expect(throws: AppError.self) { try await a.sync() }
      _ = a.recorder.take()
      try await a.sync()
      #expect(a.recorder.take() == ["pushed /bad"])
      #expect(try await Self.failures(a) == [])
    }
  }

  /// A call by the app that does not throw, but fails.
  /// => counts as if the callback had thrown
  @Test func didPush_thatPoisonsTheTransaction_blocksNothing() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      a.recorder.on(.pushed) { _, transaction in
        _ = transaction.object(forKey: "x", inCollection: "an unregistered collection")
      }
      await #expect(throws: ZDCError.self) { try await a.sync() }
      #expect(try await a.queueCount() == 0)
      #expect(try await Self.failures(a).map(\.call) == [.didPushNodeData])
      try await a.sync()
      #expect(try await Self.failures(a) == [])
    }
  }

  /// - a push is overtaken by a commit with a node that the app rejects
  /// => the push continues after it
  @Test func newNode_thatAlwaysThrows_doesNotHoldAnOvertakenPush() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await world.settle(a, b)
      try await a.create("/theirs")
      try await a.sync()
      b.recorder.on(.new, "/theirs", Self.fails)
      try await b.create("/mine", "b")
      await #expect(throws: AppError.self) { try await b.push() }
      try await b.push()
      #expect(try await b.queueCount() == 0)
      #expect(try await b.tree() == "/mine  v1  \"b\"")
    }
  }

  // MARK: Pulling

  /// - a page has two deletions and a new node, and the app throws for one of the deletions
  /// => that node stays as it was until the app accepts the deletion; the other changes are applied
  @Test func deletion_thatThrows_holdsItsOwnNodeOnly() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for path in ["/bad", "/bad/child", "/good"] { try await a.create(path, "1") }
      try await world.settle(a, b)
      try await a.delete("/bad")
      try await a.delete("/good")
      try await a.create("/new", "2")
      try await a.sync()
      b.recorder.on(.deleted, "/bad", times: 3, Self.fails)
      try await b.create("/mine", "b")
      await #expect(throws: AppError.self) { try await b.sync() }
      #expect(try await b.tree(versions: false) == "/bad  \"1\"\n/bad/child  \"1\"\n/mine  \"b\"\n/new  ?")
      #expect(try await !Self.hasHalf(b))
      let explained = try #require(try await b.explain("/bad"))
      #expect(explained.isAwaitingPull && explained.delegateFailures.map(\.call) == [.didDiscoverDeletedNode])
      await #expect(throws: AppError.self) { try await b.pull() }
      try await b.relaunch()
      await #expect(throws: AppError.self) { try await b.pull() }
      #expect(try await b.explain("/bad")?.delegateFailures.map(\.times) == [3])
      _ = b.recorder.take()
      try await b.pull()
      #expect(b.recorder.take() == ["deleted /bad"])
      #expect(try await b.tree(versions: false) == "/mine  \"b\"\n/new  ?")
      #expect(try await Self.failures(b) == [])
    }
  }

  /// - the app throws for a deletion, and then edits the node, whose name another device has taken in the meantime
  /// => the edit waits, and the app is notified that a node with changes is deleted
  @Test func deletion_thatThrew_findsAnEditedNode_andAsks() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await world.settle(a, b)
      try await a.delete("/f")
      try await a.sync()
      b.recorder.on(.deleted, nil, Self.fails)
      await #expect(throws: AppError.self) { try await b.pull() }
      let old = try await b.node("/f")
      try await b.edit("/f", "2")
      try await a.create("/f", "other")
      try await a.sync()
      try await b.push()
      let explained = try await b.write { _, cloud in cloud.explain(nodeID: old.uuid) }
      #expect(explained?.operations.map(\.reason) == [.notPulledYet])
      _ = b.recorder.take()
      try await b.pull()
      #expect(b.recorder.take().first == "deletedDirty /f [/f]")
      #expect(try await Self.failures(b) == [])
      try await b.write { _, cloud in _ = try cloud.delete(try #require(cloud.node(id: old.uuid))) }
      try await world.settle(a, b)
      #expect(try await b.tree() == "/f  v1  \"other\"")
    }
  }

  /// - a node that survives was moved into a branch that another device deletes; the app throws when it is notified
  /// that the node goes back
  /// => the deletion waits as it would for an error in its own callback, and is announced again
  @Test func deletion_thatFailsInAnotherCallback_isNotLost() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for path in ["/T", "/T/child", "/S"] { try await a.create(path, "1") }
      try await world.settle(a, b)
      try await b.move("/S", to: "/T/S")
      try await a.delete("/T")
      try await a.sync()
      b.recorder.on(.moved, times: 2, Self.fails)
      await #expect(throws: AppError.self) { try await b.pull() }
      let tree = try await b.tree(versions: false)
      #expect(tree.contains("/T/S ") && tree.contains("/T/child "))
      let explained = try #require(try await b.explain("/T"))
      #expect(explained.isAwaitingPull && explained.delegateFailures.map(\.call) == [.didDiscoverMovedNode])
      try await b.edit("/T", "2")
      try await b.push()
      #expect(try await b.queueCount() > 0)
      try await b.relaunch()
      await #expect(throws: AppError.self) { try await b.pull() }
      #expect(try await b.explain("/T")?.delegateFailures.map(\.times) == [2])
      _ = b.recorder.take()
      try await b.pull()
      #expect(b.recorder.take().prefix(2) == ["moved /T/S -> /S", "deletedDirty /T [/T]"])
      #expect(try await Self.failures(b) == [])
      try await b.delete("/T")
      try await world.settle(a, b)
      #expect(try await b.tree(versions: false) == "/S  \"1\"")
    }
  }

  @Test func explainNamesTheAppsError_forNodesThatAreNew() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let node = try await a.create("/f")
      try await a.sync()
      b.recorder.on(.new, nil, Self.fails)
      await #expect(throws: AppError.self) { try await b.pull() }
      let failure = try #require(try await Self.failures(b).first)
      #expect(failure.call == .didDiscoverNewNode && failure.error == "AppError" && failure.nodeID == nil)
      #expect(failure.cloudID == (try await a.explain("/f")?.cloudID))
      #expect(node.name == "f")
      try await b.pull()
      #expect(try await Self.failures(b) == [])
    }
  }

  /// => each callback of a batch is called at most twice, however many of them throw
  @Test func manyThatThrow_costNoMoreThanTwiceTheCalls() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for index in 0..<30 { try await a.create("/\(index)") }
      try await a.sync()
      b.recorder.on(.new, times: 30, Self.fails)
      await #expect(throws: AppError.self) { try await b.pull() }
      #expect(b.recorder.take().count <= 60)
      #expect(try await Self.failures(b).count == 30)
      try await b.pull()
      #expect(try await Self.failures(b) == [])
    }
  }

  /// => each conflict is reported once, and all of them wait
  @Test func conflictsThatThrow_areReportedOnceEach() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let paths = (0..<8).map { "/\($0)" }
      for path in paths { try await a.create(path, "0") }
      try await world.settle(a, b)
      for path in paths {
        try await a.edit(path, "A")
        try await b.edit(path, "B")
      }
      try await a.sync()
      b.recorder.on(.conflict, times: 100, Self.fails)
      try await b.create("/mine", "1")
      try await b.sync()
      #expect(b.recorder.take().count { $0.hasPrefix("conflict") } == 8)
      #expect(try await !Self.hasHalf(b))
      #expect(try await b.tree().contains("/mine  v1  \"1\""))
      #expect(try await b.queueCount() == 8)
      world.mayWait(b)
    }
  }
}
