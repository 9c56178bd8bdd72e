import Foundation
import Testing
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// Pushes: their content, the time at which they ask the app for it, and changes that no longer have to be sent.
@Suite(.timeLimit(.minutes(20))) struct PushPromiseTests {
  private struct AppError: Error {}

  // MARK: One commit

  /// - the app's block fails, or its commit does not reach the disk
  /// => node, queue and object do not exist, and nothing was sent
  @Test func nothingIsSent_beforeTheCommitIsOnDisk() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.sync()
      let step: @Sendable (TestDevice) async throws -> Void = { device in
        try await device.write { transaction, cloud in
          let node = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["f"]))
          transaction.setObject(TestContent("1"), forKey: node.uuid, inCollection: TestContent.collection)
        }
      }
      try await a.whileRunning {
        await #expect(throws: AppError.self) {
          try await a.write { _, cloud in
            try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["f"]))
            throw AppError()
          }
        }
      }
      a.die(afterCommits: 0, network: .alive)
      await #expect(throws: (any Error).self) { try await step(a) }
      try await a.relaunch()
      try await a.sync()
      #expect(try await a.tree() == "")
      #expect(a.network.count("POST", "/v1/commits") == 0)
      try await step(a)
      try await a.sync()
      #expect(try await a.tree() == "/f  v1  \"1\"")
    }
  }

  // MARK: Uploads that share content

  enum Part: String, CaseIterable { case data, metadata, thumbnail }

  /// - three uploads are queued, and one part is marked as not the latest version
  /// => each upload is sent in turn, each with a separate version
  @Test(arguments: Part.allCases)
  func aPartThatIsNotTheLatest_isSentInTurn(part: Part) async throws {
    try await TestWorld.run { world in
      let app = ScriptedDelegate { _ in
        var parts = Parts(metadata: ZDCData(data: Data([1])), thumbnail: ZDCData(data: Data([2])))
        switch part {
        case .data: parts.data.isLatestVersion = false
        case .metadata: parts.metadata?.isLatestVersion = false
        case .thumbnail: parts.thumbnail?.isLatestVersion = false
        }
        return parts
      }
      try await world.device("A", delegate: app) { a in
        try await a.create("/f")
        for _ in 0..<2 {
          try await a.write { _, cloud in
            let node = try #require(cloud.node(path: ZDCTreesystemPath(pathComponents: ["f"])))
            cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
          }
        }
        try await a.sync()
        #expect(app.pushed == ["/f", "/f", "/f"])
        #expect(try await a.tree(versions: true).hasPrefix("/f  v3"))
      }
    }
  }

  /// - B's upload is in flight when A's is accepted; B's app merges A's version before the answer arrives
  /// => no conflict is raised, and B's merged content follows
  @Test func mergedWhileTheUploadWasRefused_isNoConflict() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "0")
      try await world.settle(a, b)
      try await a.edit("/f", "A")
      try await b.edit("/f", "B")
      let node = try await b.node("/f")
      let merge: @Sendable () async throws -> Void = {
        try await a.sync()
        let eTag = try #require(try await a.node("/f").eTag_data)
        try await b.write { transaction, cloud in
          transaction.setObject(TestContent("A and B"), forKey: node.uuid, inCollection: TestContent.collection)
          cloud.didMergeData(withETag: eTag, forNodeID: node.uuid)
        }
      }
      b.network.fail(.before(merge), "POST", "/v1/commits")
      try await b.push()
      try await world.settle(b, a)
      #expect(b.recorder.lines("conflict") == [])
      #expect(try await a.tree() == "/f  v3  \"A and B\"")
    }
  }

  // MARK: Deleting

  /// - /f is deleted here but not yet in the cloud; others change it, and a pull comes before the push
  /// => the pull does not discover it again
  @Test func nodesDeletedHere_areNotFoundAgainByAPull() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "0")
      try await world.settle(a, b)
      _ = a.recorder.take()
      try await a.delete("/f")
      try await b.edit("/f", "B")
      try await b.sync()
      try await b.rename("/f", to: "g")
      try await b.sync()
      try await a.pull()
      try await a.relaunch()
      try await a.pull()
      #expect(a.recorder.take() == [])
      #expect(try await a.tree() == "")
      try await world.settle(a, b)
      #expect(try world.server.nodeCount() == 0)
      #expect(b.recorder.take().last == "deleted /g")
    }
  }

  /// - others have added to the branch and changed it, and this device has never seen that
  /// => the whole branch is deleted, everywhere
  @Test func aBranchIsDeleted_withWhatThisDeviceHasNeverSeen() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/list")
      try await a.create("/list/todo", "0")
      try await a.create("/other", "stays")
      try await world.settle(a, b)
      try await b.create("/list/unseen", "B")
      try await b.create("/list/unseen/image", "B")
      try await b.edit("/list/todo", "B")
      try await b.sync()
      try await a.delete("/list")
      try await world.settle(a, b)
      #expect(try await a.tree(versions: false) == "/other  \"stays\"")
      #expect(try world.server.nodeCount() == 1)
      #expect(b.recorder.take().last == "deleted /list")
    }
  }

  /// - the node is deleted, or its upload skipped, while the second of three parts is in flight
  /// => the upload ends: the third part is never sent
  @Test(arguments: [true, false])
  func anUploadThatIsNoLongerNeeded_ends(deletes: Bool) async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      try await a.sync()
      let film = try await a.create("/film")
      a.recorder.serve(ZDCData(data: EndToEndTests.bytes(20 << 20, seed: 1)), forNodeID: film.uuid)
      let end: @Sendable () async throws -> Void = {
        // The code below cancels the request that waits here.
        try await Task {
          try await a.write { _, cloud in
            if deletes { try cloud.delete(film) } else { cloud.skipDataUploads(forNodeID: film.uuid) }
          }
          try await a.create("/after", "1")
          await a.recorder.wait(for: "pushed /after")
        }.value
      }
      a.network.fail(.before(end), "PUT", "/v1/blobs/{blobID}/parts/{index}", occurrence: 2)
      try await a.whileRunning { await a.recorder.wait(for: "pushed /after") }
      #expect(a.network.count("PUT", "/v1/blobs/{blobID}/parts/{index}") == 2)
      #expect(a.recorder.lines("pushed") == ["pushed /after"])
      try await a.sync()
      #expect(try await a.tree(versions: false) == (deletes ? "/after  \"1\"" : "/after  \"1\"\n/film"))
    }
  }

  // MARK: Names and places

  /// - A and B want the same name; B comes second, and its app does not resolve the conflict
  /// => the app is asked, its node is renamed, the app is notified, and only then sees A's node
  @Test func aTakenName_theAppIsAsked_thenNotified() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await world.settle(a, b)
      try await a.create("/n", "A")
      try await b.create("/n", "B")
      try await a.sync()
      try await world.settle(b, a)
      #expect(b.recorder.lines("conflict", "moved", "new") == ["conflict path /n", "moved /n -> /n 2", "new /n"])
      #expect(try await a.tree(versions: false) == "/n  \"A\"\n/n 2  \"B\"")
    }
  }

  /// - A has moved /f and edited it; B has moved it elsewhere, and was first
  /// => A's node follows B's move, with A's edit; A is notified
  @Test func aRemoteMove_takesTheQueuedEditAlong() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for path in ["/d", "/e", "/f"] { try await a.create(path, "0") }
      try await world.settle(a, b)
      try await a.move("/f", to: "/d/f")
      try await a.edit("/d/f", "A")
      try await b.move("/f", to: "/e/g")
      try await b.sync()
      try await world.settle(a, b)
      #expect(a.recorder.lines("moved") == ["moved /d/f -> /e/g"])
      #expect(try await b.tree(versions: false) == "/d  \"0\"\n/e  \"0\"\n/e/g  \"A\"")
    }
  }

  /// - fifty requests in a row fail, in one way or another
  /// => no change is given up
  @Test func howeverOftenItFails_nothingIsGivenUp() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await world.settle(a, b)
      try await a.create("/f", "1")
      a.network.fail(.loseRequest, "POST", "/v1/commits", times: 25)
      a.network.fail(.answer(status: 503, code: "shuttingDown"), "POST", "/v1/commits", occurrence: 26, times: 25)
      for _ in 0..<50 { await #expect(throws: (any Error).self) { try await a.push() } }
      #expect(a.network.hasStruck)
      try await world.settle(a, b)
      #expect(try await b.tree() == "/f  v1  \"1\"")
    }
  }

  // MARK: Pull first

  /// - changes are queued at launch, and others have made some in the meantime
  /// => the device knows theirs before it sends its own
  @Test func thePush_waitsForTheFirstPull() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await world.settle(a, b)
      try await b.create("/mine", "B")
      try await a.create("/theirs", "A")
      try await a.sync()
      try await b.relaunch()
      let known = Seen()
      b.network.fail(.before { known.add(b.recorder.lines("new").joined()) }, "POST", "/v1/commits")
      try await b.whileRunning { await b.recorder.wait(for: "pushed /mine") }
      #expect(known.lines == ["new /theirs"])
    }
  }
}
