import Foundation
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

@testable import ZDCServerPostgres

/// `zdc-server migrate`, and `check` of what it has made.
@Suite(.needsFolder) struct MigrateTests {
  /// A folder at rest with a row in every table.
  struct World {
    let folder: String
    let fixture: CheckTests.Fixture
    let owner: (account: TestAccount, token: [UInt8])
    let member: (account: TestAccount, token: [UInt8])
    /// Split off from the owner's home; the member follows it.
    var branch: TestZone
    /// The owner's and the member's positions in their feeds.
    let positions: [FeedPosition]

    static func with(_ body: (World) async throws -> Void) async throws {
      let folder = TestServer.newFolder()
      defer { TestServer.remove(folder) }
      let world = try await TestServer.run(in: folder) { (server: TestServer) async throws in
        try await fill(server)
      }
      try await body(world)
    }

    private static func fill(_ server: TestServer) async throws -> World {
      let fixture = try await CheckTests.Fixture.fill(server)
      let (owner, member, former) = (
        try await server.newAccount(), try await server.newAccount(), try await server.newAccount()
      )
      var home = owner.account.home
      let top = home.record(.random())
      try await server.put([top], in: &home, token: owner.token)
      let members = [(member.account.userID, ZoneACL.Permissions([.read, .write])), (former.account.userID, .read)]
      var branch = try await server.split(top.fields.node, of: &home, members: members, token: owner.token)
      for token in [member.token, former.token] { _ = try await server.accept(branch.zone, token: token).expect(200) }
      try await server.remove(former.account.userID, from: &branch, token: owner.token)
      let inbox = try #require(member.account.zones[.inbox]).zone.tree
      let envelope = MessageEnvelope(
        id: .random(), recipient: member.account.userID, inbox: inbox, recipientEncGen: 1, sealed: randomBytes(1_200))
      #expect(try await server.deliver([envelope], from: owner.token) == [.delivered])
      return World(
        folder: server.folder, fixture: fixture, owner: owner, member: member, branch: branch,
        positions: [
          try #require(try await server.zones(token: owner.token).feedPosition),
          try #require(try await server.zones(token: member.token).feedPosition),
        ])
    }

    /// Everything that the two users can read.
    func answers(_ server: some ServerClient) async throws -> [[UInt8]] {
      var answers: [[UInt8]] = []
      for token in [owner.token, member.token] {
        let list = try await server.zones(token: token)
        for status in list.zones.sorted(by: { $0.zone.root < $1.zone.root }) {
          answers.append(Array("\(status)".utf8))
          answers.append(try await server.page(status.zone, token: token).expect(200).bytes)
        }
      }
      answers.append(try await server.state(branch.zone, token: member.token).expect(200).bytes)
      let inbox = try #require(member.account.zones[.inbox]).zone.tree
      answers.append(Array("\(try await server.inbox(inbox, token: member.token).messages)".utf8))
      return answers
    }
  }

  private static func withDatabase(_ body: (_ url: String) async throws -> Void) async throws {
    let url = try TestPostgres.shared().newDatabase()
    let result: Result<Void, any Error>
    do { result = .success(try await body(url)) } catch { result = .failure(error) }
    try TestPostgres.shared().remove(url)
    try result.get()
  }

  private static func withFolders(_ body: (_ first: String, _ second: String) async throws -> Void) async throws {
    let folders = (TestServer.newFolder(), TestServer.newFolder())
    defer {
      TestServer.remove(folders.0)
      TestServer.remove(folders.1)
    }
    try await body(folders.0, folders.1)
  }

  private static func check(_ arguments: [String]) async throws {
    let check = try await ServerProcess.run(["check"] + arguments)
    #expect(check.status == 0, "\(check.output)")
  }

