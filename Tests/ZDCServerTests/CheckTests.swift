import Foundation
import GRDB
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// A check finds each kind of damage, says which, and finds nothing where nothing is wrong.
@Suite(.needsFolder) struct CheckTests {
  /// A folder at rest with one of everything.
  struct Fixture {
    let folder: String
    let account: TestAccount
    /// Live, in a file.
    let large: BlobTests.Large
    /// Its first part is there.
    let running: BlobTests.Large
    let node: NodeID
    /// Live, in the database.
    let small: TestZone.Content

    static func with<T>(_ body: (Fixture) async throws -> T) async throws -> T {
      let folder = TestServer.newFolder()
      defer { TestServer.remove(folder) }
      let fixture = try await TestServer.run(in: folder) { (server: TestServer) async throws in
        try await fill(server)
      }
      return try await body(fixture)
    }

    static func fill(_ server: TestServer) async throws -> Fixture {
      let (account, token) = try await server.newAccount()
      _ = try await server.newAccount()
      var zone = account.home
      let (folder, node, doomed) = (NodeID.random(), NodeID.random(), NodeID.random())
      let large = BlobTests.Large(200_000)
      try await server.upload(large, node, zone, token: token)
      let (small, old) = (TestZone.Content(), TestZone.Content())
      try await server.put(
        [
          zone.record(folder), zone.record(node, parent: folder, content: large.field),
          zone.record(.random(), parent: folder, content: small.field()), zone.record(doomed, content: old.field()),
        ], contents: [small, old], in: &zone, token: token)
      try await server.put([zone.record(folder, tag: .random())], in: &zone, token: token)
      try await server.delete(doomed, in: &zone, token: token)
      let running = BlobTests.Large(200_000)
      _ = try await server.ticket(running, .random(), zone, token: token).expect(201)
      _ = try await server.part(0, of: running, token: token).expect(204)
      try await server.upload(BlobTests.Large(70_000), .random(), zone, token: token)
      return Fixture(
        folder: server.folder, account: account, large: large, running: running, node: node, small: small)
    }

    func path(_ blob: BlobID, _ suffix: String = "content") -> String { "\(folder)/blobs/\(blob.text).\(suffix)" }

    func flip(_ path: String, at offset: Int) throws {
      var bytes = try TestServer.bytes(of: path)
      bytes[offset] ^= 1
      try TestServer.write(bytes, to: path)
    }

    func sql(_ statement: String) throws { try TestServer.sql(statement, in: folder) }

    /// The page on which an index begins, emptied.
    func emptyPage(of index: String) throws {
      let queue = try DatabaseQueue(path: folder + "/zdc.sqlite")
      let (root, size) = try queue.read { db in
        let root = try Int.fetchOne(db, sql: "SELECT rootpage FROM sqlite_schema WHERE name = ?", arguments: [index])
        return (try #require(root), try #require(try Int.fetchOne(db, sql: "PRAGMA page_size")))
      }
      try queue.close()
      var bytes = try TestServer.bytes(of: folder + "/zdc.sqlite")
      bytes.replaceSubrange((root - 1) * size..<root * size, with: [UInt8](repeating: 0, count: size))
      try TestServer.write(bytes, to: folder + "/zdc.sqlite")
    }
  }

  struct Damage: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let kind: CheckFinding.Kind
    let apply: @Sendable (Fixture) throws -> Void

    init(_ kind: CheckFinding.Kind, _ name: String, _ apply: @escaping @Sendable (Fixture) throws -> Void) {
      (testDescription, self.kind, self.apply) = (name, kind, apply)
    }

    init(_ kind: CheckFinding.Kind, sql: String) {
      self.init(kind, sql) { try $0.sql(sql) }
    }
  }

