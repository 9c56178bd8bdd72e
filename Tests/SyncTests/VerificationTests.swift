import Foundation
import GRDB
import Testing
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// The checks that a client makes itself, whatever the server says, and how far a failure spreads.
struct VerificationTests {
  // MARK: Isolation of trees

  /// - home's first commit is not the one that the account's chain names
  /// => home is frozen; prefs is pulled and pushed as usual
  @Test func anotherGenesis_freezesItsTree_andOthersContinue() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["zoneForkDetected"], on: b)
      world.mayWait(b)
      try await Self.createPref(a, "one")
      try await a.sync()
      // As if the chain named prefs' genesis for home.
      try await Self.sql(b, "UPDATE zdc_zone SET trunk = 2 WHERE trunk = 1")
      await #expect(throws: ZDCSecurityError.self) { try await b.sync() }
      #expect(try await Self.frozen(b) == ["zoneForkDetected"])
      #expect(b.recorder.take() == ["new /one"])
    }
  }

  @Test func aFrozenTree_holdsNeitherPullNorPushOfOthers_inTheSameSync() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["recordRollback"], on: b)
      world.mayWait(b)
      try await a.create("/f", "1")
      try await Self.createPref(a, "one")
      try await world.settle(a, b)
      // B has seen version 9 of /f.
      try await Self.sql(b, "UPDATE zdc_node SET recordVersion = 9 WHERE dataVersion IS NOT NULL AND depth = 1")
      try await a.edit("/f", "2")
      try await a.sync()
      try await Self.createPref(b, "two")
      await #expect(throws: ZDCSecurityError.self) { try await b.sync() }
      #expect(try await Self.frozen(b) == ["recordRollback"])
      #expect(try await b.tree(versions: false) == "/f  \"1\"")
      try await a.pull()
      #expect(a.recorder.take().contains("new /two"))
      // From then on the freeze is known, and no longer an error.
      try await b.sync()
    }
  }

  /// => content with a lower version number than the accepted one is refused, like such a record
  @Test func contentThatGoesBack_freezesTheTree() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["recordRollback"], on: b)
      world.mayWait(b)
      try await a.create("/f", "1")
      try await world.settle(a, b)
      try await Self.sql(b, "UPDATE zdc_node SET dataVersion = 9 WHERE dataVersion IS NOT NULL AND depth = 1")
      try await a.edit("/f", "2")
      try await a.sync()
      await #expect(throws: ZDCSecurityError.self) { try await b.sync() }
    }
  }

  /// - a grant is withheld
  /// => that tree waits, reported once; others continue; when the grant arrives, so does the tree
  @Test func aTreeWithoutItsGrant_waits_andOthersContinue() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      world.expectsSecurityErrors(["grantMissing"], on: b)
      try await a.create("/f", "1")
      try await Self.createPref(a, "one")
      try await a.sync()
      let grants = try Self.server(world) { db in
        let zone = try Int64.fetchOne(db, sql: "SELECT min(zone) FROM commits")
        let rows = try Row.fetchAll(db, sql: "SELECT * FROM grants WHERE zone = ?", arguments: [zone])
        try db.execute(sql: "DELETE FROM grants WHERE zone = ?", arguments: [zone])
        return rows
      }
      #expect(!grants.isEmpty)
      try await b.sync()
      try await b.sync()
      #expect(b.recorder.take() == ["new /one"])
      try Self.server(world) { db in
        for row in grants {
          let marks = row.map { _ in "?" }.joined(separator: ", ")
          try db.execute(
            sql: "INSERT INTO grants (\(row.columnNames.joined(separator: ", "))) VALUES (\(marks))",
            arguments: StatementArguments(row.databaseValues))
        }
      }
      try await b.sync()
      #expect(b.recorder.take() == ["new /f"])
    }
  }

  /// - the zone's key is gone
  /// => the grant is asked for again
  @Test func aZoneWithoutItsKey_asksForTheGrantAgain() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      try await a.create("/f", "1")
      try await Self.createPref(a, "one")
      try await a.sync()
      // The commits arrive, but the records after them do not.
      b.network.fail(.loseRequest, "POST", "/v1/trees/{treeID}/zones/{zoneRoot}/records")
      await #expect(throws: TransportError.self) { try await b.pull() }
      try await Self.sql(b, "UPDATE zdc_zone SET sealedKey = NULL WHERE trunk = 1")
      try await b.sync()
      #expect(b.recorder.take().sorted() == ["new /f", "new /one"])
    }
  }

  // MARK: Damage

  /// Damage of a server's data, and how a new device names it: by the code at the end of its sync, or of its downloads.
  struct Damage: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var sync: String?
    var download: String?
    /// Whether the device's own changes are sent nevertheless.
    var isPushed = false
    var change: @Sendable (Database) throws -> Void
  }

  static let damages = [
    Damage(testDescription: "a record", sync: "objectMissing", isPushed: true) { db in
      try flip("record", of: "nodes WHERE id = (SELECT max(id) FROM nodes)", in: db)
    },
    Damage(testDescription: "grants", sync: "grantHashMismatch") { try flip("bytes", of: "grants", in: $0) },
    Damage(testDescription: "access lists", sync: "nonCanonicalEncoding") { try flip("bytes", of: "acls", in: $0) },
    Damage(testDescription: "a commit", sync: "commitChainBroken") { db in
      try db.execute(sql: "DELETE FROM commits WHERE seq = 2")
    },
    Damage(testDescription: "content", download: "contentHashMismatch", isPushed: true) { db in
      try flip("bytes", of: "contents", in: db)
    },
    Damage(testDescription: "zones", sync: "accountStateMissing") { try $0.execute(sql: "DELETE FROM zones") },
  ]

  /// => what failed has its code, and a change that is not sent has an error or a reason
  @Test(arguments: damages) func damagedData_isNamed_byWhatItStops(damage: Damage) async throws {
    try await TestWorld.run { world in
      world.skipsComparison()
      let (a, b) = (try await world.device("A"), try await world.device("B"))
      world.mayWait(b)
      for path in ["/a", "/b", "/c"] {
        try await a.create(path, path)
        try await a.sync()
      }
      try Self.server(world, damage.change)
      try await world.server.restart()
      let synced = await Self.code { try await b.sync() }
      let met = try await b.securityErrors() + [synced].compactMap(\.self)
      #expect(Set(met) == Set([damage.sync].compactMap(\.self)))
      let downloaded = await Self.code { try await b.download() }
      #expect(downloaded == damage.download)
      let waits = try await Self.push(b)
      #expect((waits == nil) == damage.isPushed, "\(waits ?? "sent")")
      world.expectsSecurityErrors(try await b.securityErrors(), on: b)
    }
  }

  /// Returns the code of the error that a step throws.
  private static func code(_ step: () async throws -> Void) async -> String? {
    do { try await step() } catch { return HostileScenario.code(of: error) }
    return nil
  }

  /// Creates a node and pushes it. Returns the code of the error, or the reason that it waits; nil if it was sent.
  private static func push(_ device: TestDevice) async throws -> String? {
    let refusal = await code {
      try await device.create("/new", "n")
      try await device.push()
    }
    guard refusal == nil else { return refusal }
    return try await device.explain("/new")?.operations.first?.reason.rawValue
  }

  /// Changes the middle byte of a column in each of these rows.
  private static func flip(_ column: String, of rows: String, in db: Database) throws {
    let table = rows.prefix { $0 != " " }
    let found = try Row.fetchAll(db, sql: "SELECT rowid, \(column) FROM \(rows)")
    guard !found.isEmpty else { throw TestFailure("nothing to damage in \(table)") }
    for row in found {
      let id: Int64 = row[0]
      var bytes: Data = row[1]
      bytes[bytes.count / 2] ^= 0xFF
      try db.execute(sql: "UPDATE \(table) SET \(column) = ? WHERE rowid = ?", arguments: [bytes, id])
    }
  }

  // MARK: Syncing until idle

  /// - the app merges, inside the callback of the last round
  /// => one call sends it
  @Test func workThatACallbackQueues_isDoneInTheSameSync() async throws {
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
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        transaction.setObject(TestContent("A and B"), forKey: node.uuid, inCollection: TestContent.collection)
        cloud.didMergeData(withETag: try #require(node.eTag_data), forNodeID: node.uuid)
      }
      try await b.sync()
      #expect(try await b.queueCount() == 0)
    }
  }

  /// - the app answers every push with another change
  /// => the sync ends nevertheless
  @Test func anAppThatQueuesForEver_doesNotHoldTheSync() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      world.mayWait(a)
      a.recorder.on(.pushed, times: 100_000) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try a.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
      }
      try await a.create("/f", "1")
      try await a.sync()
      #expect(try await a.queueCount() == 1)
    }
  }

  // MARK: Depth

  /// => a move counts the whole branch, and nodes that the cloud never had count as new
  @Test func aMove_isRefusedForWhatIsBelowTheMovedNode() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      func chain(_ name: String, _ count: Int) -> [String] {
        (1...count).map { depth in String(repeating: "/\(name)", count: depth) }
      }
      for path in chain("a", 128) + chain("b", 128) + chain("c", 2) { try await a.create(path) }
      let bottom = try #require(chain("a", 128).last)
      await #expect(throws: ZDCCloudError.self) { try await a.move("/b", to: "\(bottom)/b") }
      await #expect(throws: ZDCCloudError.self) { try await a.move("/c", to: "\(bottom)/c") }
      try await a.sync()
      try await a.move("/b", to: "\(bottom)/b")
      let deepest = "\(bottom)\(chain("b", 127).last ?? "")"
      await #expect(throws: ZDCCloudError.self) { try await a.move("/c", to: "\(deepest)/c") }
      try await a.move("/c/c", to: "\(deepest)/c")
      try await a.sync()
      #expect(try world.server.nodeCount() == 258)
    }
  }

  // MARK: Deleted elsewhere, changed here

  /// - the app queues the node again inside the callback
  /// => that upload runs immediately, with the folders above; changes queued before wait
  @Test func queuedInsideTheDirtyDeleteCallback_runsImmediately() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for path in ["/d", "/d/f", "/d/g"] { try await a.create(path, "0") }
      try await world.settle(a, b)
      try await a.delete("/d")
      try await a.sync()
      try await b.edit("/d/f", "F")
      try await b.edit("/d/g", "G")
      let kept = try await b.node("/d/f")
      b.recorder.on(.deletedDirty) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        cloud.queueDataUpload(forNodeID: kept.uuid, withChangeset: nil)
      }
      try await b.sync()
      try await world.settle(a)
      #expect(try await a.tree(versions: false) == "/d  \"0\"\n/d/f  \"F\"")
      #expect(
        try await b.tree(versions: false)
          == "/d  \"0\"\n/d/f  \"F\"\n/d/g  \"G\"  [putData deletedRemotely, create deletedRemotely]")
      world.mayWait(b)
    }
  }

  /// - the app moves the changed node out of the folder inside the callback
  /// => it is created at its new place
  @Test func movedOutInsideTheDirtyDeleteCallback_isKept() async throws {
    try await TestWorld.run { world in
      let a = try await world.device("A")
      let b = try await world.device("B")
      for path in ["/d", "/d/f"] { try await a.create(path, "0") }
      try await world.settle(a, b)
      try await a.delete("/d")
      try await a.sync()
      try await b.edit("/d/f", "F")
      let kept = try await b.node("/d/f")
      b.recorder.on(.deletedDirty) { node, transaction in
        let transaction = try #require(transaction as? ZDCReadWriteTransaction)
        let cloud = try #require(try b.zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID))
        _ = try cloud.moveNode(kept, to: ZDCTreesystemPath(pathComponents: ["f"]))
      }
      try await world.settle(b, a)
      #expect(try await a.tree(versions: false) == "/f  \"F\"")
      #expect(try await b.node("/f").uuid == kept.uuid)
    }
  }

  // MARK: Tools

  private static func createPref(_ device: TestDevice, _ name: String) async throws {
    try await device.write { _, cloud in
      _ = try cloud.createNode(withPath: ZDCTreesystemPath(pathComponents: [name], trunk: .prefs))
    }
  }

  private static func frozen(_ device: TestDevice) async throws -> [String] {
    let zones = try await device.syncManager.frozenZones(localUserID: device.localUserID)
    return zones.map { $0.error.rawValue }
  }

  private static func sql(_ device: TestDevice, _ statement: String) async throws {
    try await device.database.write { transaction in try transaction.database.execute(sql: statement) }
  }

  /// Changes the server's database, as an attacker with the server's files could.
  @discardableResult
  static func server<Result>(_ world: TestWorld, _ body: (Database) throws -> Result) throws -> Result {
    var configuration = Configuration()
    configuration.busyMode = .timeout(5)
    let queue = try DatabaseQueue(
      path: world.server.folder.appendingPathComponent("zdc.sqlite").path, configuration: configuration)
    let result = try queue.write(body)
    try queue.close()
    return result
  }
}