  /// - A folder is moved into PostgreSQL, used there, and moved into a folder again
  /// => all stores answer alike, commits and messages continue, and a position of before gets the whole list
  @Test func aServerMovesToAnotherStoreAndBack() async throws {
    try await World.with { world in
      try await Self.withDatabase { url in
        try await Self.withFolders { (beside, back) async throws in
          let before = try await TestServer.run(in: world.folder) { try await world.answers($0) }
          let there = try await ServerProcess.run(
            ["migrate", "--from-data", world.folder, "--to-data", beside, "--to-database", url])
          #expect(there.status == 0, "\(there.output)")
          #expect(there.output.hasPrefix("copied "))
          try await Self.check(["--data", beside, "--database", url])
          var branch = world.branch
          let moved = try await ServerProcess.serve(folder: beside, ["--database", url])
          #expect(try await world.answers(moved) == before)
          try await Self.expectWholeLists(world, moved)
          try await moved.put([Self.record(in: branch)], in: &branch, token: world.owner.token)
          let after = try await world.answers(moved)
          #expect(await moved.stop() == 0)
          let again = try await ServerProcess.run(
            ["migrate", "--from-data", beside, "--from-database", url, "--to-data", back, "--json"])
          #expect(again.status == 0, "\(again.output)")
          #expect(again.output.contains(#"{"summary":{"closedAccounts":0,"contentBytes":"#))
          try await Self.check(["--data", back])
          try await TestServer.run(in: back) { (server: TestServer) async throws in
            #expect(try await world.answers(server) == after)
            try await Self.expectWholeLists(world, server)
            try await server.put([Self.record(in: branch)], in: &branch, token: world.owner.token)
            try await Self.expectNews(of: branch, world, server)
          }
          #expect(try DataFolder.check(path: back).findings == [])
        }
      }
    }
  }

  /// - A server's rows are moved from one PostgreSQL database into another one
  /// => it answers as before, and takes commits
  @Test func aServerMovesToAnotherDatabase() async throws {
    try await World.with { world in
      try await Self.withDatabase { first in
        try await Self.withDatabase { second in
          try await Self.withFolders { (beside, other) async throws in
            let before = try await TestServer.run(in: world.folder) { try await world.answers($0) }
            for (from, to) in [
              (["--from-data", world.folder], ["--to-data", beside, "--to-database", first]),
              (["--from-data", beside, "--from-database", first], ["--to-data", other, "--to-database", second]),
            ] {
              let copied = try await ServerProcess.run(["migrate"] + from + to)
              #expect(copied.status == 0, "\(copied.output)")
            }
            try await Self.check(["--data", other, "--database", second])
            let moved = try await ServerProcess.serve(folder: other, ["--database", second])
            #expect(try await world.answers(moved) == before)
            var branch = world.branch
            try await moved.put([Self.record(in: branch)], in: &branch, token: world.owner.token)
            #expect(await moved.stop() == 0)
          }
        }
      }
    }
  }

  private static func record(in zone: TestZone) -> NodeRecord {
    zone.record(.random()) { $0.parentKeyGen = zone.acl.fields.zoneKeyGen }
  }

  /// Positions of the first server are unknown to the others.
  private static func expectWholeLists(_ world: World, _ server: some ServerClient) async throws {
    for (token, position) in zip([world.owner.token, world.member.token], world.positions) {
      let all = try await server.zones(token: token).zones
      #expect(try await server.zones("?since=\(position.text)", token: token).zones.count == all.count)
    }
  }

  /// A new position gets what has changed since.
  private static func expectNews(of zone: TestZone, _ world: World, _ server: some ServerClient) async throws {
    var zone = zone
    for token in [world.owner.token, world.member.token] {
      let position = try #require(try await server.zones(token: token).feedPosition)
      #expect(try await server.zones("?since=\(position.text)", token: token).zones == [])
      try await server.put([record(in: zone)], in: &zone, token: world.owner.token)
      #expect(try await server.zones("?since=\(position.text)", token: token).zones.map(\.zone) == [zone.zone])
    }
  }

  // MARK: - Interruption

  private struct Stop: Error {}

