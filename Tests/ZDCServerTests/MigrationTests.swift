import Foundation
import GRDB
import Testing
import ZDCProtocol
import ZDCServer
import ZDCServerSQLite

/// Data folders of earlier versions of the schema. `Fixture/FolderOfVersion7` was written by a server of that version: a
/// tree of 13 nodes, with moved, renamed, replaced and deleted ones, and a content blob in a file.
@Suite(.needsFolder) struct MigrationTests {
  /// Objects of each version that a later one removed, newest first: the statements lead from version 7 to the one named.
  private static let versions: [(version: Int, steps: [String])] = [
    (7, []),
    (6, ["CREATE INDEX commits_by_hash ON commits(substr(hash, 1, 8))"]),
    (
      1,
      [nodesOfTheFirstVersion, countsOfTheFirstVersion, "CREATE INDEX commits_by_hash ON commits(substr(hash, 1, 8))"]
    ),
  ]

  private static let nodesOfTheFirstVersion = """
    CREATE TABLE first(
      tree INTEGER NOT NULL, node BLOB NOT NULL, zone INTEGER NOT NULL, parent BLOB NOT NULL, tag BLOB,
      record INTEGER NOT NULL, blob INTEGER, put_seq INTEGER NOT NULL, key_gen INTEGER NOT NULL,
      parent_key_gen INTEGER NOT NULL, PRIMARY KEY(tree, node)) WITHOUT ROWID;
    INSERT INTO first SELECT tree, node, zone, parent, tag, record, blob, put_seq, key_gen, parent_key_gen FROM nodes;
    DROP TABLE nodes;
    ALTER TABLE first RENAME TO nodes;
    CREATE UNIQUE INDEX nodes_by_name ON nodes(tree, parent, tag);
    """

  private static let countsOfTheFirstVersion = """
    DROP TRIGGER upload_deleted; DROP TRIGGER content_deleted; DROP TRIGGER upload_attached; DROP TRIGGER content_moved;
    ALTER TABLE users DROP COLUMN upload_bytes;
    ALTER TABLE zones DROP COLUMN content_bytes; ALTER TABLE zones DROP COLUMN contents;
    ALTER TABLE zones DROP COLUMN live_nodes; ALTER TABLE zones DROP COLUMN records;
    ALTER TABLE zones DROP COLUMN record_bytes; ALTER TABLE zones DROP COLUMN log_bytes;
    DROP TABLE room; DROP INDEX replaced_blobs_of_zone
    """

  private static func withFolder(_ version: Int, _ body: (String) async throws -> Void) async throws {
    let source = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Fixture/FolderOfVersion7")
    let folder = TestServer.newFolder()
    defer { TestServer.remove(folder) }
    try FileManager.default.copyItem(atPath: source.path, toPath: folder)
    try FileManager.default.moveItem(atPath: folder + "/database", toPath: folder + "/zdc.sqlite")
    for steps in try #require(versions.first { $0.version == version }).steps { try TestServer.sql(steps, in: folder) }
    try TestServer.sql("PRAGMA user_version = \(version)", in: folder)
    try await body(folder)
  }

  /// The data that a server of version 7 or earlier stored.
  private struct Old {
    var records: [(name: RecordName, zone: ZoneID, stored: StoredRecord, isLive: Bool)] = []
    var contents: [(name: ContentName, tree: TreeID, bytes: [UInt8])] = []
    var usage: [String] = []

