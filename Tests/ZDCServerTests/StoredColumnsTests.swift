import Foundation
import GRDB
import Testing
import ZDCServerSQLite

@testable import ZDCServerPostgres

/// SECURITY.md lists what the server stores: every table and every column.
@Suite struct StoredColumnsTests {
  @Test("E-12: every stored column is in SECURITY.md, and no other") func everyColumnIsDeclared() async throws {
    let path = TestServer.newFolder() + ".sqlite"
    defer { for suffix in ["", "-wal", "-shm"] { TestServer.remove(path + suffix) } }
    try await SQLiteStore(path: path).close()
    let stored = try await columns(path)
    let declared = try declared(in: "What the server stores")
    #expect(stored.count > 20)
    #expect(Set(declared.keys) == Set(stored.keys))
    for (table, columns) in stored { #expect(declared[table] == columns, "\(table)") }
  }

  @Test func everyColumnInPostgreSQLIsDeclared() async throws {
    let server = try TestPostgres.shared()
    let url = try server.newDatabase()
    try await PostgresStore(url: url, connections: 1).close()
    let rows = try PostgresConnection(url).all(
      "SELECT table_name::text, column_name::text FROM information_schema.columns WHERE table_schema = 'public'"
    ) { ($0.text(0), $0.text(1)) }
    try server.remove(url)
    let stored = rows.reduce(into: [String: Set<String>]()) { $0[$1.0, default: []].insert($1.1) }
    let declared = try declared(in: "What the server stores in PostgreSQL")
    #expect(stored.count > 20)
    #expect(Set(declared.keys) == Set(stored.keys))
    for (table, columns) in stored { #expect(declared[table] == columns, "\(table)") }
  }

  private func columns(_ path: String) async throws -> [String: Set<String>] {
    let queue = try DatabaseQueue(path: path)
    let columns = try await queue.read { db in
      let rows = try Row.fetchAll(
        db,
        sql:
          "SELECT s.name AS tbl, i.name AS col FROM sqlite_schema s, pragma_table_info(s.name) i WHERE s.type = 'table'"
      )
      return rows.reduce(into: [String: Set<String>]()) { $0[$1["tbl"], default: []].insert($1["col"]) }
    }
    try queue.close()
    return columns
  }

  /// The rows of the table in a section.
  private func declared(in title: String) throws -> [String: Set<String>] {
    let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .deletingLastPathComponent()
    let text = try String(contentsOf: root.appending(path: "SECURITY.md"), encoding: .utf8)
    let section = try #require(text.components(separatedBy: "### \(title)\n").dropFirst().first)
    return section.split(separator: "\n").prefix { !$0.hasPrefix("#") }.reduce(into: [:]) { tables, line in
      let cells = line.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
      guard cells.count == 3, cells[0].hasPrefix("`") else { return }
      let names = cells[1].components(separatedBy: ", ").map { $0.trimmingCharacters(in: ["`"]) }
      tables[cells[0].trimmingCharacters(in: ["`"])] = Set(names)
    }
  }
}
