import Foundation
import Testing
import ZeroDarkCloudTesting

@testable import ZDCAccounts
@testable import ZDCClientStore
@testable import ZDCSync
@testable import ZDCTransfers
@testable import ZeroDarkCloud

@Suite struct FrameworkTests {
  let fixture: DatabaseFixture

  init() throws { fixture = try DatabaseFixture() }

  private func framework(
    treeID: String = "com.example.test", server: String = "https://sync.example.com", name: String = "db"
  ) throws -> ZeroDarkCloud {
    let url = try #require(URL(string: server))
    var config = ZDCConfig(primaryTreeID: treeID, serverURL: url, databaseDirectory: fixture.folder)
    config.databaseName = name
    config.syncAutomatically = false
    return try ZeroDarkCloud(delegate: NoOpDelegate(), config: config)
  }

  // MARK: Configuration

  @Test(arguments: [
    "", "short", String(repeating: "x", count: 65), "com.example.dätä", "com example todo", ".com.example",
    "com/example",
  ])
  func treeIDThatIsNone_isRefused(treeID: String) {
    #expect(zdcCode { _ = try framework(treeID: treeID) } == .invalidTreeID)
  }

  @Test(arguments: [
    "http://sync.example.com", "http://127.evil.example", "http://127.0.0.1.evil.example", "http://127.0.0.256",
    "http://localhost.evil.example", "http://[::2]:8080", "http://192.168.0.1:8080",
  ]) func plainHTTPBeyondLoopback_isRefused(server: String) {
    #expect(zdcCode { _ = try framework(server: server) } == .insecureServerURL)
  }

  @Test(arguments: [
    "ftp://sync.example.com", "sync.example.com", "https://", "https://user@sync.example.com", "https://a.b/path",
    "https://a.b/?query", "https://a.b/#fragment",
  ]) func addressThatIsNoServer_isRefused(server: String) {
    #expect(zdcCode { _ = try framework(server: server) } == .invalidServerURL)
  }

  @Test(arguments: [
    ("https://Sync.Example.com", "https://sync.example.com"), ("https://a.b:443/", "https://a.b"),
    ("https://a.b:8443", "https://a.b:8443"), ("http://127.0.0.1:8080", "http://127.0.0.1:8080"),
    ("http://127.1.2.3", "http://127.1.2.3"), ("HTTP://LOCALHOST:80", "http://localhost"),
    ("http://[::1]:8080", "http://[::1]:8080"),
  ]) func goodAddress_hasItsOrigin(server: String, origin: String) throws {
    #expect(try framework(server: server).config.serverOrigin() == origin)
  }