  /// - The copy is stopped after each page in turn, and a new one begins
  /// => it continues; no server opens the target in between; both stores have the same rows in the end
  @Test(arguments: [false, true]) func aCopyThatStopsIsContinued(intoPostgreSQL: Bool) async throws {
    try await World.with { world in
      try await Self.withDatabase { url in
        try await Self.withFolders { (path, _) async throws in
          let source = try DataFolder(path: world.folder)
          @Sendable func target() throws -> any CopyableStore {
            guard intoPostgreSQL else { return try SQLiteStore(path: path + ".sqlite", filling: true) }
            return try PostgresStore(url: url, connections: 1, filling: true)
          }
          defer { for suffix in ["", "-wal", "-shm"] { TestServer.remove(path + ".sqlite" + suffix) } }
          var stops = 0
          while true {
            let (store, isLast) = (try target(), stops == 40)
            let copy = StoreCopy(from: source.metadata, to: store, pageRows: 5) { _ in if !isLast { throw Stop() } }
            do { #expect(try await copy.copyRows() == []) } catch is Stop {
              stops += 1
              try await store.close()
              if intoPostgreSQL {
                #expect(throws: PostgresOpenError.self) { try PostgresStore(url: url, connections: 1) }
              } else {
                #expect(throws: StoreOpenError.self) { try SQLiteStore(path: path + ".sqlite") }
              }
              continue
            }
            #expect(try await copy.differences() == [])
            try await copy.finish()
            #expect(try await copy.differences() == [])
            try await store.close()
            break
          }
          #expect(stops == 40)
          try await source.metadata.close()
        }
      }
    }
  }

  /// - The program is killed while it copies, several times
  /// => the last run finishes, and the check finds nothing
  @Test func aKilledMigrationIsContinued() async throws {
    try await World.with { world in
      try await Self.withFolders { (target, _) async throws in
        let arguments = ["migrate", "--from-data", world.folder, "--to-data", target, "--json"]
        for lines in [1, 4, 8, 12] { try await ServerProcess.kill(arguments, afterLines: lines) }
        let last = try await ServerProcess.run(arguments)
        // A run that was not killed in time has left nothing to do.
        #expect([0, 73].contains(last.status), "\(last.output)")
        #expect(try DataFolder.check(path: target).findings == [])
      }
    }
  }

  // MARK: - Refusals and damage

  /// - A copy from another source has begun in a folder
  /// => neither a server nor the check uses the folder, and this source is not mixed into it
  @Test func anUnfinishedFolderIsRefused() async throws {
    try await World.with { world in
      try await Self.withFolders { (path, _) async throws in
        try await Self.beginFilling(path)
        let serve = try await ServerProcess.run(["serve", "--data", path, "--listen", "127.0.0.1:0"])
        #expect(serve.status == 70)
        let check = try await ServerProcess.run(["check", "--data", path])
        #expect((check.status, check.output) == (70, ""))
        let migrate = try await ServerProcess.run(["migrate", "--from-data", world.folder, "--to-data", path])
        #expect(migrate.status == 73)
      }
    }
  }

  /// Gives up the folder's lock when it returns.
  private static func beginFilling(_ path: String) async throws {
    let folder = try DataFolder(path: path, filling: true)
    try await folder.metadata.fill { try $0.beginFilling(from: [1]) }
    try await folder.metadata.close()
  }

  @Test func aDamagedBlobIsNamed_andTheOthersAreCopied() async throws {
    try await World.with { world in
      let (large, small) = (world.fixture.large, world.fixture)
      try small.flip(small.path(large.blob), at: 100_000)
      try await Self.withFolders { (target, _) async throws in
        let run = try await ServerProcess.run(["migrate", "--from-data", world.folder, "--to-data", target])
        #expect(run.status == 1)
        #expect(run.output.contains("damage blobFile blob=\(large.blob.text) leaf=1: the bytes do not match"))
        #expect(run.output.hasSuffix("; 1 damaged, not copied\n"))
        let findings = try DataFolder.check(path: target).findings
        #expect(findings.map(\.kind) == [.blobFileMissing])
      }
    }
  }