  static let damages: [Damage] = [
    Damage(.blobFile, "a byte of content") { try $0.flip($0.path($0.large.blob), at: 100_000) },
    Damage(.blobFile, "a byte of the leaf hashes") { try $0.flip($0.path($0.large.blob, "leaves"), at: 40) },
    Damage(.blobFile, "content that ends early") {
      try TestServer.write(Array($0.large.bytes.dropLast()), to: $0.path($0.large.blob))
    },
    Damage(.blobFileMissing, "no content") { TestServer.remove($0.path($0.large.blob)) },
    Damage(.blobFileMissing, "no leaf hashes") { TestServer.remove($0.path($0.large.blob, "leaves")) },
    Damage(.blobFileMissing, "no file of a running upload") { TestServer.remove($0.path($0.running.blob)) },
    Damage(.upload, "a byte of an acknowledged part") { try $0.flip($0.path($0.running.blob), at: 7) },
    Damage(.upload, "half of an acknowledged part") {
      try TestServer.write(Array($0.running.bytes.prefix(100_000)), to: $0.path($0.running.blob))
    },
    Damage(.database, "an index that is empty") { try $0.emptyPage(of: "files") },
    Damage(.identityChain, sql: "UPDATE links SET bytes = bytes || x'00'"),
    Damage(.account, sql: "UPDATE users SET link_seq = 1 WHERE id = 1"),
    Damage(.account, sql: "UPDATE users SET keyring = x'01' WHERE id = 1"),
    Damage(.account, sql: "UPDATE sign_keys SET key = zeroblob(32) WHERE user = 1"),
    Damage(.tree, sql: "UPDATE trees SET app = 'org.example.other' WHERE id = 1"),
    Damage(.zoneLog, sql: "DELETE FROM commits WHERE seq = 1"),
    Damage(.zoneLog, sql: "UPDATE commits SET bytes = bytes || x'00' WHERE seq = 2"),
    Damage(.zoneLog, sql: "DELETE FROM links WHERE user = 1"),
    Damage(.zoneHead, sql: "DELETE FROM commits WHERE seq = 3"),
    Damage(.zoneHead, sql: "UPDATE commits SET hash = zeroblob(32) WHERE seq = 2"),
    Damage(.zoneHead, sql: "UPDATE zones SET feed_position = 1"),
    Damage(.accessList, sql: "UPDATE members SET permissions = 1"),
    Damage(.accessList, sql: "DELETE FROM acls WHERE id = (SELECT acl FROM zones WHERE seq > 0)"),
    Damage(.grant, sql: "DELETE FROM grants"),
    Damage(.grant, sql: "UPDATE grants SET bytes = bytes || x'00'"),
    Damage(.node, sql: "DELETE FROM node_ids WHERE key IN (SELECT id FROM nodes WHERE blob IS NOT NULL)"),
    Damage(.node, sql: "UPDATE nodes SET put = 0 WHERE blob IS NOT NULL"),
    Damage(.node, sql: "UPDATE nodes SET commit_key = 99 WHERE blob IS NOT NULL"),
    Damage(.node, sql: "UPDATE node_names SET tag = zeroblob(16) WHERE key = (SELECT max(key) FROM node_names)"),
    Damage(.node, sql: "DELETE FROM node_names WHERE key = (SELECT max(key) FROM node_names)"),
    Damage(.node, sql: "INSERT INTO node_ids SELECT tree, zeroblob(16), key FROM node_ids LIMIT 1"),
    Damage(.node, sql: "INSERT INTO node_names SELECT parent, zeroblob(16), key FROM node_names LIMIT 1"),
    Damage(.record, sql: "UPDATE nodes SET record = record || x'00'"),
    Damage(.record, sql: "UPDATE nodes SET record = x'' WHERE blob = 0"),
    Damage(.record, sql: "UPDATE nodes SET record = x'00' || zeroblob(500) WHERE blob = 0"),
    Damage(.record, sql: "UPDATE records SET bytes = bytes || x'00'"),
    Damage(.record, sql: "UPDATE records SET node = zeroblob(16)"),
    Damage(.recordMissing, sql: "DELETE FROM nodes WHERE blob IS NOT NULL"),
    Damage(.content, sql: "UPDATE contents SET bytes = zeroblob(length(bytes))"),
    Damage(.content, sql: "UPDATE contents SET bytes = x'00'"),
    Damage(.contentMissing, sql: "DELETE FROM contents"),
    Damage(.content, sql: "INSERT INTO contents VALUES (1000, x'00')"),
    Damage(.content, sql: "UPDATE blobs SET content = x'00' WHERE content IS NOT NULL"),
    Damage(.content, sql: "UPDATE blobs SET root = zeroblob(32) WHERE content IS NULL"),
    Damage(.content, sql: "UPDATE blobs SET state = 1"),
    Damage(.content, sql: "UPDATE blobs SET replaced_ms = 1"),
    Damage(.content, sql: "UPDATE blobs SET replaced_ms = NULL"),
    Damage(.content, sql: "UPDATE blobs SET node = zeroblob(16)"),
    Damage(.contentMissing, sql: "DELETE FROM blobs WHERE state = 2"),
    Damage(.usage, sql: "UPDATE zones SET content_bytes = content_bytes + 1 WHERE seq > 0"),
  ]

