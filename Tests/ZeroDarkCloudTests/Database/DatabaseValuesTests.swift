import Foundation
import Synchronization
import Testing
import ZDCTreesystem

@testable import ZDCClientStore
@testable import ZeroDarkCloud

/// Sequences of database values: their elements, their end, and that they leave nothing behind.
@Suite(.timeLimit(.minutes(20))) struct DatabaseValuesTests {
  let fixture: DatabaseFixture
  let manager: ZDCDatabaseManager
  var rw: ZDCDatabaseConnection { manager.rwDatabaseConnection }
  var ui: ZDCDatabaseConnection { manager.uiDatabaseConnection }

  init() throws {
    fixture = try DatabaseFixture()
    manager = try fixture.open()
  }

  private struct AppError: Error {}

  private func titles() -> ZDCDatabaseValues<[String]> {
    ui.values(of: { transaction in
      var titles: [String] = []
      try transaction.enumerateKeysAndObjects(Note.self, inCollection: "notes") { _, note, _ in
        titles.append(note.title)
      }
      return titles.sorted()
    })
  }

  @Test func firstTheValueAsItIs_thenEachOneThatDiffers() async throws {
    try await manager.put(Note(title: "a"), "1")
    var values = titles().makeAsyncIterator()
    #expect(try await values.next() == ["a"])
    try await manager.put(Note(title: "a", stars: 5), "1")
    try await manager.put(Note(title: "b"), "2")
    #expect(try await values.next() == ["a", "b"])
  }

  @Test func objectValues_areReadAgainAfterChangesOfObjectsOnly() async throws {
    try await rw.write { try $0.database.execute(sql: "CREATE TABLE app_table (x INTEGER)") }
    let runs = Mutex(0)
    let values = ui.objectValues(of: { transaction in
      runs.withLock { $0 += 1 }
      return try transaction.keys(inCollection: "notes")
    })
    var iterator = values.makeAsyncIterator()
    #expect(try await iterator.next() == [])
    try await manager.put(Note(title: "a"), "1")
    #expect(try await iterator.next() == ["1"])
    let before = runs.withLock { $0 }
    for _ in 0..<5 { try await rw.write { try $0.database.execute(sql: "INSERT INTO app_table VALUES (1)") } }
    try await rw.write { $0.removeObject(forKey: "1", inCollection: "notes") }
    #expect(try await iterator.next() == [])
    #expect(runs.withLock { $0 } - before <= 2)
  }

  @Test func rolledBackValues_areNeverSeen() async throws {
    var values = titles().makeAsyncIterator()
    #expect(try await values.next() == [])
    await #expect(throws: AppError.self) {
      try await rw.write { transaction in
        transaction.setObject(Note(title: "never"), forKey: "1", inCollection: "notes")
        throw AppError()
      }
    }
    try await manager.put(Note(title: "a"), "1")
    #expect(try await values.next() == ["a"])
  }

  @Test func aSlowReader_getsTheLastValue_andNoneTwice() async throws {
    var values = ui.values(of: { try $0.numberOfKeys(inCollection: "notes") }).makeAsyncIterator()
    var seen = [try #require(try await values.next())]
    for number in 1...200 { try await manager.put(Note(title: "n"), "\(number)") }
    while seen.last != 200 { seen.append(try #require(try await values.next())) }
    #expect(seen == seen.sorted())
    #expect(Set(seen).count == seen.count)
  }

  @Test func writersNeverWaitForABody() async throws {
    let writable = Mutex(0)
    let counts = ui.values(of: { transaction in
      if !transaction.database.configuration.readonly { writable.withLock { $0 += 1 } }
      return try transaction.numberOfKeys(inCollection: "notes")
    })
    var values = counts.makeAsyncIterator()
    #expect(try await values.next() == 0)
    try await manager.put(Note(title: "a"), "1")
    #expect(try await values.next() == 1)
    let before = writable.withLock { $0 }  // the beginning of an observation needs one run in the writer's queue
    try await manager.put(Note(title: "b"), "2")
    #expect(try await values.next() == 2)
    #expect(writable.withLock { $0 } == before)
  }

  @Test func eachLoop_isAnIndependentObservation_andLeavingItEndsIt() async throws {
    let values = titles()
    #expect(manager.observations.count == 0, "nothing runs before the first value is asked for")
    for try await titles in values where titles.isEmpty {
      #expect(manager.observations.count == 1)
      break
    }
    #expect(manager.observations.count == 0)
    for try await _ in values { break }
    #expect(manager.observations.count == 0)
  }

  @Test func cancellingTheTask_endsTheObservation() async throws {
    let (started, start) = AsyncStream.makeStream(of: Void.self)
    let following = Task { [values = titles()] in
      for try await _ in values { start.yield() }
    }
    for await _ in started { break }
    #expect(manager.observations.count == 1)
    following.cancel()
    try await following.value
    #expect(manager.observations.count == 0)
  }

  @Test func closing_endsAllOfThem_andNoNewOneBegins() async throws {
    var first = titles().makeAsyncIterator()
    var second = ui.observe { try $0.keys(inCollection: "notes") }.makeAsyncIterator()
    #expect(try await first.next() == [])
    #expect(try await second.next() == [])
    try manager.close()
    #expect(try await first.next() == nil)
    #expect(try await second.next() == nil)
    var late = titles().makeAsyncIterator()
    #expect(try await late.next() == nil)
    #expect(manager.observations.count == 0)
  }

  @Test func blockThatThrows_endsIt() async throws {
    var values = ui.values { _ -> Int in throw AppError() }.makeAsyncIterator()
    await #expect(throws: AppError.self) { _ = try await values.next() }
    #expect(manager.observations.count == 0)
  }

  @Test func commitOfAnotherProcess_isSeen() async throws {
    let theirs = try fixture.open()
    var values = titles().makeAsyncIterator()
    #expect(try await values.next() == [])
    try await theirs.put(Note(title: "theirs"), "1")
    #expect(try await values.next() == ["theirs"])
  }
}

@Suite(.timeLimit(.minutes(20))) struct NodeValuesTests {
  let device: CloudFixture

  init() async throws { device = try await CloudFixture() }

  private func values<T: Sendable & Equatable>(
    _ body: @escaping @Sendable (ZDCCloudReadTransaction) throws -> T
  ) throws -> ZDCDatabaseValues<T?> {
    let (zdc, user) = (device.zdc, device.userID)
    return try device.zdc.rw.values(of: { transaction in
      try zdc.cloudTransaction(transaction, forLocalUserID: user).map(body)
    })
  }

  @Test func oneNode_isObserved_untilItIsDeleted() async throws {
    try await device.create("/a")
    let uuid = try await device.read { try $0.at("/a").uuid }
    var names = try values { $0.node(id: uuid)?.name ?? "-" }.makeAsyncIterator()
    #expect(try await names.next() == "a")
    try await device.write { cloud in
      var node = try cloud.at("/a")
      node.name = "b"
      try cloud.modifyNode(node)
    }
    #expect(try await names.next() == "b")
    try await device.write { cloud in _ = try cloud.delete(try cloud.at("/b")) }
    #expect(try await names.next() == "-")
  }

  @Test func childrenOfAParent_areFollowed() async throws {
    try await device.create("/list")
    var names = try values { cloud in
      var names: [String] = []
      let manager = ZDCNodeManager.sharedInstance
      let list = try cloud.at("/list").uuid
      manager.enumerateNodes(withParentID: list, transaction: cloud.transaction) { node, _ in
        names.append(node.name ?? "")
      }
      return names.sorted()
    }.makeAsyncIterator()
    #expect(try await names.next() == [])
    try await device.create("/list/1")
    #expect(try await names.next() == ["1"])
    try await device.create("/elsewhere", "/list/2")
    #expect(try await names.next() == ["1", "2"])
  }

  @Test func linksTagsMarksAndQueue_areFollowed() async throws {
    try await device.create("/a")
    try await device.pretendAllPushed()
    let uuid = try await device.read { try $0.at("/a").uuid }
    var facts = try values { cloud in
      [
        cloud.linkedCollectionAndKey(forNodeID: uuid)?.key ?? "-",
        cloud.tag(forNodeID: uuid, withIdentifier: "color") as? String ?? "-",
        "\(cloud.pendingOperations().count)",
      ]
    }.makeAsyncIterator()
    #expect(try await facts.next() == ["-", "-", "0"])
    try await device.write { try $0.linkNodeID(uuid, toKey: "key", inCollection: "notes") }
    #expect(try await facts.next() == ["key", "-", "0"])
    try await device.write { $0.setTag("red", forNodeID: uuid, withIdentifier: "color") }
    #expect(try await facts.next() == ["key", "red", "0"])
    try await device.write { _ = $0.queueDataUpload(forNodeID: uuid, withChangeset: nil) }
    #expect(try await facts.next() == ["key", "red", "1"])
  }
}