  @Test func addressAsText_isTheURL_orRefused() throws {
    let config = try ZDCConfig(primaryTreeID: "com.example.test", server: "https://sync.example.com")
    #expect(config.serverURL.absoluteString == "https://sync.example.com")
    #expect(
      zdcCode { _ = try ZDCConfig(primaryTreeID: "com.example.test", server: "https://[::1") } == .invalidServerURL)
  }

  @Test(arguments: ["", "a/b", "..", ".hidden"]) func databaseNameThatIsNoFileName_isRefused(name: String) {
    #expect(zdcCode { _ = try framework(name: name) } == .invalidDatabaseName)
  }

  // MARK: Locked and unlocked

  @Test func managersAreNil_untilUnlocked() throws {
    let zdc = try framework()
    #expect(!zdc.isDatabaseUnlocked)
    #expect(zdc.databaseManager == nil)
    let key = try zdc.databaseKeyManager.createKey()
    try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: key))
    #expect(zdc.isDatabaseUnlocked)
    #expect(zdc.databaseManager != nil)
    #expect(FileManager.default.fileExists(atPath: zdc.databasePath.path))
  }

  @Test func unlockingTwice_isRefused_andTheFirstStaysOpen() throws {
    let zdc = try framework()
    let config = ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key)
    try zdc.unlockOrCreateDatabase(config)
    #expect(zdcCode { try zdc.unlockOrCreateDatabase(config) } == .databaseAlreadyUnlocked)
    #expect(zdc.isDatabaseUnlocked)
  }

  @Test func wrongKey_staysLocked_theRightOneUnlocksAfterwards() throws {
    let zdc = try framework()
    try framework().unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key))
    let wrong = ZDCDatabaseConfig(encryptionKey: DatabaseFixture.otherKey)
    #expect(zdcCode { try zdc.unlockOrCreateDatabase(wrong) } == .wrongDatabaseKey)
    #expect(!zdc.isDatabaseUnlocked)
    try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key))
    #expect(zdc.isDatabaseUnlocked)
  }

  @Test func closed_isLocked_andCanBeUnlockedAgain() async throws {
    let zdc = try framework()
    let config = ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key)
    try zdc.unlockOrCreateDatabase(config)
    let database = try #require(zdc.databaseManager)
    try await database.rwDatabaseConnection.write { $0.setObject(1, forKey: "1", inCollection: "numbers") }
    try await zdc.close()
    #expect(zdc.databaseManager == nil)
    try zdc.unlockOrCreateDatabase(config)
    let reopened = try #require(zdc.databaseManager)
    #expect(try await reopened.roDatabaseConnection.read { try $0.numberOfKeys(inCollection: "numbers") } == 1)
  }

  /// - A device has sent a node and is closed
  /// => its managers are freed, and with them its connections to the server
  @Test func closed_isFreed() async throws {
    let server = try await TestServer.start()
    weak var sync: ZDCSyncManager?
    weak var users: ZDCLocalUserManager?
    weak var downloads: ZDCDownloadManager?
    weak var disk: ZDCDiskManager?
    weak var database: ZDCDatabaseManager?
    do {
      let config = ZDCConfig(
        primaryTreeID: "com.example.test", serverURL: server.url, databaseDirectory: fixture.folder)
      let zdc = try ZeroDarkCloud(delegate: NoOpDelegate(), config: config)
      let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: Data(repeating: 7, count: 32)))
      (sync, users, downloads) = (session.syncManager, session.localUserManager, session.downloadManager)
      (disk, database) = (session.diskManager, session.databaseManager)
      let user = try await session.localUserManager.createAccount().localUser
      try await session.tree(of: user).write { _, cloud in
        try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: ["note"]))
      }
      _ = try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
      try await zdc.close()
    }
    for _ in 0..<200 where sync != nil || users != nil || downloads != nil || disk != nil || database != nil {
      try await Task.sleep(for: .milliseconds(10))
    }
    #expect(sync == nil && users == nil && downloads == nil && disk == nil && database == nil)
    try await server.stop()
  }

  @Test func delegate_isHeldStrongly_andMayBeReplaced() throws {
    let zdc = try framework()
    weak let first = zdc.delegate as? NoOpDelegate
    #expect(first != nil)
    zdc.delegate = NoOpDelegate()
    #expect(first == nil)
  }

  // MARK: Session

  @Test func unlocking_returnsTheManagers_andTreesOfItsUsers() async throws {
    let zdc = try framework()
    #expect(zdc.session == nil)
    let session = try zdc.unlockOrCreateDatabase(ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key))
    #expect(session.databaseManager === zdc.databaseManager && session.syncManager === zdc.syncManager)
    let nobody = session.tree(ofLocalUserID: "unknown")
    #expect(nobody.treeID == "com.example.test")
    await #expect(throws: ZDCError.self) { try await nobody.write { _, cloud in _ = cloud.localUserID } }
    await #expect(throws: ZDCError.self) { try await nobody.read { _, cloud in cloud.localUserID } }
    try await session.close()
    #expect(zdc.session == nil)
    let closed = session.tree(ofLocalUserID: "unknown")
    #expect(await zdcCodeOf { try await closed.write { _, _ in } } == .databaseLocked)
    #expect(await zdcCodeOf { try await closed.read { _, _ in } } == .databaseLocked)
  }

  // MARK: Errors

  @Test(arguments: ZDCError.Code.allCases) func everyCode_saysWhatToDo(code: ZDCError.Code) {
    #expect(code.explanation != code.rawValue)
    #expect(!"\(ZDCError(code))".contains("ZDCError"))
  }

  @Test func description_holdsNothingOfTheUnderlyingError() {
    let underlying = NSError(domain: "CANARY", code: 1)
    #expect(!"\(ZDCError(.databaseFailure, underlying: underlying))".contains("CANARY"))
  }
}
