import Foundation
import GRDB
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// The write-ahead log is copied into the database in the background, not by the writer.
@Suite(.timeLimit(.minutes(20))) struct CheckpointerTests {
  private let fixture: DatabaseFixture
  private let manager: ZDCDatabaseManager
  private static let bytes = 56_000_000

  init() throws {
    fixture = try DatabaseFixture()
    manager = try fixture.open { migrator in
      migrator.registerMigration("large") { db in try db.execute(sql: "CREATE TABLE large (bytes BLOB)") }
    }
  }

  private func writeMuch() async throws {
    try await manager.rwDatabaseConnection.write { transaction in
      try transaction.database.execute(sql: "INSERT INTO large VALUES (zeroblob(?))", arguments: [Self.bytes])
    }
  }

  /// - much data is written, but not enough for the writer itself to copy the log
  /// => the data is copied into the database while writes continue
  @Test func writtenPages_areCopiedDuringFurtherWrites() async throws {
    try await writeMuch()
    func length() throws -> Int {
      try FileManager.default.attributesOfItem(atPath: fixture.path.path)[.size] as? Int ?? 0
    }
    #expect(try length() < Self.bytes)
    var number = 0
    while try length() < Self.bytes {
      number += 1
      try await manager.put(Note(title: "\(number)"), "note")
    }
    #expect(try await manager.note("note") == Note(title: "\(number)"))
    try manager.close()
  }

  /// => closing stops a copy in progress, and no data is lost
  @Test func closingDuringACopy_losesNothing() async throws {
    try await writeMuch()
    try await manager.put(Note(title: "last"), "note")
    try manager.close()
    let again = try fixture.open { migrator in
      migrator.registerMigration("large") { db in try db.execute(sql: "CREATE TABLE large (bytes BLOB)") }
    }
    #expect(try await again.note("note") == Note(title: "last"))
    let length = try await again.roDatabaseConnection.read { transaction in
      try Int.fetchOne(transaction.database, sql: "SELECT length(bytes) FROM large")
    }
    #expect(length == Self.bytes)
    try again.close()
  }
}
