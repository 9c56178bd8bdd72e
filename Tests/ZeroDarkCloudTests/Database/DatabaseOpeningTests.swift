import Foundation
import GRDB
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

@Suite struct DatabaseOpeningTests {
  let fixture: DatabaseFixture

  init() throws { fixture = try DatabaseFixture() }

  /// Creates a database with one note, and closes it.
  private func makeDatabase() async throws {
    let manager = try fixture.open()
    try await manager.put(Note(title: "kept"), "1")
    try manager.close()
  }

  /// Expects that opening fails with the code and changes no byte of the database.
  private func expectRefusal(_ code: ZDCError.Code, key: Data = DatabaseFixture.key) throws {
    let before = try databaseBytes()
    #expect(zdcCode { _ = try fixture.open(key: key) } == code)
    #expect(try databaseBytes() == before)
  }

  private func databaseBytes() throws -> [String: Data] {
    try fixture.allBytes().filter { name, bytes in
      // SQLite may leave an empty log and its shared memory, which hold no data.
      !name.hasSuffix("-shm") && !name.hasSuffix("open-lock") && !(name.hasSuffix("-wal") && bytes.isEmpty)
    }
  }

  private func expectNoteIsKept() async throws {
    let manager = try fixture.open()
    #expect(try await manager.note("1") == Note(title: "kept"))
  }

  // MARK: Opening

  @Test func closedAndOpenedAgain_theObjectIsThere() async throws {
    try await makeDatabase()
    try await expectNoteIsKept()
  }

  @Test func commitsAreSyncedToDisk_andTheLogIsWriteAhead() async throws {
    let manager = try fixture.open()
    let settings = try await manager.rwDatabaseConnection.write { transaction in
      [
        try String.fetchOne(transaction.database, sql: "PRAGMA synchronous"),
        try String.fetchOne(transaction.database, sql: "PRAGMA journal_mode"),
        try String.fetchOne(transaction.database, sql: "PRAGMA foreign_keys"),
      ]
    }
    #expect(settings == ["2", "wal", "1"])
  }

  @Test func databaseFile_isForItsOwnerOnly() throws {
    let manager = try fixture.open()
    for file in [fixture.path.path, fixture.path.path + "-wal", fixture.path.path + "-shm"] {
      let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
      #expect(mode == 0o600)
    }
    try manager.close()
  }

