import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Subtle behaviours of uploads that meet others' changes (reference 5.4, 5.8, 5.9 and part 10).
struct ConflictBehaviourTests {
  private static func pair(_ world: TestWorld) async throws -> (TestDevice, TestDevice) {
    let a = try await world.device("A")
    let b = try await world.device("B")
    try await a.create("/f", "0")
    try await world.settle(a, b)
    _ = a.recorder.take()
    _ = b.recorder.take()
    return (a, b)
  }

  private static func conflicts(_ device: TestDevice) -> Int {
    device.recorder.lines.filter { $0.hasPrefix("conflict") }.count
  }

  @Test("behaviour 10.2: the uploads that one content satisfies are decided when the app supplies it")
  func consolidation_isASnapshot() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      let node = try await a.node("/f")
      let promise = ZDCDataPromise()
      a.recorder.serve(ZDCData(promise: promise), forNodeID: node.uuid)
      for text in ["1", "2", "3"] { try await a.edit("/f", text) }
      try await a.push()
      a.recorder.serve(nil, forNodeID: node.uuid)
      try await a.edit("/f", "4")
      promise.fulfill(ZDCData(data: Data("3".utf8)))
      try await world.settle(a, b)
      // One upload has the first three edits; the edit made after the promise has a separate one.
      #expect(try await b.tree() == "/f  v3  \"4\"")
      #expect(a.recorder.lines.filter { $0 == "pushed /f" }.count == 2)
      #expect(Self.conflicts(a) == 0)
    }
  }

  @Test("behaviour 10.2: versions that are not the latest are sent one by one")
  func versionsOfTheirOwn_areSentInTurn() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      let node = try await a.node("/f")
      var version = ZDCData(data: Data("a version".utf8))
      version.isLatestVersion = false
      a.recorder.serve(version, forNodeID: node.uuid)
      for text in ["1", "2", "3"] { try await a.edit("/f", text) }
      try await a.sync()
      #expect(a.recorder.lines.filter { $0 == "pushed /f" }.count == 3)
      #expect(Self.conflicts(a) == 0)
      a.recorder.serve(nil, forNodeID: node.uuid)
      try await a.edit("/f", "4")
      try await world.settle(a, b)
      #expect(try await b.tree() == "/f  v5  \"4\"")
    }
  }

  @Test("behaviour 10.3: after a pull queued edits are not based on the new version: no update is lost")
  func pulledVersion_isNotTheBaseOfAQueuedEdit() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      try await b.edit("/f", "B")
      try await a.edit("/f", "A")
      try await a.sync()
      try await b.pull()
      // Another edit, queued after the pull, is still based on the version before it.
      try await b.edit("/f", "B2")
      try await b.sync()
      #expect(Self.conflicts(b) == 1)
      let node = try await b.node("/f")
      let explained = try await b.write { _, cloud in cloud.explain(nodeID: node.uuid) }
      #expect(explained?.operations.map(\.reason) == [.conflictHeld, .waitingForOperation])
      b.recorder.dataConflictPolicy = .mergeLines
      try await world.settle(b, a)
      #expect(try await a.tree() == "/f  v3  \"A|B2\"")
    }
  }

  @Test("behaviour 10.5: a change that was merged before the push noticed it is no conflict")
  func mergedInTheModifiedCallback_raisesNoConflict() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      try await a.edit("/f", "A")
      try await b.edit("/f", "B")
      try await a.sync()
      b.recorder.on(.modified) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        transaction.setObject(TestContent("A and B"), forKey: node.uuid, inCollection: TestContent.collection)
        cloud.didMergeData(withETag: try #require(node.eTag_data), forNodeID: node.uuid)
      }
      try await world.settle(b, a)
      #expect(Self.conflicts(b) == 0)
      #expect(try await a.tree() == "/f  v3  \"A and B\"")
    }
  }

  /// - the commit is refused because another one came first, and the app merges the page that comes with the refusal
  @Test("behaviour 10.5: merged while the upload was on its way")
  func mergedWhileItIsRefused_raisesNoConflict() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      try await b.edit("/f", "B")
      try await a.edit("/f", "A")
      try await a.sync()
      b.recorder.on(.modified) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        transaction.setObject(TestContent("A and B"), forKey: node.uuid, inCollection: TestContent.collection)
        cloud.didMergeData(withETag: try #require(node.eTag_data), forNodeID: node.uuid)
      }
      // No pull comes before: the content "B" is sealed and sent, and must not be sent the second time.
      while try await b.push().commits > 0 {}
      #expect(Self.conflicts(b) == 0)
      try await world.settle(b, a)
      #expect(try await a.tree() == "/f  v3  \"A and B\"")
    }
  }

  @Test("behaviour 10.12: a deletion takes queued uploads along, and ends those under way")
  func deletion_endsUploads() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      let node = try await a.node("/f")
      a.recorder.serve(ZDCData(promise: ZDCDataPromise()), forNodeID: node.uuid)
      try await a.edit("/f", "1")
      let waiting = try await a.sync().pushed.waiting
      #expect(waiting == 1)
      try await a.delete("/f")
      let summary = try await a.sync()
      #expect(summary.pushed.waiting == 0)
      #expect(try await a.queueCount() == 0)
      try await world.settle(b)
      #expect(try await b.tree() == "")
    }
  }

  /// - C uploads while B merges what A uploaded
  /// => B is asked again until it has merged the newest version (reference 5.9, step 5)
  @Test func aThirdDevice_betweenMergeAndUpload_isMergedToo() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      let c = try await world.device("C")
      try await world.settle(c)
      for device in [a, b, c] { device.recorder.dataConflictPolicy = .mergeLines }
      try await a.edit("/f", "A")
      try await b.edit("/f", "B")
      try await a.sync()
      try await b.pull()
      try await b.download()
      try await c.sync()
      try await c.download()
      try await c.edit("/f", "A\nC")
      try await c.sync()
      try await world.settle(b, a, c)
      #expect(try await a.tree(versions: false) == "/f  \"A|B|C\"")
    }
  }

  /// - the app does not resolve the conflict (reference 5.9, step 7)
  /// => the upload waits, the app learns why, and a change to the record of the same node is pushed
  @Test func aHeldUpload_holdsNotTheNodesRecord() async throws {
    try await TestWorld.run { world in
      let (a, b) = try await Self.pair(world)
      try await a.edit("/f", "A")
      try await b.edit("/f", "B")
      try await a.sync()
      try await b.sync()
      try await b.rename("/f", to: "g")
      try await b.sync()
      #expect(try await b.tree() == "/g  v3  \"B\"  [putData conflictHeld]")
      let node = try await b.node("/g")
      let explained = try #require(try await b.write { _, cloud in cloud.explain(nodeID: node.uuid) })
      #expect(explained.operations.map(\.reason) == [.conflictHeld])
      #expect(explained.operations.first?.detail == node.eTag_data)
      b.recorder.dataConflictPolicy = .mergeLines
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/g  \"A|B\"")
    }
  }
}
