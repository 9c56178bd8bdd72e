import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The order and number of pushes: which changes wait for others, and which are sent once despite several requests.
struct QueueTests {
  @Test func offline_theQueueGrows_andGoesOutLater() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      a.network.isOffline = true
      try await a.create("/d")
      try await a.create("/d/f", "1")
      await #expect(throws: TransportError.self) { try await a.sync() }
      #expect(try await a.queueCount() == 4)
      #expect(try await a.tree(versions: false).hasPrefix("/d"))
      try await a.relaunch()
      try await world.settle(a, b)
      #expect(try await b.tree() == "/d  v1\n/d/f  v1  \"1\"")
    }
  }

  @Test func createAndContent_shareOneCommit_andOneVersion() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/d")
      try await a.create("/d/f", "1")
      try await a.rename("/d/f", to: "g")
      try await a.edit("/d/g", "2")
      let sent = try await a.push()
      #expect(sent.commits == 1)
      #expect(try await a.queueCount() == 0)
      #expect(try await a.tree() == "/d  v1\n/d/g  v1  \"2\"")
    }
  }

  @Test func manyEdits_areOneUpload() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/f", "0")
      try await a.sync()
      for number in 1...5 { try await a.edit("/f", "\(number)") }
      _ = a.recorder.take()
      try await a.sync()
      #expect(a.recorder.take() == ["data /f", "pushed /f"])
      #expect(try await a.tree() == "/f  v2  \"5\"")
    }
  }

  /// - the app edits /f while the commit with its first edit is in flight
  /// => the second edit is sent afterwards, based on the first: the device has no conflict with itself
  @Test func contentQueuedWhileAnUploadRuns_isSentAfterwards() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "0")
      try await world.settle(a, b)
      try await a.edit("/f", "1")
      a.network.fail(.before { try await a.edit("/f", "2") }, "POST", "/v1/commits")
      try await a.sync()
      #expect(a.recorder.lines.filter { $0.hasPrefix("conflict") } == [])
      #expect(try await a.tree() == "/f  v3  \"2\"")
      try await world.settle(b)
      #expect(try await b.tree() == "/f  v3  \"2\"")
    }
  }

  @Test func largeContentQueuedWhileItsUploadRuns_isSentAfterwards() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let node = try await a.create("/film")
      let (first, second) = (EndToEndTests.bytes(150_000, seed: 1), EndToEndTests.bytes(160_000, seed: 2))
      a.recorder.serve(ZDCData(data: first), forNodeID: node.uuid)
      a.network.fail(
        .before {
          a.recorder.serve(ZDCData(data: second), forNodeID: node.uuid)
          try await a.write { _, cloud in _ = cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil) }
        }, "PUT", "/v1/blobs/{blobID}/parts/{index}")
      try await a.sync()
      #expect(a.recorder.lines.filter { $0.hasPrefix("conflict") } == [])
      try await world.settle(b)
      #expect(try await b.content(of: "/film")?.data == second)
    }
  }

  /// Other devices see a large node before its content arrives.
  @Test func largeContent_doesNotHoldTheRecordOrTheChildren() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      let node = try await a.create("/film")
      try await a.create("/film/subtitles", "text")
      a.recorder.serve(ZDCData(data: EndToEndTests.bytes(300_000, seed: 1)), forNodeID: node.uuid)
      try await a.sync()
      try await b.pull()
      #expect(try await b.tree() == "/film  v2  ?\n/film/subtitles  v1  ?")
      try await b.download()
      #expect(try await b.content(of: "/film")?.data.count == 300_000)
    }
  }

  @Test func explicitDependency_isHeld_untilItIsDone() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let promise = ZDCDataPromise()
      let first = try await a.create("/first")
      a.recorder.serve(ZDCData(promise: promise), forNodeID: first.uuid)
      try await a.write { _, cloud in
        let upload = cloud.pendingOperations(forNodeID: first.uuid).last
        try cloud.createNode(
          withPath: ZDCTreesystemPath(pathComponents: ["second"]), dependencies: upload.map { [$0] })
      }
      try await a.push()
      try await a.push()
      let waiting = try await a.tree()
      #expect(
        waiting == """
          /first  v1  [putData promisePending]
          /second  new  [create waitingForOperation, putData waitingForOperation]
          """)
      promise.fulfill(ZDCData(data: Data()))
      try await a.sync()
      let tree = try await a.tree()
      #expect(tree == "/first  v2  ?\n/second  v1")
    }
  }

  @Test func deletedBeforeItWasSent_isNeverSent() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.create("/d")
      try await a.create("/d/f", "1")
      try await a.delete("/d")
      #expect(try await a.queueCount() == 0)
      a.network.resetCounts()
      try await a.push()
      #expect(a.network.count("POST", "/v1/commits") == 0)
    }
  }

  /// - /d is on its way to the server when the app deletes it
  /// => it is deleted there as well
  @Test func deletedWhileItIsSent_isDeletedAfterwards() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/d")
      try await a.create("/d/f", "1")
      a.network.fail(.before { try await a.delete("/d") }, "POST", "/v1/commits")
      try await a.sync()
      try await world.settle(b)
      #expect(try await b.tree() == "")
      #expect(try world.server.nodeCount() == 0)
    }
  }

  @Test func renamedWhileItIsSent_isRenamedAfterwards() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      a.network.fail(.before { try await a.rename("/f", to: "g") }, "POST", "/v1/commits")
      try await a.sync()
      try await world.settle(b)
      #expect(try await b.tree() == "/g  v2  \"1\"")
    }
  }

  @Test func moveOutOfADeletedFolder_goesFirst() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/d")
      try await a.create("/d/keep", "1")
      try await a.create("/d/lose", "2")
      try await world.settle(a, b)
      try await a.move("/d/keep", to: "/keep")
      try await a.delete("/d")
      try await world.settle(a, b)
      #expect(try await b.tree(versions: false) == "/keep  \"1\"")
    }
  }

  @Test func twoNodesThatChangePlaces_doNotWaitForEachOther() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/x", "x")
      try await a.create("/y", "y")
      try await world.settle(a, b)
      try await a.rename("/x", to: "z")
      try await a.rename("/y", to: "x")
      try await a.rename("/z", to: "y")
      try await world.settle(a, b)
      #expect(try await b.tree(versions: false) == "/x  \"y\"\n/y  \"x\"")
    }
  }

  @Test func higherPriority_goesFirst() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.write { _, cloud in
        for number in 0..<1_100 { try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["\(number)"])) }
        let node = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: ["1099"])))
        for var operation in cloud.pendingOperations(forNodeID: node.uuid) {
          operation.priority = 10
          try cloud.modifyOperation(operation)
        }
      }
      try await a.push()
      #expect(try await a.node("/1099").isUploaded)
      #expect(try await a.node("/1098").isUploaded == false)
      try await a.sync()
    }
  }
}
