import Foundation
import GRDB
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// The log goes back into the database behind the writer's back.
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

  /// - much was written, less than what makes the writer itself copy its log
  /// => it is in the database while writes continue
  @Test func whatWasWritten_isCopiedWhileWritesGoOn() async throws {
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

  /// => closing ends a copy that is under way, and everything is there afterwards
  @Test func closingMeanwhile_losesNothing() async throws {
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
