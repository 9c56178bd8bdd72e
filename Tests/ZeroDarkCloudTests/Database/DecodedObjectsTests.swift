import Foundation
import Synchronization
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Objects of a collection that was registered with a limit are decoded once for each version of their rows.
@Suite struct DecodedObjectsTests {
  /// Counts how often each of its values is decoded.
  struct Counted: Codable, Sendable, Equatable {
    static let decodings = Mutex<[String: Int]>([:])

    var text: String

    init(_ text: String) { self.text = text }

    init(from decoder: any Decoder) throws {
      let text = try decoder.singleValueContainer().decode(String.self)
      Self.decodings.withLock { $0[text, default: 0] += 1 }
      self.text = text
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.singleValueContainer()
      try container.encode(text)
    }
  }

  let fixture: DatabaseFixture
  let manager: ZDCDatabaseManager
  var rw: ZDCDatabaseConnection { manager.rwDatabaseConnection }
  var ui: ZDCDatabaseConnection { manager.uiDatabaseConnection }
  /// Texts of one test, which count no decodings of another one.
  let name = UUID().uuidString

  init() throws {
    fixture = try DatabaseFixture()
    var database = ZDCDatabaseConfig(encryptionKey: DatabaseFixture.key)
    database.register(Counted.self, inCollection: "many", cacheLimit: 100)
    database.register(Counted.self, inCollection: "few", cacheLimit: 4)
    manager = try ZDCDatabaseManager(config: fixture.config, databaseConfig: database)
  }

  private func text(_ number: Int) -> String { "\(name) \(number)" }

  private func put(_ numbers: Range<Int>, in collection: String = "many") async throws {
    try await rw.write { transaction in
      for number in numbers {
        transaction.setObject(Counted(text(number)), forKey: "\(number)", inCollection: collection)
      }
    }
  }

  private func readAll(_ numbers: Range<Int>, in collection: String = "many") async throws -> [String] {
    try await ui.read { transaction in
      numbers.compactMap { (transaction.object(forKey: "\($0)", inCollection: collection) as? Counted)?.text }
    }
  }

  private func decodings(_ numbers: Range<Int>) -> Int {
    Counted.decodings.withLock { counts in numbers.reduce(0) { $0 + counts[text($1), default: 0] } }
  }

  @Test func object_isDecodedOnce_forAllCallsThatReadIt() async throws {
    try await put(0..<20)
    for _ in 0..<3 { #expect(try await readAll(0..<20) == (0..<20).map(text)) }
    try await ui.read { transaction in
      var seen: Set<String> = []
      try transaction.enumerateKeysAndObjects(Counted.self, inCollection: "many") { key, object, _ in
        let number = try #require(Int(key))
        #expect(object.text == text(number))
        seen.insert(key)
      }
      #expect(seen.count == 20)
      #expect(try transaction.object(Counted.self, forKey: "7", inCollection: "many") == Counted(text(7)))
    }
    #expect(decodings(0..<20) == 20)
  }

  @Test func changedObject_isReadAsItIs_byEachTransaction() async throws {
    try await put(0..<1)
    #expect(try await readAll(0..<1) == [text(0)])
    struct Undone: Error {}
    await #expect(throws: Undone.self) {
      try await rw.write { transaction in
        transaction.setObject(Counted(text(1)), forKey: "0", inCollection: "many")
        #expect(transaction.object(forKey: "0", inCollection: "many") as? Counted == Counted(text(1)))
        throw Undone()
      }
    }
    #expect(try await readAll(0..<1) == [text(0)])
    try await rw.write { $0.setObject(Counted(text(2)), forKey: "0", inCollection: "many") }
    #expect(try await readAll(0..<1) == [text(2)])
    try await rw.write { $0.removeObject(forKey: "0", inCollection: "many") }
    #expect(try await readAll(0..<1) == [])
  }

  @Test func typeOfTheCall_counts_whereItIsAnotherOne() async throws {
    try await put(0..<1)
    _ = try await readAll(0..<1)
    #expect(try await ui.read { try $0.object(String.self, forKey: "0", inCollection: "many") } == text(0))
    let code = await zdcCodeOf { _ = try await ui.read { try $0.object(Int.self, forKey: "0", inCollection: "many") } }
    #expect(code == .objectNotDecodable)
  }

  @Test func moreObjectsThanTheLimit_areReadAndDropped() async throws {
    try await put(0..<20, in: "few")
    for _ in 0..<2 { #expect(try await readAll(0..<20, in: "few") == (0..<20).map(text)) }
    #expect(decodings(0..<20) == 40)
    for _ in 0..<5 { _ = try await readAll(0..<2, in: "few") }
    #expect(decodings(0..<20) == 42)
  }

  @Test func rowPutInAnotherRowsPlace_isNoticed() async throws {
    try await put(0..<2)
    _ = try await readAll(0..<2)
    try await rw.write { transaction in
      let rowKey = Data(transaction.objects.rowKey(forKey: "0", inCollection: "many"))
      try transaction.database.execute(
        sql: "UPDATE zdc_object SET value = (SELECT value FROM zdc_object WHERE rowKey <> ?1) WHERE rowKey = ?1",
        arguments: [rowKey])
    }
    let code = await zdcCodeOf { _ = try await readAll(0..<1) }
    #expect(code == .corruptDatabase)
  }
}