    init(_ folder: String) throws {
      let queue = try DatabaseQueue(path: folder + "/zdc.sqlite")
      try queue.read { db in
        let rows = try Row.fetchAll(
          db,
          sql: """
            SELECT r.bytes, r.received_ms, r.data_received_ms, r.replaced_ms IS NULL AS live, t.tree_id, z.root
            FROM records r JOIN zones z ON z.id = r.zone JOIN trees t ON t.id = z.tree
            """)
        for row in rows {
          let record = try NodeRecord([UInt8](row["bytes"] as Data))
          let zone = ZoneID(
            tree: try #require(TreeID([UInt8](row["tree_id"] as Data))),
            root: try #require(NodeID([UInt8](row["root"] as Data))))
          let stored = StoredRecord(
            bytes: record.bytes, recordReceivedMs: row["received_ms"], dataReceivedMs: row["data_received_ms"])
          let name = RecordName(node: record.fields.node, hash: record.hash)
          records.append((name, zone, stored, row["live"]))
        }
        let contentRows = try Row.fetchAll(
          db,
          sql: """
            SELECT b.node, b.blob_id, b.content, t.tree_id FROM blobs b JOIN zones z ON z.id = b.zone
            JOIN trees t ON t.id = z.tree WHERE b.content IS NOT NULL
            """)
        for row in contentRows {
          let name = ContentName(
            node: try #require(NodeID([UInt8](row["node"] as Data))),
            blob: try #require(BlobID([UInt8](row["blob_id"] as Data))))
          contents.append(
            (name, try #require(TreeID([UInt8](row["tree_id"] as Data))), [UInt8](row["content"] as Data)))
        }
      }
      try queue.close()
    }
  }

  @Test(arguments: versions.map(\.version)) func everyRecordAndContentIsStillThere(_ version: Int) async throws {
    try await Self.withFolder(version) { folder in
      let old = try Old(folder)
      try #require(old.records.count == 18 && old.records.filter(\.isLive).count == 14 && old.contents.count == 10)
      let before = try TestServer.bytes(of: folder + "/zdc.sqlite")
      #expect(try DataFolder.check(path: folder).findings == [])
      #expect(try TestServer.bytes(of: folder + "/zdc.sqlite") == before)
      try await TestServer.run(in: folder) { (server: TestServer) async throws in
        try await server.store.read { reader in
          var served: Set<RecordHash> = []
          for (name, zone, stored, isLive) in old.records {
            let key = try #require(try reader.zone(zone)).key
            let record = try #require(try reader.record(name, in: key))
            #expect(record.bytes == stored.bytes)
            #expect(record.recordReceivedMs == stored.recordReceivedMs)
            #expect(record.dataReceivedMs == stored.dataReceivedMs)
            let row = try reader.nodes([name.node], in: key).first { $0.leaf.node == name.node }
            #expect((row?.leaf.record == name.hash) == isLive)
            if isLive { served.insert(name.hash) }
          }
          var paged: Set<RecordHash> = []
          for zone in Set(old.records.map(\.zone)) {
            try reader.commits(of: try #require(try reader.zone(zone)).key, after: nil, withRecords: true) { row in
              #expect(row.damaged.isEmpty)
              for record in row.records {
                #expect(paged.insert(RecordHash(labelledHash: "record", record.bytes)).inserted)
              }
              return true
            }
          }
          #expect(paged == served)
          for (name, tree, bytes) in old.contents {
            let row = try #require(try reader.contents([name], in: tree)[name])
            #expect(try reader.inlineBytes(of: row) == bytes)
          }
        }
        try await server.server.collect()
      }
      #expect(try DataFolder.check(path: folder).findings == [])
    }
  }

  /// A record that was damaged before is neither lost nor an obstacle: it is stored as it is, and not served.
  @Test func aDamagedRecord_isKeptAsItIs() async throws {
    try await Self.withFolder(7) { folder in
      let live = "(SELECT max(record) FROM nodes)"
      try TestServer.sql("UPDATE records SET bytes = bytes || x'00' WHERE id = \(live)", in: folder)
      #expect(try DataFolder.check(path: folder).findings.map(\.kind).contains(.record))
      try await TestServer.run(in: folder) { _ in }
      #expect(try DataFolder.check(path: folder).findings.map(\.kind).contains(.record))
      let queue = try DatabaseQueue(path: folder + "/zdc.sqlite")
      let whole = try await queue.read { db in
        try Data.fetchAll(db, sql: "SELECT record FROM nodes WHERE substr(record, 1, 1) = x'00'")
      }
      try queue.close()
      #expect(whole.count == 1 && whole[0].suffix(1) == Data([0]))
    }
  }

  /// - The commit of a live node is missing
  /// => the folder is refused, and is as it was
  @Test func aFolderWhoseLogIsDamaged_isLeftAlone() async throws {
    try await Self.withFolder(7) { folder in
      try TestServer.sql("DELETE FROM commits WHERE seq = 1", in: folder)
      #expect(CheckTests.reason { try DataFolder(path: folder) } == "damaged")
      #expect(CheckTests.reason { try DataFolder.check(path: folder) } == "damaged")
      #expect(try Old(folder).records.count == 18)
    }
  }
}