  @Test(arguments: damages) func damageIsFound(_ damage: Damage) async throws {
    try await Fixture.with { fixture in
      try damage.apply(fixture)
      let report = try DataFolder.check(path: fixture.folder)
      #expect(!report.isClean)
      #expect(report.findings.contains { $0.kind == damage.kind }, "\(report.findings)")
    }
  }

  @Test func anIntactFolder_hasNoFindings_andIsNotChanged() async throws {
    try await Fixture.with { fixture in
      let before = try TestServer.files(in: fixture.folder)
      var phases: Set<CheckProgress.Phase> = []
      let report = try DataFolder.check(path: fixture.folder, progress: { phases.insert($0.phase) })
      #expect(report.findings == [])
      #expect(report.isClean)
      #expect((report.users, report.zones, report.commits, report.nodes) == (2, 8, 11, 11))
      #expect((report.records, report.blobs) == (13, 5))
      #expect(phases.contains(.content))
      let after = try TestServer.files(in: fixture.folder)
      #expect(Set(before.keys).symmetricDifference(after.keys) == [])
      // The index of the write-ahead log is every reader's to rebuild; it holds no data.
      #expect(before.keys.filter { before[$0] != after[$0] && !$0.hasSuffix("-shm") } == [])
    }
  }

  /// The state after a killed server: the write-ahead log holds changes that the database lacks.
  @Test func aCopyOfARunningServer_isCheckedByItsLog() async throws {
    let copy = TestServer.newFolder()
    defer { TestServer.remove(copy) }
    try await TestServer.run { (server: TestServer) async throws in
      _ = try await Fixture.fill(server)
      try FileManager.default.copyItem(atPath: server.folder, toPath: copy)
    }
    #expect(FileManager.default.fileExists(atPath: copy + "/zdc.sqlite-wal"))
    let report = try DataFolder.check(path: copy)
    #expect(report.findings == [])
    #expect(report.commits == 11)
  }

  @Test func anOrphanedFileIsWaste_andTheNextCollectionRemovesIt() async throws {
    try await Fixture.with { fixture in
      let orphan = BlobID.random()
      try TestServer.write([1, 2, 3], to: fixture.path(orphan))
      let report = try DataFolder.check(path: fixture.folder)
      #expect(report.isClean)
      let line = "waste orphanFile blob=\(orphan.text): a file that no content uses"
      #expect(report.findings.map(\.description) == [line])
      try await TestServer.run(in: fixture.folder) { try await $0.server.collect() }
      #expect(try DataFolder.check(path: fixture.folder).waste == 0)
    }
  }

  @Test func aRunningServerKeepsTheCheckOut() async throws {
    try await TestServer.run { (server: TestServer) async throws in
      #expect(Self.reason { try DataFolder.check(path: server.folder) } == "inUse")
    }
  }

  @Test func aFolderThatIsNone_isNotMade() async throws {
    let folder = TestServer.newFolder()
    #expect(Self.reason { try DataFolder.check(path: folder) } == "missing")
    #expect(!FileManager.default.fileExists(atPath: folder))
  }

  @Test func aFindingNamesTheLeaf() async throws {
    try await Fixture.with { fixture in
      try fixture.flip(fixture.path(fixture.large.blob), at: 100_000)
      let lines = try DataFolder.check(path: fixture.folder).findings.map(\.description)
      #expect(
        lines == [
          "damage blobFile blob=\(fixture.large.blob.text) leaf=1: the bytes do not match the stored leaf hash",
          "damage blobFile blob=\(fixture.large.blob.text): the file does not match its root hash",
        ])
    }
  }

  static func reason(_ body: () throws -> some Any) -> String {
    do {
      _ = try body()
      return "none"
    } catch { return (error as? StoreOpenError).map { "\($0.reason)" } ?? "\(error)" }
  }
}
