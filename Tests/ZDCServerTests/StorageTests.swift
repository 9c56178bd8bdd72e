import Dispatch
import Foundation
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// Full disks and folders that cannot be used: a clear answer, nothing half done, and on again when it can.
@Suite(.needsFolder) struct StorageTests {
  @Test func aFullDatabase_refusesTheCommit_readsOn_andTakesItLater() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      var zone = account.home
      let contents = (0..<4).map { _ in TestZone.Content(60_000) }
      let records = contents.map { zone.record(.random(), content: $0.field()) }
      try await server.sqlite.setMaximumPages(1)
      let (_, body) = try zone.put(records, contents: contents)
      let refused = try await server.commit(body, token: token)
      #expect((refused.status, refused.error?.code, refused.error?.retryable) == (507, .storageFull, true))
      #expect(refused.headers["retry-after"] == "10")
      let ready = try await server.send(.GET, Routes.ready)
      #expect((ready.status, ready.text) == (503, "full\n"))
      #expect(try await server.page(zone.zone, token: token).headers[WireHeaders.zoneHead]?.hasPrefix("0:") == true)
      let writes = server.store.writeStatistics.writes
      for _ in 0..<20 { #expect(try await server.send(.GET, Routes.ready).status == 503) }
      // Upkeep may write at any time.
      #expect(server.store.writeStatistics.writes < writes + 10, "any host may ask")
      try await server.sqlite.setMaximumPages(nil)
      server.clock.advance(ms: 5_000)
      #expect(try await server.send(.GET, Routes.ready).status == 200)
      try await server.put(records, contents: contents, in: &zone, token: token)
    }
  }

  /// Writes that share a durable step with one that finds no room are not acknowledged and not there.
  @Test func aWriteThatFindsNoRoom_doesNotTakeOthersWithItUnnoticed() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      try await server.sqlite.setMaximumPages(1)
      let outcomes = try await withThrowingTaskGroup(of: (BlobID, Int).self) { group in
        for _ in 0..<64 {
          group.addTask {
            let large = BlobTests.Large(70_000)
            return (large.blob, try await server.ticket(large, .random(), account.home, token: token).status)
          }
        }
        return try await group.reduce(into: [BlobID: Int]()) { $0[$1.0] = $1.1 }
      }
      #expect(Set(outcomes.values).isSubset(of: [201, 507]))
      try await server.sqlite.setMaximumPages(nil)
      for (blob, status) in outcomes {
        #expect(try await server.store.read { try $0.file(blob) != nil } == (status == 201))
      }
    }
    #expect(try DataFolder.check(path: folder).isClean)
  }

  /// Closes more stores than the pool has threads, all at the same time and while each is read. A blocking close would
  /// hang.
  @Test func closing_leavesTheThreadsToTheReadsThatItWaitsFor() async throws {
    let folders = (0..<ProcessInfo.processInfo.activeProcessorCount + 2).map { _ in TestServer.newFolder() }
    defer { folders.forEach(TestServer.remove) }
    let stores = try folders.map { folder in
      try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
      return try SQLiteStore(path: folder + "/metadata.sqlite")
    }
    let gate = DispatchSemaphore(value: 0)
    let (reading, begun) = AsyncStream.makeStream(of: Void.self)
    try await withThrowingTaskGroup(of: Void.self) { group in
      for store in stores {
        group.addTask {
          try await store.read { _ in
            begun.yield()
            gate.wait()
          }
        }
      }
      for await _ in reading.prefix(stores.count) {}
      for store in stores { group.addTask { try await store.close() } }
      // Too early, and the test passes though it should not: never the other way round.
      Thread.detachNewThread {
        Thread.sleep(forTimeInterval: 0.3)
        for _ in stores { gate.signal() }
      }
      try await group.waitForAll()
    }
  }

  /// A limit on file size simulates a full disk: the part is refused, the server keeps running, and its stored content
  /// is whole.
  @Test func aFullBlobFolder_refusesThePart_andTakesItLater() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let account = try TestAccount()
    let large = BlobTests.Large()
    let node = NodeID.random()
    let full = try await ServerProcess.serve(folder: folder, fileBlocks: 8_192)
    _ = try await full.sendJSON(.POST, Routes.accounts, account.registration()).expect(201)
    let token = try await full.login(account)
    _ = try await full.ticket(large, node, account.home, token: token).expect(201)
    let refused = try await full.part(0, of: large, token: token)
    #expect((refused.status, refused.error?.code) == (507, .storageFull))
    #expect(try await full.parts(of: large, token: token).parts == [])
    try await full.upload(BlobTests.Large(200_000), .random(), account.home, token: token)
    #expect(await full.stop() == 0)
    #expect(try DataFolder.check(path: folder).isClean)
    let roomy = try await ServerProcess.serve(folder: folder)
    let again = try await roomy.login(account)
    try await roomy.upload(large, node, account.home, token: again)
    var zone = account.home
    try await roomy.put([zone.record(node, content: large.field)], in: &zone, token: again)
    #expect(await roomy.stop() == 0)
    #expect(try DataFolder.check(path: folder).isClean)
  }

  /// - There is no room for the list of deletions
  /// => an account is not closed, because a restored backup would bring it back; it is closed when there is room again
  @Test(.enabled(if: FileManager.default.fileExists(atPath: "/dev/full"), "Linux has this device"))
  func aFullFolder_refusesToCloseAnAccount() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    let list = "\(folder)/\(DeletionFile.defaultName)"
    try FileManager.default.createSymbolicLink(atPath: list, withDestinationPath: "/dev/full")
    try await TestServer.run(in: folder) { (server: TestServer) async throws in
      let (account, token) = try await server.newAccount()
      let link = AppendLinkRequest(link: WireBytes(try account.closing().bytes))
      let refused = try await server.sendJSON(.POST, Routes.links, link, token: token)
      #expect((refused.status, refused.error?.code, refused.error?.retryable) == (507, .storageFull, true))
      var zone = account.home
      try await server.put([zone.record(.random())], in: &zone, token: token)
      try FileManager.default.removeItem(atPath: list)
      _ = try await server.sendJSON(.POST, Routes.links, link, token: token).expect(201)
    }
    var closed = 0
    try await DeletionFile.forEach(in: list) { if case .account = $0 { closed += 1 } }
    #expect(closed == 1)
  }

  // MARK: folders that cannot be opened

  private func expectRefusal(
    _ reason: String, status: Int32, _ spoil: (String) throws -> Void
  ) async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try await TestServer.run(in: folder) { (server: TestServer) async throws in _ = try await server.newAccount() }
    try spoil(folder)
    let before = try TestServer.bytes(of: folder + "/zdc.sqlite")
    #expect(CheckTests.reason { try DataFolder(path: folder) } == reason)
    #expect(CheckTests.reason { try DataFolder.check(path: folder) } == reason)
    let serve = try await ServerProcess.run(["serve", "--data", folder, "--listen", "127.0.0.1:0"])
    #expect((serve.status, serve.output) == (status, ""))
    #expect(try await ServerProcess.run(["check", "--data", folder]).status == status)
    #expect(try TestServer.bytes(of: folder + "/zdc.sqlite") == before)
  }

  @Test func aFolderOfANewerServer_isLeftAlone() async throws {
    try await expectRefusal("newer", status: 65) { folder in
      try TestServer.sql("PRAGMA user_version = 1000", in: folder)
    }
  }

  @Test func aDatabaseThatIsNoneOfOurs_isLeftAlone() async throws {
    try await expectRefusal("damaged", status: 65) { folder in
      try TestServer.sql("PRAGMA application_id = 1", in: folder)
    }
    try await expectRefusal("damaged", status: 65) { folder in
      try TestServer.write(randomBytes(100_000), to: folder + "/zdc.sqlite")
    }
  }

  @Test func aFolderThatCannotBeMade() async throws {
    #expect(CheckTests.reason { try DataFolder(path: "/dev/null/zdc") } == "cannotCreate")
    #expect(try await ServerProcess.run(["serve", "--data", "/dev/null/zdc"]).status == 73)
  }

  @Test(.enabled(if: geteuid() != 0, "root writes everywhere")) func aFolderThatCannotBeWritten() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try FileManager.default.createDirectory(
      atPath: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o500])
    #expect(CheckTests.reason { try DataFolder(path: folder) } == "noPermission")
    #expect(try await ServerProcess.run(["serve", "--data", folder]).status == 77)
  }

  @Test func checkSaysByItsStatusWhatItFound() async throws {
    try await CheckTests.Fixture.with { fixture in
      let clean = try await ServerProcess.run(["check", "--data", fixture.folder])
      #expect(clean.status == 0)
      #expect(clean.output.hasSuffix("no damage\n"))
      try fixture.flip(fixture.path(fixture.large.blob), at: 100_000)
      let damaged = try await ServerProcess.run(["check", "--data", fixture.folder, "--json"])
      #expect(damaged.status == 1)
      let lines = damaged.output.split(separator: "\n")
      let blob = fixture.large.blob.text
      #expect(lines.count == 3)
      #expect(
        lines.first == """
          {"detail":"the bytes do not match the stored leaf hash","ids":{"blob":"\(blob)","leaf":"1"},"kind":"blobFile",\
          "severity":"damage"}
          """)
      #expect(lines.last?.hasPrefix("{\"summary\":{\"clean\":false,") == true)
      let server = try await ServerProcess.serve(folder: fixture.folder)
      #expect(try await ServerProcess.run(["check", "--data", fixture.folder]).status == 69)
      #expect(await server.stop() == 0)
    }
    #expect(try await ServerProcess.run(["check", "--data", "/nowhere"]).status == 66)
  }

  /// - an upload is given up between the question whether it is complete and the look at its files
  /// => no file is made in their place
  @Test func anAbandonedUpload_leavesNoFile() async throws {
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    let blobs = try FolderBlobStore(folder: "\(folder)/blobs")
    await #expect(throws: (any Error).self) { try await blobs.contentRoot(.random(), cipherLength: 70_000) }
    #expect(try await blobs.all() == [])
  }
}