  @Test func damagedRowsAreNotCopied() async throws {
    try await World.with { world in
      try world.fixture.sql("UPDATE commits SET bytes = bytes || x'00' WHERE seq = 2")
      try await Self.withFolders { (target, _) async throws in
        let run = try await ServerProcess.run(["migrate", "--from-data", world.folder, "--to-data", target])
        #expect(run.status == 1)
        #expect(run.output.contains("damage zoneLog"))
        #expect(!FileManager.default.fileExists(atPath: target))
      }
    }
  }

  @Test func aDestinationInUse_orWithDataOfItsOwn_isRefused() async throws {
    try await World.with { world in
      try await Self.withFolders { (other, missing) async throws in
        try await TestServer.run(in: other) { (server: TestServer) async throws in
          _ = try await server.newAccount()
          let busy = try await ServerProcess.run(["migrate", "--from-data", world.folder, "--to-data", other])
          #expect(busy.status == 69)
        }
        let full = try await ServerProcess.run(["migrate", "--from-data", world.folder, "--to-data", other])
        #expect(full.status == 73)
        let none = try await ServerProcess.run(["migrate", "--from-data", missing, "--to-data", other])
        #expect(none.status == 66)
        let itself = try await ServerProcess.run(["migrate", "--from-data", world.folder, "--to-data", world.folder])
        #expect(itself.status == 69)
        #expect(!FileManager.default.fileExists(atPath: missing))
      }
    }
  }

  /// - The source changes between two runs
  /// => the comparison at the end notices, and the target stays unfinished
  @Test func aSourceThatChangedIsNoticed() async throws {
    try await World.with { world in
      try await Self.withFolders { (path, _) async throws in
        defer { for suffix in ["", "-wal", "-shm"] { TestServer.remove(path + ".sqlite" + suffix) } }
        let target = try SQLiteStore(path: path + ".sqlite", filling: true)
        let source = try DataFolder(path: world.folder)
        #expect(try await StoreCopy(from: source.metadata, to: target).copyRows() == [])
        try await source.metadata.write([.account(world.owner.account.userID)]) { tx in
          try tx.setKeyring([1], of: world.owner.account.userID)
        }
        #expect(try await StoreCopy(from: source.metadata, to: target).differences() == [.users])
        try await source.metadata.close()
        try await target.close()
      }
    }
  }

  // MARK: - The check of a database

  static let damages: [(sql: String, kind: String)] = [
    ("UPDATE links SET bytes = bytes || '\\x00'", "identityChain"),
    ("UPDATE users SET link_seq = 1 WHERE id = 1", "account"),
    ("DELETE FROM grants", "grant"),
    ("UPDATE commits SET bytes = bytes || '\\x00' WHERE seq = 2", "database"),
    ("UPDATE members SET permissions = 1", "accessList"),
    ("UPDATE nodes SET tag = '\\x00000000000000000000000000000001' WHERE id = (SELECT max(id) FROM nodes)", "database"),
    ("UPDATE nodes SET record = record || '\\x00' WHERE blob = 0", "database"),
    ("UPDATE nodes SET content = '\\x00' WHERE blob = 0", "content"),
    ("DELETE FROM nodes WHERE blob = 0", "node"),
    ("UPDATE blobs SET root = decode(repeat('00', 32), 'hex') WHERE content IS NULL", "blobFile"),
    ("UPDATE sums SET content_bytes = content_bytes + 1 WHERE zone = (SELECT max(zone) FROM sums)", "usage"),
  ]

  @Test func theCheckOfADatabaseFindsDamage() async throws {
    try await World.with { world in
      try await Self.withFolders { (beside, _) async throws in
        for damage in Self.damages {
          try await Self.withDatabase { url in
            TestServer.remove(beside)
            let run = try await ServerProcess.run(
              ["migrate", "--from-data", world.folder, "--to-data", beside, "--to-database", url])
            #expect(run.status == 0, "\(run.output)")
            try PostgresConnection(url).run(damage.sql)
            let check = try await ServerProcess.run(["check", "--data", beside, "--database", url])
            #expect(check.status == 1, "\(damage.sql)")
            #expect(check.output.contains("damage \(damage.kind) "), "\(damage.sql): \(check.output)")
          }
        }
      }
    }
  }
}
