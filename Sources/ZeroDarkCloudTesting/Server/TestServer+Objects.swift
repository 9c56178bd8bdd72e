internal import Foundation
internal import GRDB
package import ZDCProtocol
internal import ZDCServerSQLite

extension TestServer {
  /// The objects of all zones, live and replaced ones.
  package struct Objects: Sendable {
    /// All commits in the order in which the server received them.
    package fileprivate(set) var commits: [ZoneCommit] = []
    package fileprivate(set) var lists: [ACLHash: ZoneACL] = [:]
    package fileprivate(set) var grants: [GrantHash: Grant] = [:]
    package fileprivate(set) var records: [RecordHash: NodeRecord] = [:]
    /// The content in the database: all up to 64 KiB.
    package fileprivate(set) var contents: [BlobID: [UInt8]] = [:]
  }

  /// Reads all objects from the server's database, as its operator can.
  package func objects() throws -> Objects {
    try read { db in
      var objects = Objects()
      for bytes in try bytes("SELECT bytes FROM acls", db) {
        let list = try ZoneACL(bytes)
        objects.lists[list.hash] = list
      }
      for bytes in try bytes("SELECT bytes FROM grants", db) {
        let grant = try Grant(bytes)
        objects.grants[grant.wrapHash] = grant
      }
      try readReplaced(db, &objects)
      try readLive(db, &objects)
      return objects
    }
  }

  private func readReplaced(_ db: Database, _ objects: inout Objects) throws {
    for bytes in try bytes("SELECT bytes FROM records", db) {
      let record = try NodeRecord(bytes)
      objects.records[record.hash] = record
    }
    for row in try Row.fetchAll(db, sql: "SELECT blob_id, content FROM blobs WHERE content IS NOT NULL") {
      if let blob = BlobID(row[0] as Data) { objects.contents[blob] = [UInt8](row[1] as Data) }
    }
  }

  private func readLive(_ db: Database, _ objects: inout Objects) throws {
    var commits: [Int64: ZoneCommit] = [:]
    for row in try Row.fetchAll(db, sql: "SELECT feed_position, bytes FROM commits ORDER BY feed_position") {
      let commit = try ZoneCommit([UInt8](row[1] as Data))
      commits[row[0]] = commit
      objects.commits.append(commit)
    }
    let sql = "SELECT n.commit_key, n.put, n.record, c.bytes FROM nodes n LEFT JOIN contents c ON c.node = n.id"
    for row in try Row.fetchAll(db, sql: sql) {
      guard let commit = commits[row[0]], let put = commit.puts.dropFirst(row[1]).first else { continue }
      let record = try NodeRecord(CompactRecord(stored: [UInt8](row[2] as Data)).record(commit.context(put)))
      objects.records[record.hash] = record
      if let blob = record.fields.content?.blobID, let bytes = row[3] as Data? {
        objects.contents[blob] = [UInt8](bytes)
      }
    }
  }

  private func bytes(_ sql: String, _ db: Database) throws -> [[UInt8]] {
    try Data.fetchAll(db, sql: sql).map { [UInt8]($0) }
  }
}

extension ZoneCommit {
  /// The nodes that the commit puts, in order.
  package var puts: [ZoneOperation.Put] {
    fields.operations.compactMap { operation in
      guard case .put(let put) = operation else { return nil }
      return put
    }
  }

  fileprivate func context(_ put: ZoneOperation.Put) -> RecordContext {
    RecordContext(
      tree: fields.zone.tree, put: put, writer: fields.writer, writerGen: fields.writerGen, timeMs: fields.timeMs)
  }
}
