import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Apps that do not do their part: other nodes still sync, `explain` says what is wrong, and nothing is lost.
struct AppErrorTests {
  private struct NoSuchDrawing: Error {}

  /// A fault in how the app supplies the content of /bad.
  enum Fault: String, CaseIterable, Sendable {
    case throwsIt, rejectsItsPromise, providerThrows, missingFile, folderInsteadOfAFile

    func answer() throws -> ZDCData {
      let nowhere = URL(fileURLWithPath: "/nowhere/\(UUID().uuidString)")
      switch self {
      case .throwsIt: throw NoSuchDrawing()
      case .rejectsItsPromise:
        let promise = ZDCDataPromise()
        promise.reject()
        return ZDCData(promise: promise)
      case .providerThrows: return ZDCData { () async throws -> Data in throw NoSuchDrawing() }
      case .missingFile: return ZDCData(cleartextFileURL: nowhere)
      case .folderInsteadOfAFile: return ZDCData(cleartextFileURL: FileManager.default.temporaryDirectory)
      }
    }
  }

  /// - two nodes are new, and the app has no content for one of them
  /// => the other one arrives, the records of both do, and the content waits until the app has it
  @Test(arguments: Fault.allCases)
  func contentThatTheAppLacks_waits_andOthersContinue(fault: Fault) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let bad = try await a.create("/bad", "kept")
      try await a.create("/good", "2")
      let scripted = fault == .throwsIt
      if scripted {
        a.recorder.on(.data, "/bad") { _, _ in throw NoSuchDrawing() }
      } else {
        a.recorder.serve(try fault.answer(), forNodeID: bad.uuid)
      }
      try await a.sync()
      try await world.settle(b)
      #expect(try await b.tree() == "/bad  v1\n/good  v1  \"2\"")
      let explanation = try #require(try await a.write { _, cloud in cloud.explain(nodeID: bad.uuid) })
      #expect(explanation.operations.map(\.reason) == [.noDataFromApp], "\(explanation.operations)")
      #expect(explanation.operations.first?.unblockedBy.hasPrefix("the app") == true)
      a.recorder.serve(nil, forNodeID: bad.uuid)
      try await a.relaunch()
      try await world.settle(a, b)
      #expect(try await b.tree() == "/bad  v2  \"kept\"\n/good  v1  \"2\"")
    }
  }

  @Test func explainNamesTheKindOfTheAppsError_andNothingElseOfIt() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let node = try await a.create("/bad", "1")
      a.recorder.on(.data, "/bad") { _, _ in throw NoSuchDrawing() }
      try await a.sync()
      let explanation = try #require(try await a.write { _, cloud in cloud.explain(nodeID: node.uuid) })
      #expect(explanation.operations.map(\.detail) == ["NoSuchDrawing"])
      try await a.edit("/bad", "1")
      try await a.sync()
    }
  }

  /// - a promise is never answered
  /// => a sync returns, other nodes are sent, and after a relaunch the app is asked again
  @Test func unansweredPromise_delaysNoOtherNode() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let slow = try await a.create("/slow", "kept")
      a.recorder.serve(ZDCData(promise: ZDCDataPromise()), forNodeID: slow.uuid)
      try await a.create("/good", "1")
      let summary = try await a.sync()
      #expect(summary.pushed.waiting == 1)
      try await a.create("/later", "2")
      try await a.sync()
      try await world.settle(b)
      #expect(try await b.tree() == "/good  v1  \"1\"\n/later  v1  \"2\"\n/slow  v1")
      let explanation = try #require(try await a.write { _, cloud in cloud.explain(nodeID: slow.uuid) })
      #expect(explanation.operations.map(\.reason) == [.promisePending])
      #expect(explanation.operations.first?.unblockedBy.hasPrefix("the app") == true)
      a.recorder.serve(nil, forNodeID: slow.uuid)
      try await a.relaunch()
      try await world.settle(a, b)
      #expect(try await b.content(of: "/slow")?.data == Data("kept".utf8))
    }
  }

  /// - the promises that are never fulfilled outnumber what a commit holds and what its planning looks at
  /// => content that was queued after them arrives
  @Test(.timeLimit(.minutes(20))) func thousandsOfOpenPromises_delayNoOtherContent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let never = ZDCData(promise: ZDCDataPromise())
      try await a.write { _, cloud in
        for number in 0..<4_100 {
          let node = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"]))
          a.recorder.serve(never, forNodeID: node.uuid)
        }
      }
      try await a.sync()
      try await a.create("/last", "here")
      #expect(try await a.sync().pushed.waiting == 4_100)
      try await b.sync()
      try await b.download()
      #expect(try await b.content(of: "/last")?.data == Data("here".utf8))
      world.mayWait(a)
    }
  }

  /// - the app promises content, edits once more, and only then fulfils the promise
  /// => the first answer is sent for the first edit, and the app is asked for the second: two versions, no conflict
  @Test func answersLate_afterAnotherEdit_bothAreSent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let node = try await a.create("/late", "0")
      try await world.settle(a, b)
      let promise = ZDCDataPromise()
      a.recorder.serve(ZDCData(promise: promise), forNodeID: node.uuid)
      try await a.edit("/late", "1")
      try await a.sync()
      a.recorder.serve(nil, forNodeID: node.uuid)
      try await a.edit("/late", "2")
      promise.fulfill(ZDCData(data: Data("1".utf8)))
      try await world.settle(a, b)
      #expect(try await b.tree() == "/late  v3  \"2\"")
      #expect(!a.recorder.lines.contains { $0.hasPrefix("conflict") })
    }
  }

  @Test func answersLate_afterTheNodeIsGone_nothingHappens() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let node = try await a.create("/gone", "0")
      let promise = ZDCDataPromise()
      a.recorder.serve(ZDCData(promise: promise), forNodeID: node.uuid)
      try await a.sync()
      try await a.delete("/gone")
      try await a.sync()
      promise.fulfill(ZDCData(data: Data("too late".utf8)))
      try await a.create("/next", "1")
      try await a.sync()
      #expect(try await a.tree() == "/next  v1  \"1\"")
    }
  }

  /// - the app skips an upload for which it has an open promise
  /// => nothing waits any more, and the late answer changes nothing
  @Test func answersLate_afterItWasSkipped_nothingIsSent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let node = try await a.create("/f", "0")
      try await a.sync()
      let promise = ZDCDataPromise()
      a.recorder.serve(ZDCData(promise: promise), forNodeID: node.uuid)
      try await a.edit("/f", "1")
      try await a.sync()
      try await a.write { _, cloud in cloud.skipDataUploads(forNodeID: node.uuid) }
      let summary = try await a.sync()
      #expect(summary.pushed.waiting == 0)
      promise.fulfill(ZDCData(data: Data("too late".utf8)))
      try await a.sync()
      a.recorder.serve(nil, forNodeID: node.uuid)
      try await a.edit("/f", "2")
      try await a.sync()
      #expect(try await a.tree() == "/f  v2  \"2\"")
    }
  }

  @Test(arguments: ["memory", "file", "promise"])
  func zeroBytes_areAContentLikeOthers(source: String) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let file = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
      try Data().write(to: file)
      defer { try? FileManager.default.removeItem(at: file) }
      let node = try await a.create("/empty")
      try await a.create("/good", "1")
      let promise = ZDCDataPromise()
      switch source {
      case "file": a.recorder.serve(ZDCData(cleartextFileURL: file), forNodeID: node.uuid)
      case "promise": a.recorder.serve(ZDCData(promise: promise), forNodeID: node.uuid)
      default: a.recorder.serve(ZDCData(data: Data()), forNodeID: node.uuid)
      }
      promise.fulfill(ZDCData(data: Data()))
      try await world.settle(a, b)
      let seen = try await b.node("/empty")
      #expect(seen.cloudDataInfo?.dataSize == 0 && seen.eTag_data != nil)
      #expect(try await b.content(of: "/empty")?.data == Data())
      let explanation = try await a.write { _, cloud in cloud.explain(nodeID: node.uuid) }
      #expect(explanation?.isInSync == true)
    }
  }

  // MARK: Conflicts that the app does not solve

  /// - in each call the app says that it merged a version that is not the newest
  /// => no endless loop: other nodes continue, and the app is asked again after the backoff
  @Test func mergesWithAWrongVersion_isAskedAgainLater() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "0")
      try await world.settle(a, b)
      let old = try #require(try await b.node("/f").eTag_data)
      try await a.edit("/f", "A")
      try await b.edit("/f", "B")
      try await a.sync()
      b.recorder.on(.conflict, times: 2) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        cloud.didMergeData(withETag: old, forNodeID: node.uuid)
      }
      try await b.create("/g", "1")
      try await b.sync()
      #expect(try await b.tree() == "/f  v2  \"B\"  [putData backoff]\n/g  v1  \"1\"")
      #expect(b.recorder.take().filter { $0.hasPrefix("conflict") } == ["conflict data /f"])
      world.clock.advance(by: .seconds(60))
      b.recorder.dataConflictPolicy = .takeCloud
      try await b.sync()
      #expect(b.recorder.take().filter { $0.hasPrefix("conflict") }.count == 1)
      try await world.settle(b)
    }
  }

  /// => its changes are rolled back, other nodes continue in the same sync, and the app is asked again after the
  /// backoff
  @Test func throwsInAConflict_holdsItsOwnNodeOnly() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "0")
      try await world.settle(a, b)
      try await a.edit("/f", "A")
      try await b.edit("/f", "B")
      try await a.sync()
      b.recorder.on(.conflict) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        transaction.removeObject(forKey: node.uuid, inCollection: TestContent.collection)
        throw NoSuchDrawing()
      }
      try await b.create("/g", "1")
      try await b.sync()
      #expect(try await b.tree() == "/f  v2  \"B\"  [putData backoff]\n/g  v1  \"1\"")
      let node = try await b.node("/f")
      let explained = try #require(try await b.write { _, cloud in cloud.explain(nodeID: node.uuid) })
      #expect(explained.operations.map(\.detail) == ["NoSuchDrawing"])
      b.recorder.dataConflictPolicy = .takeCloud
      world.clock.advance(by: .seconds(60))
      try await world.settle(b, a)
      #expect(try await a.tree() == "/f  v2  \"A\"\n/g  v1  \"1\"")
    }
  }
}

/// An app that throws in callbacks about others' changes.
struct AppErrorsWhilePullingTests {
  private struct AppError: Error {}

  /// => the rest of the pull is applied, and local changes are pushed all the same; the error is thrown at the end
  @Test func throwsForOneNode_theOthersArrive_andOwnChangesGoOut() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await a.create("/g", "1")
      try await world.settle(a, b)
      try await a.edit("/f", "2")
      try await a.edit("/g", "2")
      try await a.sync()
      try await b.create("/mine", "b")
      b.recorder.on(.modified, "/f", times: 2) { _, _ in throw AppError() }
      await #expect(throws: AppError.self) { try await b.sync() }
      #expect(try await b.tree() == "/f  v1  \"1\"\n/g  v2  ?\n/mine  v1  \"b\"")
      await #expect(throws: AppError.self) { try await b.pull() }
      _ = b.recorder.take()
      try await world.settle(b, a)
      #expect(b.recorder.lines.filter { $0.hasPrefix("modified") } == ["modified data /f"])
      #expect(try await b.tree() == "/f  v2  \"2\"\n/g  v2  \"2\"\n/mine  v1  \"b\"")
    }
  }
}
