import Foundation
import Testing
import ZDCMerge
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// An app can name every error that the framework throws, with `import ZeroDarkCloud` alone.
@Suite(.timeLimit(.minutes(10))) struct ErrorTests {
  private func config(_ treeID: String = "com.example.sheets", server: URL) -> ZDCConfig {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("errors-\(UUID().uuidString)")
    var config = ZDCConfig(primaryTreeID: treeID, serverURL: server, databaseDirectory: folder)
    config.syncAutomatically = false
    return config
  }

  /// Runs `body` with an unlocked framework, then removes its folder.
  private func withFramework<Result>(
    _ config: ZDCConfig, _ body: (ZDCSession) async throws -> Result
  ) async throws -> Result {
    let zdc = try ZeroDarkCloud(delegate: NoOpDelegate(), config: config)
    let key = Data((0..<32).map { _ in UInt8.random(in: 0...255) })
    let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
    do {
      let result = try await body(session)
      try await close(session, config)
      return result
    } catch {
      try await close(session, config)
      throw error
    }
  }

  private func close(_ session: ZDCSession, _ config: ZDCConfig) async throws {
    try await session.close()
    try FileManager.default.removeItem(at: config.databaseDirectory)
  }

  // MARK: Codes

  /// A `switch` over a code needs a `default`, so that a new code does not break it.
  private func advice(_ code: ZDCError.Code) -> String {
    switch code {
    case .diskFull: "make room"
    case .databaseBusy, .syncedElsewhere: "wait"
    default: "\(code): \(code.explanation)"
    }
  }

  @Test func codesCanBeSwitched_compared_andPrinted() {
    #expect(advice(.diskFull) == "make room")
    #expect(advice(.syncedElsewhere) == "wait")
    #expect(advice(.databaseLocked).hasPrefix("databaseLocked: the database is locked;"))
    #expect(Set([ZDCTransportError.Code.offline, .refused, .offline]).count == 2)
    let code = ZDCServerError.Code.storageFull
    #expect("\(code)" == "storageFull" && !code.explanation.contains("storageFull"))
  }

  /// An app stores the IDs of an error in its own variables.
  private struct Report {
    var zone: ZDCZoneID?
    var tree: ZDCTreeID?
    var node: ZDCNodeID?
    var user: ZDCUserID?
    var trunk: ZDCTreesystemTrunk?

    init(_ error: ZDCSecurityError) {
      (zone, tree, node, user) = (error.zone, error.zone?.tree, error.node, error.user)
    }

    init(_ frozen: ZDCFrozenZone) { (zone, trunk) = (frozen.zone, frozen.trunk) }
  }

  @Test func idsInErrorsHaveNames() {
    let report = Report(ZDCSecurityError(.zoneRollback))
    #expect(report.zone == nil && report.tree == nil && report.node == nil && report.user == nil && report.trunk == nil)
  }

  // MARK: One type for each domain

  @Test func thisDevice() async throws {
    let elsewhere = config(server: try #require(URL(string: "http://example.com")))
    do throws(ZDCError) {
      _ = try ZeroDarkCloud(delegate: NoOpDelegate(), config: elsewhere)
      Issue.record("nothing was thrown")
    } catch {
      #expect(error.code == .insecureServerURL)
    }
    do {
      try await withFramework(config(server: try #require(URL(string: "http://127.0.0.1:1")))) { session in
        try await session.localUserManager.delete("unknown")
      }
      Issue.record("nothing was thrown")
    } catch let error as ZDCError where error.code == .localUserNotFound {}
  }

  @Test func theNetwork() async throws {
    do {
      try await withFramework(config(server: try #require(URL(string: "http://127.0.0.1:1")))) { session in
        _ = try await session.localUserManager.createAccount()
      }
      Issue.record("nothing was thrown")
    } catch let error as ZDCTransportError where error.code == .refused {
      #expect(error.isTemporary)
    }
  }

  @Test func theServer() async throws {
    let server = try await TestServer.start(invites: ["an invitation of its operator"])
    do {
      try await withFramework(config(server: server.url)) { session in
        _ = try await session.localUserManager.createAccount()
      }
      Issue.record("nothing was thrown")
    } catch let error as ZDCServerError where error.code == .inviteRequired {
      #expect(!error.retryable)
    }
    try await server.stop()
  }

  @Test func dataThatDoesNotVerify() async throws {
    let server = try await TestServer.start()
    let words = try await withFramework(config(server: server.url)) { session in
      try await session.localUserManager.createAccount().words
    }
    do {
      try await withFramework(config("com.example.other", server: server.url)) { session in
        _ = try await session.localUserManager.login(words: words)
      }
      Issue.record("nothing was thrown")
    } catch let error as ZDCSecurityError where error.code == .accountStateMissing {}
    try await server.stop()
  }

  @Test func transactions() async throws {
    let server = try await TestServer.start()
    try await withFramework(config(server: server.url)) { session in
      let user = try await session.localUserManager.createAccount().localUser.uuid
      let tree = session.tree(ofLocalUserID: user)
      let path = ZDCTreesystemPath(pathComponents: ["groceries"])
      do {
        try await tree.write { _, cloud in
          try cloud.createNode(withPath: path)
          try cloud.createNode(withPath: path)
        }
        Issue.record("nothing was thrown")
      } catch let error as ZDCCloudError where error.code == .conflict {
        #expect(error.path == path && !"\(error)".contains("groceries"))
      }
    }
    try await server.stop()
  }

  @Test func statementsOfTheApp() async throws {
    try await withFramework(config(server: try #require(URL(string: "http://127.0.0.1:1")))) { session in
      do {
        try await session.databaseManager.rwDatabaseConnection.write { _ in throw DatabaseError(message: "a constraint")
        }
        Issue.record("nothing was thrown")
      } catch let error as DatabaseError {
        #expect(error.message == "a constraint")
      }
    }
  }

  @Test func cancelledTasks() async throws {
    try await withFramework(config(server: try #require(URL(string: "http://127.0.0.1:1")))) { session in
      let connection = session.databaseManager.roDatabaseConnection
      let task = Task {
        while !Task.isCancelled { await Task.yield() }
        try await connection.read { _ in }
      }
      task.cancel()
      do {
        try await task.value
        Issue.record("nothing was thrown")
      } catch is CancellationError {}
    }
  }

  @Test func changesets() throws {
    var sheet = Sheet(title: "Groceries", items: [])
    sheet.title = "Shopping"
    do throws(ZDCSyncableError) {
      try sheet.merge(cloudVersion: sheet, pendingChangesets: [])
      Issue.record("nothing was thrown")
    } catch {
      #expect(error.code == .hasChanges)
    }
  }

  // MARK: Nothing else

  /// An error of the cryptography is none that an app can name.
  @Test func contentThatIsNotOfItsStatedSize() throws {
    let url = FileManager.default.temporaryDirectory.appendingPathComponent("errors-\(UUID().uuidString)")
    do {
      _ = try ZDCFileConversion.encryptCleartext(ofSize: 5, toCacheFile: url) { write in try write(Data([1])) }
      Issue.record("nothing was thrown")
    } catch let error as ZDCError where error.code == .fileModifiedDuringRead {}
    #expect(!FileManager.default.fileExists(atPath: url.path))
  }
}
