import Foundation
import GRDB
import Synchronization
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

@Suite struct DatabaseObjectTests {
  let fixture: DatabaseFixture
  let manager: ZDCDatabaseManager
  var rw: ZDCDatabaseConnection { manager.rwDatabaseConnection }
  var ui: ZDCDatabaseConnection { manager.uiDatabaseConnection }

  init() throws {
    fixture = try DatabaseFixture()
    manager = try fixture.open()
  }

  @Test func registeredType_isReadAsInTheSeeds() async throws {
    try await rw.write { $0.setObject(Note(title: "milk"), forKey: "1", inCollection: "notes") }
    let note = try await ui.read { $0.object(forKey: "1", inCollection: "notes") as? Note }
    #expect(note == Note(title: "milk"))
  }

  @Test("X3: an error names the collection that is not registered or is for another type")
  func errorsNameTheCollection() async throws {
    let unregistered = await #expect(throws: ZDCError.self) {
      try await ui.read { _ = $0.object(forKey: "1", inCollection: "drafts") }
    }
    #expect(unregistered?.description.contains("drafts") == true)
    let mismatch = await #expect(throws: ZDCError.self) {
      try await rw.write { $0.setObject("text", forKey: "1", inCollection: "notes") }
    }
    #expect(mismatch?.description.contains("notes is registered for Note") == true)
  }

  @Test func missingObject_isNil_typedAndUntyped() async throws {
    let (untyped, typed) = try await ui.read { transaction in
      (
        transaction.object(forKey: "none", inCollection: "notes") as? Note,
        try transaction.object(Note.self, forKey: "none", inCollection: "notes")
      )
    }
    #expect(untyped == nil)
    #expect(typed == nil)
  }

  @Test func setObjectTwice_theSecondStays() async throws {
    try await rw.write { transaction in
      transaction.setObject(Note(title: "one"), forKey: "1", inCollection: "notes")
      transaction.setObject(Note(title: "two"), forKey: "1", inCollection: "notes")
    }
    let (count, note) = try await ui.read { transaction in
      (
        try transaction.numberOfKeys(inCollection: "notes"),
        try transaction.object(Note.self, forKey: "1", inCollection: "notes")
      )
    }
    #expect(count == 1)
    #expect(note?.title == "two")
  }

  @Test func keysAreSorted_andCollectionsDoNotMix() async throws {
    try await rw.write { transaction in
      for key in ["b", "a", "ä", ""] { transaction.setObject(Note(title: key), forKey: key, inCollection: "notes") }
      transaction.setObject(1, forKey: "x", inCollection: "note")
      transaction.setObject(1, forKey: "s", inCollection: "note")
    }
    #expect(try await ui.read { try $0.keys(inCollection: "notes") } == ["", "a", "b", "ä"])
    #expect(try await ui.read { try $0.keys(inCollection: "note") } == ["s", "x"])
    #expect(try await ui.read { try $0.keys(inCollection: "") } == [])
  }

  /// Collection "a" with key "bc" is not collection "ab" with key "c".
  @Test func borderBetweenCollectionAndKey_counts() async throws {
    try await rw.write { $0.setObject(1, forKey: "bc", inCollection: "a") }
    #expect(try await ui.read { $0.hasObject(forKey: "bc", inCollection: "a") })
    #expect(try await ui.read { $0.hasObject(forKey: "c", inCollection: "ab") } == false)
  }

  @Test func typedReadOfAnotherType_throws_andPoisonsNothing() async throws {
    try await rw.write { transaction in
      transaction.setObject("text", forKey: "1", inCollection: "mixed")
      let code = zdcCode { _ = try transaction.object(Int.self, forKey: "1", inCollection: "mixed") }
      #expect(code == .objectNotDecodable)
      transaction.setObject("more", forKey: "2", inCollection: "mixed")
    }
    #expect(try await ui.read { try $0.numberOfKeys(inCollection: "mixed") } == 2)
  }

  @Test func enumerate_seesEachOnce_stops_andAllowsRemoval() async throws {
    try await rw.write { transaction in
      for key in (0..<10).map(String.init) {
        transaction.setObject(Note(title: key), forKey: key, inCollection: "notes")
      }
      var seen: [String] = []
      try transaction.enumerateKeysAndObjects(Note.self, inCollection: "notes") { key, note, _ in
        #expect(note.title == key)
        seen.append(key)
        transaction.removeAllObjects(inCollection: "notes")
      }
      #expect(seen.count == 1)
    }
    #expect(try await ui.read { try $0.numberOfKeys(inCollection: "notes") } == 0)
    try await rw.write { transaction in
      for number in 0..<10 { transaction.setObject(number, forKey: "\(number)", inCollection: "numbers") }
      var seen = 0
      try transaction.enumerateKeysAndObjects(Int.self, inCollection: "numbers") { _, _, stop in
        seen += 1
        stop = seen == 3
      }
      #expect(seen == 3)
    }
  }

  @Test func removedObject_isReportedWithItsRow_insideTheTransaction() async throws {
    let removed = RemovedRows()
    let context = DatabaseContext(
      sealer: manager.context.sealer, clock: { 0 }, logger: fixture.config.logger,
      objectRemoved: [
        { transaction, rowKey in
          let isStillThere = transaction.hasObject(forKey: "1", inCollection: "notes")
          #expect(!isStillThere)
          removed.append(rowKey)
        }
      ])
    let connection = ZDCDatabaseConnection(
      pool: rw.pool, context: context, observations: rw.observations, isReadOnly: false)
    let expected = try await connection.write { transaction in
      transaction.setObject(Note(title: "a"), forKey: "1", inCollection: "notes")
      transaction.removeObject(forKey: "1", inCollection: "notes")
      transaction.removeObject(forKey: "2", inCollection: "notes")
      return transaction.objects.rowKey(forKey: "1", inCollection: "notes")
    }
    #expect(removed.rows == [expected])
  }

  @Test func observerThatThrows_poisonsTheRemoval() async throws {
    try await rw.write { $0.setObject(Note(title: "a"), forKey: "1", inCollection: "notes") }
    let context = DatabaseContext(
      sealer: manager.context.sealer, clock: { 0 }, logger: fixture.config.logger,
      objectRemoved: [{ _, _ in throw AppError() }])
    let connection = ZDCDatabaseConnection(
      pool: rw.pool, context: context, observations: rw.observations, isReadOnly: false)
    await #expect(throws: AppError.self) {
      try await connection.write { $0.removeObject(forKey: "1", inCollection: "notes") }
    }
    #expect(try await ui.read { try $0.numberOfKeys(inCollection: "notes") } == 1)
  }

  @Test func rowPutInAnotherRowsPlace_isNoticed() async throws {
    try await rw.write { transaction in
      transaction.setObject(Note(title: "a"), forKey: "1", inCollection: "notes")
      transaction.setObject(Note(title: "b"), forKey: "2", inCollection: "notes")
      let rowKey = Data(transaction.objects.rowKey(forKey: "1", inCollection: "notes"))
      try transaction.database.execute(
        sql: "UPDATE zdc_object SET value = (SELECT value FROM zdc_object WHERE rowKey <> ?1) WHERE rowKey = ?1",
        arguments: [rowKey])
    }
    let code = await zdcCodeOf { try await ui.read { _ = $0.object(forKey: "1", inCollection: "notes") } }
    #expect(code == .corruptDatabase)
  }

  @Test func observe_givesTheFirstValue_andEachChange() async throws {
    var values = ui.observe { try $0.keys(inCollection: "notes") }.makeAsyncIterator()
    #expect(try await values.next() == [])
    try await rw.write { $0.setObject(Note(title: "a"), forKey: "1", inCollection: "notes") }
    #expect(try await values.next() == ["1"])
    // A change to another collection produces no value.
    try await rw.write { $0.setObject(1, forKey: "9", inCollection: "numbers") }
    try await rw.write { $0.setObject(Note(title: "b"), forKey: "2", inCollection: "notes") }
    #expect(try await values.next() == ["1", "2"])
  }

  @Test func observationWhoseBlockThrows_endsWithTheError() async throws {
    var values = ui.observe { _ -> Int in throw AppError() }.makeAsyncIterator()
    await #expect(throws: AppError.self) { _ = try await values.next() }
  }
}

final class RemovedRows: Sendable {
  private let collected = Mutex<[[UInt8]]>([])
  var rows: [[UInt8]] { collected.withLock { $0 } }
  func append(_ row: [UInt8]) { collected.withLock { $0.append(row) } }
}
