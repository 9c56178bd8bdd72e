import Foundation
import Synchronization
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The app's callbacks: when they are called, how often, and what the database holds inside the call.
struct DelegateTests {
  private struct AppError: Error {}

  @Test func newNode_isInTheDatabase_withItsParent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let seen = Seen()
      b.recorder.on(.new, times: 2) { node, transaction in
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        let stored = try #require(cloud.node(id: node.uuid))
        seen.add(
          "\(stored.name ?? "") uploaded=\(stored.isUploaded) parent=\(cloud.parentNode(stored)?.name ?? "trunk")")
      }
      try await a.create("/p")
      try await a.create("/p/c")
      try await a.sync()
      try await b.pull()
      #expect(seen.lines == ["p uploaded=true parent=trunk", "c uploaded=true parent=p"])
    }
  }

  @Test func deletedNode_isGone_withItsChildren_andItsObjectIsStillLinked() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/p")
      try await a.create("/p/c")
      try await world.settle(a, b)
      let node = try await b.node("/p")
      try await b.write { transaction, cloud in
        transaction.setObject(TestContent("mine"), forKey: "key", inCollection: TestContent.collection)
        try cloud.linkNodeID(node.uuid, toKey: "key", inCollection: TestContent.collection)
      }
      let seen = Seen()
      b.recorder.on(.deleted) { node, transaction in
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        let linked = cloud.linkedObject(forNodeID: node.uuid) as? TestContent
        seen.add("there=\(cloud.node(id: node.uuid) != nil) linked=\(linked != nil)")
      }
      try await a.delete("/p")
      try await a.sync()
      try await b.pull()
      #expect(seen.lines == ["there=false linked=true"])
      #expect(b.recorder.take().last == "deleted /p")
    }
  }

  @Test func didPush_hasTheNewVersion_andAnEmptyQueue() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let seen = Seen()
      a.recorder.on(.pushed) { node, transaction in
        let cloud = try #require(try a.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        let stored = cloud.node(id: node.uuid)
        seen.add(
          "eTag=\(stored?.eTag_data == node.eTag_data) queued=\(cloud.hasPendingDataUploads(forNodeID: node.uuid))")
      }
      try await a.create("/f", "1")
      try await a.sync()
      #expect(seen.lines == ["eTag=true queued=false"])
    }
  }

  @Test func didPush_isCalledOnce_forEachContent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      try await a.sync()
      try await a.edit("/f", "2")
      try await a.sync()
      try await a.rename("/f", to: "g")
      try await a.sync()
      try await a.pull()
      #expect(a.recorder.lines.filter { $0.hasPrefix("pushed") } == ["pushed /f", "pushed /f"])
    }
  }

  @Test func ownChanges_areNotAnnounced() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/d")
      try await a.create("/f", "1")
      try await a.sync()
      try await a.edit("/f", "2")
      try await a.move("/f", to: "/d/g")
      try await a.sync()
      try await a.delete("/d")
      try await a.sync()
      try await a.pull()
      #expect(a.recorder.lines.filter { !$0.hasPrefix("data") && !$0.hasPrefix("pushed") } == [])
    }
  }

  /// - the app throws for one new node of four, each time
  /// => its changes for that node are rolled back, the other nodes are there; the next pull announces the node, once
  @Test func delegateThatThrows_holdsItsOwnNodeOnly_andGetsItAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for path in ["/1", "/2", "/2/child", "/3"] { try await a.create(path) }
      try await a.sync()
      b.recorder.on(.new, "/2") { _, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        transaction.setObject(TestContent("half"), forKey: "half", inCollection: TestContent.collection)
        throw AppError()
      }
      await #expect(throws: AppError.self) { try await b.pull() }
      #expect(try await b.tree(versions: false) == "/1  ?\n/3  ?")
      #expect(
        try await b.database.read { $0.hasObject(forKey: "half", inCollection: TestContent.collection) } == false)
      _ = b.recorder.take()
      try await b.pull()
      #expect(b.recorder.take() == ["new /2", "new /2/child"])
    }
  }

  @Test(arguments: [RecordingDelegate.Callback.modified, .moved, .deleted])
  func delegateThatThrows_isAskedAgain(callback: RecordingDelegate.Callback) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await world.settle(a, b)
      let before = try await b.tree()
      switch callback {
      case .modified: try await a.edit("/f", "2")
      case .moved: try await a.rename("/f", to: "g")
      default: try await a.delete("/f")
      }
      try await a.sync()
      b.recorder.on(callback) { _, _ in throw AppError() }
      await #expect(throws: AppError.self) { try await b.pull() }
      #expect(try await b.tree() == before)
      _ = b.recorder.take()
      try await b.pull()
      #expect(b.recorder.take().map { $0.prefix { $0 != " " } } == [callback.rawValue[...]])
    }
  }

  /// - didPushNodeData throws after the server has the commit
  /// => the push still counts: nothing is queued or sent twice, and the app is notified again
  @Test func didPushThatThrows_isCalledAgain_withoutASecondCommit() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      a.recorder.on(.pushed) { _, _ in throw AppError() }
      await #expect(throws: AppError.self) { try await a.sync() }
      #expect(try await a.queueCount() == 0)
      try await a.sync()
      #expect(a.recorder.lines.filter { $0.hasPrefix("pushed") }.count == 2)
      #expect(try await a.tree() == "/f  v1  \"1\"")
      #expect(try world.server.dump().contains("home: seq 1"))
    }
  }

  @Test func dataThatThrows_parksTheUpload_andOthersContinue() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      try await a.create("/g", "2")
      a.recorder.on(.data, "/f") { _, _ in throw AppError() }
      try await a.sync()
      #expect(try await a.tree() == "/f  v1  \"1\"  [putData noDataFromApp]\n/g  v1  \"2\"")
      // The app is asked again after the next change of the node.
      try await a.edit("/f", "3")
      try await a.sync()
      #expect(try await a.tree() == "/f  v2  \"3\"\n/g  v1  \"2\"")
    }
  }

  @Test func promise_holdsItsOwnNodeOnly() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let promise = ZDCDataPromise()
      let node = try await a.create("/slow")
      a.recorder.serve(ZDCData(promise: promise), forNodeID: node.uuid)
      try await a.create("/slow/child", "c")
      try await a.push()
      try await b.pull()
      #expect(b.recorder.take() == ["new /slow", "new /slow/child"])
      promise.fulfill(ZDCData(data: Data("at last".utf8)))
      try await a.sync()
      try await world.settle(b)
      #expect(try await b.tree(versions: false) == "/slow  \"at last\"\n/slow/child  \"c\"")
    }
  }

  @Test func rejectedPromise_neverUploadsEmptyContent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let promise = ZDCDataPromise()
      let node = try await a.create("/slow")
      a.recorder.serve(ZDCData(promise: promise), forNodeID: node.uuid)
      try await a.push()
      promise.reject()
      try await a.sync()
      #expect(try await a.tree() == "/slow  v1  [putData noDataFromApp]")
      a.recorder.serve(nil, forNodeID: node.uuid)
      try await a.relaunch()
      try await a.sync()
      #expect(try await a.tree() == "/slow  v2")
    }
  }

  /// A database error in a call that does not throw.
  /// => the block continues, everything is rolled back, and the caller gets the error
  @Test func poisonedTransaction_rollsEverythingBack() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      await #expect(throws: ZDCError.self) {
        try await a.write { transaction, cloud in
          try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["f"]))
          _ = transaction.object(forKey: "x", inCollection: "an unregistered collection")
          transaction.setObject(TestContent("lost"), forKey: "lost", inCollection: TestContent.collection)
        }
      }
      #expect(try await a.tree() == "")
      #expect(try await a.queueCount() == 0)
      try await a.sync()
      #expect(try world.server.nodeCount() == 0)
    }
  }
}

/// Lines recorded inside callbacks.
final class Seen: Sendable {
  private let kept = Mutex<[String]>([])
  var lines: [String] { kept.withLock { $0 } }
  func add(_ line: String) { kept.withLock { $0.append(line) } }
}
