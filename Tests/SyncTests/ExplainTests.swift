import Foundation
import GRDB
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// "Why is my change stuck?", and the attempts so far.
@Suite(.timeLimit(.minutes(20))) struct ExplainTests {
  private struct AppError: Error {}

  private func explain(_ device: TestDevice, _ path: String) async throws -> ZDCNodeExplanation {
    try await device.write { _, cloud in
      let node = try #require(ZDCTreesystemPath(path).flatMap { cloud.node(path: $0) })
      return try #require(cloud.explain(nodeID: node.uuid))
    }
  }

  /// Returns `kind reason detail [outcome code times, …]` of each operation.
  private func story(_ device: TestDevice, _ path: String) async throws -> [String] {
    try await explain(device, path).operations.map(Self.line)
  }

  private static func line(_ operation: ZDCOperationExplanation) -> String {
    let history = operation.history.map { attempt in
      [attempt.outcome.rawValue, attempt.code, "\(attempt.times)"].compactMap(\.self).joined(separator: " ")
    }
    return [operation.kind, operation.reason.rawValue, operation.detail].compactMap(\.self).joined(separator: " ")
      + (history.isEmpty ? "" : " [\(history.joined(separator: ", "))]")
  }

  @Test func offlineDevice_saysSo_andWhatIsPausedToo() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.sync()
      try await a.create("/f")
      a.network.isOffline = true
      await #expect(throws: TransportError.self) { try await a.pull() }
      #expect(try await story(a, "/f") == ["create offline offline", "putData offline offline"])
      a.network.isOffline = false
      try await a.pull()
      try await a.syncManager.pausePush(forLocalUserID: try a.localUserID)
      let paused = try await explain(a, "/f").operations
      #expect(paused.map(\.reason) == [.paused, .paused])
      #expect(paused.map(\.unblockedBy) == ["resumePush", "resumePush"])
      try await a.syncManager.resumePush(forLocalUserID: try a.localUserID)
      try await a.sync()
      #expect(try await explain(a, "/f").isInSync)
    }
  }

  /// - the answer is lost twice, then the server is busy
  /// => the history has each attempt, also after a relaunch; once the push succeeds, the history is empty
  @Test func lostAnswersAndRefusals_areRemembered_alsoAfterARelaunch() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.sync()
      try await a.create("/f")
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      a.network.fail(.loseRequest, "POST", "/v1/commits", occurrence: 2)
      a.network.fail(.answer(status: 503, code: "zoneBusy"), "POST", "/v1/commits", occurrence: 3)
      for _ in 0..<3 { await #expect(throws: (any Error).self) { try await a.push() } }
      let expected = ["create inFlight [noAnswer cut 2, serverSaid zoneBusy 1]"]
      #expect(try await story(a, "/f").prefix(1) == expected.prefix(1))
      try await a.relaunch()
      #expect(try await story(a, "/f").prefix(1) == expected.prefix(1))
      let create = try #require(try await explain(a, "/f").operations.first)
      #expect(create.attempts == 3 && create.history[0].date == world.clock.now)
      try await a.sync()
      #expect(try await explain(a, "/f").operations == [])
      let left = try await a.database.read { transaction in
        try Int.fetchOne(transaction.database, sql: "SELECT COUNT(*) FROM zdc_attempt")
      }
      #expect(left == 0)
    }
  }

  @Test("an operation that waits for a failed push reports the reason and the next attempt")
  func zoneWithAPause_saysSo() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.whileRunning {
        a.network.fail(.answer(status: 503, code: "shuttingDown"), "POST", "/v1/commits", times: 1_000)
        try await a.create("/f")
        await a.recorder.wait(for: "data /f")
        try await a.create("/g")
        while try await story(a, "/g").first != "create backoff shuttingDown" { await Task.yield() }
        let create = try #require(try await explain(a, "/g").operations.first)
        #expect(try #require(create.notBefore) > world.clock.now)
        #expect(try await a.syncManager.syncState(forLocalUserID: a.localUserID).pending.failing > 0)
        a.network.restoreNetwork()
        world.clock.advance(by: .seconds(60))
        await a.recorder.wait(for: "pushed /g")
        #expect(try await explain(a, "/g").isInSync)
      }
    }
  }

  @Test func appThatThrows_isRemembered_withTheTypeOfItsError() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "1")
      try await a.create("/other", "2")
      a.recorder.on(.data, "/f") { _, _ in throw AppError() }
      try await a.sync()
      #expect(try await story(a, "/f") == ["putData noDataFromApp AppError [noDataFromApp AppError 1]"])
      #expect(try await explain(a, "/other").isInSync)
      try await a.edit("/f", "3")
      a.recorder.on(.pushed, "/f") { _, _ in throw AppError() }
      await #expect(throws: AppError.self) { try await a.sync() }
      // The content is in the cloud, and the app is notified again.
      let pushed = try await explain(a, "/f")
      #expect(pushed.isInSync && pushed.delegateFailures.map(\.error) == ["AppError"])
      try await a.sync()
      #expect(try await explain(a, "/f").delegateFailures == [])
    }
  }

  @Test func anotherDevicesCommit_andAConflict_areInTheHistory() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await world.settle(a, b)
      try await a.edit("/f", "2")
      try await a.sync()
      try await b.edit("/f", "3")
      // B does not know of the other edit yet.
      try await b.push()
      try await b.push()
      let node = try await b.node("/f")
      #expect(
        try await story(b, "/f") == ["putData conflictHeld \(node.eTag_data ?? "") [overtaken 1, conflict 1]"])
      try await b.write { _, cloud in cloud.skipDataUploads(forNodeID: node.uuid) }
      try await b.download()
    }
  }

  @Test func fullAccount_isRemembered() async throws {
    try await TestWorld.run(quotaBytes: 6_000) { world in
      let a = try await world.device("A")
      for number in 1...8 { try await a.create("/n\(number)", String(repeating: "x", count: 1_000)) }
      try await a.sync()
      let waiting = try await story(a, "/n8").last
      #expect(waiting?.hasPrefix("putData overQuota quotaExceeded") == true)
      #expect(waiting?.contains("[overQuota quotaExceeded") == true)
      world.mayWait(a)
    }
  }

  /// - large content is being sent
  /// => the operation says so until it is in the cloud
  @Test func largeContent_saysThatItIsBeingSent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/film", "1")
      try await a.sync()
      try await a.edit("/film", to: TestContent(data: EndToEndTests.bytes(200_000, seed: 1)))
      let part = "/v1/blobs/{blobID}/parts/{index}"
      let look: @Sendable () async throws -> Void = {
        var shown: [String] = []
        // The push notes the upload beside its first request.
        for _ in 0..<1_000 where shown != ["putData uploading"] { shown = try await story(a, "/film") }
        #expect(shown == ["putData uploading"])
      }
      a.network.fail(.before(look), "PUT", part)
      try await a.sync()
      #expect(a.network.count("PUT", part) > 0)
      #expect(try await explain(a, "/film").isInSync)
    }
  }

  // MARK: Observing

  @Test func node_isFollowed_fromItsBirthToItsEnd() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.sync()
      try await a.create("/f")
      let node = try await a.node("/f")
      var following = try a.syncManager.explanations(forNodeID: node.uuid).makeAsyncIterator()
      #expect(try await following.next()?.operations.map(\.reason) == [.ready, .ready])
      a.network.isOffline = true
      await #expect(throws: TransportError.self) { try await a.pull() }
      while let now = try await following.next(), now.operations.first?.reason != .offline {}
      a.network.isOffline = false
      a.network.fail(.loseResponse, "POST", "/v1/commits")
      await #expect(throws: TransportError.self) { try await a.sync() }
      while let now = try await following.next(), now.operations.first?.history.isEmpty != false {}
      try await a.sync()
      while let now = try await following.next(), !now.isInSync {}
      try await a.delete("/f")
      #expect(try await following.next() == nil)
      try await a.sync()
    }
  }

  @Test func operation_isFollowed_untilItIsDone() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f")
      let operation = try #require(try await explain(a, "/f").operations.first)
      var following = try a.syncManager.explanations(forOperationUUID: operation.uuid).makeAsyncIterator()
      #expect(try await following.next() == operation)
      try await a.sync()
      while try await following.next() != nil {}
      var unknown = try a.syncManager.explanations(forOperationUUID: "nothing").makeAsyncIterator()
      #expect(try await unknown.next() == nil)
      let manager = try #require(try a.zdc.databaseManager)
      #expect(manager.observations.count == 0, "an ended transfer holds nothing")
    }
  }

  @Test func closingTheFramework_endsIt_andSoDoesCancelling() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f")
      let node = try await a.node("/f")
      let explanations = try a.syncManager.explanations(forNodeID: node.uuid)
      let manager = try #require(try a.zdc.databaseManager)
      let (started, start) = AsyncStream.makeStream(of: Void.self)
      let following = Task { for try await _ in explanations { start.yield() } }
      for await _ in started { break }
      following.cancel()
      try await following.value
      #expect(manager.observations.count == 0)
      var open = explanations.makeAsyncIterator()
      _ = try await open.next()
      try await a.relaunch()
      while try await open.next() != nil {}
      try await a.sync()
    }
  }

  /// An added dependency alone is a change, too.
  @Test func dependencyThatIsAdded_isSeen() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f")
      try await a.create("/g")
      let (f, g) = (try await explain(a, "/f").operations[0], try await explain(a, "/g").operations[0])
      var following = try a.syncManager.explanations(forOperationUUID: g.uuid).makeAsyncIterator()
      #expect(try await following.next()?.waitsFor == [])
      try await a.write { _, cloud in
        var operation = try #require(cloud.operation(uuid: g.uuid))
        operation.dependencies.insert(f.uuid)
        try cloud.modifyOperation(operation)
      }
      #expect(try await following.next()?.waitsFor == [f.uuid])
      try await a.sync()
    }
  }
}