  @Test func missingFolder_isMade() async throws {
    var config = fixture.config
    config.databaseDirectory = fixture.folder.appendingPathComponent("a/b")
    let manager = try ZDCDatabaseManager(
      config: config, databaseConfig: ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key))
    try manager.close()
    let facts = try FileManager.default.attributesOfItem(atPath: config.databaseDirectory.path)
    #expect(facts[.posixPermissions] as? Int == 0o700)
  }

  @Test func concurrentOpens_createOneDatabase() async throws {
    let fixture = fixture
    let opened = try await withThrowingTaskGroup(of: ZDCDatabaseManager.self) { group in
      for _ in 0..<8 { group.addTask { try fixture.open() } }
      return try await group.reduce(into: []) { $0.append($1) }
    }
    for (number, manager) in opened.enumerated() {
      try await manager.put(Note(title: "\(number)"), "\(number)")
    }
    let count = try await opened[0].roDatabaseConnection.read { try $0.numberOfKeys(inCollection: "notes") }
    #expect(count == 8)
  }

  // MARK: Refusals that change nothing

  @Test func wrongKey_isNoticed_andNothingIsLost() async throws {
    try await makeDatabase()
    try expectRefusal(.wrongDatabaseKey, key: DatabaseFixture.otherKey)
    try await expectNoteIsKept()
  }

  @Test(arguments: [0, 16, 31, 33]) func keyOfAnotherLength_isRefusedBeforeAnythingIsMade(length: Int) throws {
    #expect(zdcCode { _ = try fixture.open(key: Data(count: length)) } == .invalidEncryptionKey)
    #expect(try fixture.allBytes().isEmpty)
  }

  @Test func fileThatIsNoDatabase_isLeftAlone() throws {
    try Data("this is a diary, not a database at all, and it stays".utf8).write(to: fixture.path)
    try expectRefusal(.corruptDatabase)
  }

  @Test func damagedPages_areNoticed_andNotMadeWorse() async throws {
    try await makeDatabase()
    var bytes = try Data(contentsOf: fixture.path)
    for index in 100..<bytes.count { bytes[index] = UInt8(truncatingIfNeeded: index &* 31) }
    try bytes.write(to: fixture.path)
    try expectRefusal(.corruptDatabase)
  }

  @Test func truncatedFile_isNoticed() async throws {
    try await makeDatabase()
    let bytes = try Data(contentsOf: fixture.path)
    try bytes.prefix(bytes.count / 2).write(to: fixture.path)
    try expectRefusal(.corruptDatabase)
  }

  @Test func logWithoutItsFile_isNotThrownAway() throws {
    try Data("a log that may be the only copy".utf8).write(to: URL(fileURLWithPath: fixture.path.path + "-wal"))
    try expectRefusal(.corruptDatabase)
  }

  @Test func databaseOfSomethingElse_isLeftAlone() async throws {
    let other = try DatabaseQueue(path: fixture.path.path)
    try await other.write { try $0.execute(sql: "CREATE TABLE diary (text TEXT); INSERT INTO diary VALUES ('dear')") }
    try other.close()
    try expectRefusal(.foreignDatabase)
  }

  @Test func databaseOfANewerVersion_isLeftAlone() async throws {
    try await makeDatabase()
    let newer = try DatabaseQueue(path: fixture.path.path)
    try await newer.write { try $0.execute(sql: "INSERT INTO grdb_migrations VALUES ('zdc.999')") }
    try newer.close()
    try expectRefusal(.databaseTooNew)
  }

  @Test func missingKeyProbe_isDamage_notAnInvitationToUseAnyKey() async throws {
    try await makeDatabase()
    let queue = try DatabaseQueue(path: fixture.path.path)
    try await queue.write { try $0.execute(sql: "DELETE FROM zdc_meta") }
    try queue.close()
    try expectRefusal(.corruptDatabase, key: DatabaseFixture.otherKey)
  }

  @Test func folderBelowAFile_cannotBeMade() throws {
    let file = fixture.folder.appendingPathComponent("file")
    try Data().write(to: file)
    var config = fixture.config
    config.databaseDirectory = file.appendingPathComponent("below")
    let databaseConfig = ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key)
    let code = zdcCode { _ = try ZDCDatabaseManager(config: config, databaseConfig: databaseConfig) }
    #expect(code == .databaseNotWritable)
  }

  /// Runs in a separate process that drops root privileges, because root can write everywhere.
  @Test func readOnlyFolder_isRefused() async throws {
    await #expect(processExitsWith: .success) {
      let fixture = try DatabaseFixture()
      try FileManager.default.setAttributes([.posixPermissions: 0o555], ofItemAtPath: fixture.folder.path)
      if geteuid() == 0 { try #require(seteuid(65_534) == 0) }
      try #require(zdcCode { _ = try fixture.open() } == .databaseNotWritable)
    }
  }

  @Test func readOnlyFile_isRefused() async throws {
    await #expect(processExitsWith: .success) {
      let fixture = try DatabaseFixture()
      try fixture.open().close()
      try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: fixture.folder.path)
      let lock = fixture.path.appendingPathExtension("open-lock").path
      try FileManager.default.setAttributes([.posixPermissions: 0o666], ofItemAtPath: lock)
      try FileManager.default.setAttributes([.posixPermissions: 0o444], ofItemAtPath: fixture.path.path)
      if geteuid() == 0 { try #require(seteuid(65_534) == 0) }
      try #require(zdcCode { _ = try fixture.open() } == .databaseNotWritable)
    }
  }

  // MARK: The app's migrations

  @Test func appMigrations_runOnceAfterOurs_inTheSameFile() async throws {
    let runs = Collected()
    let open = { (fixture: DatabaseFixture) in
      try fixture.open { migrator in
        migrator.registerMigration("v1") { db in
          runs.append(1)
          try db.execute(sql: "CREATE TABLE app (id INTEGER)")
        }
        migrator.registerMigration("v2") { db in
          runs.append(2)
          try db.execute(sql: "ALTER TABLE app ADD COLUMN title TEXT")
        }
      }
    }
    try open(fixture).close()
    let manager = try open(fixture)
    #expect(runs.values == [1, 2])
    let applied = try await manager.roDatabaseConnection.read {
      try String.fetchAll($0.database, sql: "SELECT identifier FROM grdb_migrations ORDER BY rowid")
    }
    #expect(applied.prefix(1) == ["zdc.1"])
    #expect(applied.suffix(2) == ["v1", "v2"])
  }

  @Test func appMigrationThatThrows_comesOut_andIsTriedAgain() throws {
    #expect(throws: AppError.self) {
      _ = try fixture.open { migrator in
        migrator.registerMigration("v1") { db in
          try db.execute(sql: "CREATE TABLE app (id INTEGER)")
          throw AppError()
        }
      }
    }
    let manager = try fixture.open { migrator in
      migrator.registerMigration("v1") { db in try db.execute(sql: "CREATE TABLE app (id INTEGER)") }
    }
    try manager.close()
  }

  @Test(arguments: ["zdc.2", "ZDC.app"]) func appMigrationWithOurName_isRefused(name: String) throws {
    let code = zdcCode { _ = try fixture.open { $0.registerMigration(name) { _ in } } }
    #expect(code == .reservedName)
    #expect(try fixture.allBytes().isEmpty)
  }

  @Test func twoAppMigrationsWithOneName_areRefused() {
    let code = zdcCode {
      _ = try fixture.open { migrator in
        migrator.registerMigration("v1") { _ in }
        migrator.registerMigration("v1") { _ in }
      }
    }
    #expect(code == .duplicateMigration)
  }

  @Test(arguments: [
    "CREATE TABLE zdc_mine (id INTEGER)", "CREATE TABLE ZDC_mine (id INTEGER)", "CREATE VIEW zdc_v AS SELECT 1",
    "ALTER TABLE zdc_object ADD COLUMN mine TEXT", "DROP TABLE zdc_tag", "CREATE INDEX mine ON zdc_node (uuid)",
    "CREATE TRIGGER mine AFTER INSERT ON zdc_node BEGIN SELECT 1; END",
  ]) func appMigrationThatTouchesOurTables_isRolledBack(sql: String) async throws {
    try await makeDatabase()
    let code = zdcCode { _ = try fixture.open { $0.registerMigration("v1") { try $0.execute(sql: sql) } } }
    #expect(code == .reservedName)
    try await expectNoteIsKept()
  }

  // MARK: Reading files without the key

  @Test func filesHoldNoCleartextOfCollectionsKeysOrValues() async throws {
    let canaries = ["CANARYcollection", "CANARYkey", "CANARYvalue"]
    let manager = try fixture.open()
    try await manager.rwDatabaseConnection.write { transaction in
      for number in 0..<50 {
        let note = Note(title: "CANARYvalue\(number)")
        transaction.setObject(note, forKey: "CANARYkey\(number)", inCollection: "CANARYcollection")
      }
      transaction.setObject(Note(title: "CANARYvalue"), forKey: "CANARYkey7", inCollection: "CANARYcollection")
      transaction.removeObject(forKey: "CANARYkey8", inCollection: "CANARYcollection")
      // Cleartext on purpose: the search must be able to find something.
      try transaction.database.execute(sql: "CREATE TABLE app (text TEXT); INSERT INTO app VALUES ('PLANTED')")
    }
    // Read while the database is open, to search the log too, and again after the log is in the database file.
    let open = try fixture.allBytes()
    try manager.close()
    let closed = try fixture.allBytes()
    #expect(open.keys.contains { $0.hasSuffix("-wal") })
    for files in [open, closed] {
      #expect(files.values.contains { $0.range(of: Data("PLANTED".utf8)) != nil })
      for canary in canaries {
        for bytes in [Data(canary.utf8), Data(canary.utf16.flatMap { [UInt8($0 & 255), UInt8($0 >> 8)] })] {
          #expect(files.values.allSatisfy { $0.range(of: bytes) == nil })
        }
      }
    }
  }
}
