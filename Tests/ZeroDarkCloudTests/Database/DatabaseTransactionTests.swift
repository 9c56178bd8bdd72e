import Foundation
import GRDB
import Synchronization
import Testing

@testable import ZDCClientStore
@testable import ZeroDarkCloud

struct AppError: Error, Equatable {}

@Suite struct DatabaseTransactionTests {
  let fixture: DatabaseFixture
  let manager: ZDCDatabaseManager
  var rw: ZDCDatabaseConnection { manager.rwDatabaseConnection }

  init() throws {
    fixture = try DatabaseFixture()
    manager = try fixture.open { migrator in
      migrator.registerMigration("tasks") { db in
        try db.execute(sql: "CREATE TABLE task (id TEXT PRIMARY KEY NOT NULL, title TEXT NOT NULL)")
      }
    }
  }

  private func noteCount() throws -> Int {
    try manager.roDatabaseConnection.read { try $0.numberOfKeys(inCollection: "notes") }
  }

  private func taskCount() throws -> Int {
    try manager.roDatabaseConnection.read { try Int.fetchOne($0.database, sql: "SELECT COUNT(*) FROM task") } ?? -1
  }

  // MARK: Atomicity

  @Test func objectAndAppRow_committedTogether() async throws {
    try await rw.write { transaction in
      transaction.setObject(Note(title: "milk"), forKey: "1", inCollection: "notes")
      try transaction.database.execute(sql: "INSERT INTO task VALUES ('1', 'milk')")
    }
    #expect(try noteCount() == 1)
    #expect(try taskCount() == 1)
  }

  @Test func blockThrows_objectAndAppRowAreRolledBack_andTheErrorIsTheCallers() async throws {
    await #expect(throws: AppError()) {
      try await rw.write { transaction in
        transaction.setObject(Note(title: "milk"), forKey: "1", inCollection: "notes")
        try transaction.database.execute(sql: "INSERT INTO task VALUES ('1', 'milk')")
        throw AppError()
      }
    }
    #expect(try noteCount() == 0)
    #expect(try taskCount() == 0)
  }

  @Test func taskCancelledInTheMiddle_rollsBack() async throws {
    let connection = rw
    let task = Task {
      try await connection.write { transaction in
        transaction.setObject(Note(title: "milk"), forKey: "1", inCollection: "notes")
        withUnsafeCurrentTask { $0?.cancel() }
        try transaction.database.execute(sql: "INSERT INTO task VALUES ('1', 'milk')")
      }
    }
    await #expect(throws: CancellationError.self) { try await task.value }
    #expect(try noteCount() == 0)
    #expect(try taskCount() == 0)
  }

  @Test func brokenConstraintOfTheAppsTable_staysGRDBsError() async throws {
    await #expect(throws: DatabaseError.self) {
      try await rw.write { try $0.database.execute(sql: "INSERT INTO task VALUES ('1', NULL)") }
    }
  }

  // MARK: Poisoned transactions

  @Test func setObjectOfAnotherType_blockRunsToItsEnd_everythingRollsBack() async throws {
    let reachedEnd = Mutex(false)
    let code = await zdcCodeOf {
      try await rw.write { transaction in
        transaction.setObject(Note(title: "first"), forKey: "1", inCollection: "notes")
        transaction.setObject(Unrelated(number: 1), forKey: "2", inCollection: "notes")
        try transaction.database.execute(sql: "INSERT INTO task VALUES ('1', 'milk')")
        reachedEnd.withLock { $0 = true }
      }
    }
    #expect(code == .collectionTypeMismatch)
    #expect(reachedEnd.withLock { $0 })
    #expect(try noteCount() == 0)
    #expect(try taskCount() == 0)
    #expect(fixture.log.text.contains("transaction poisoned"))
  }

  @Test func objectThatCannotBeEncoded_poisons() async throws {
    let code = await zdcCodeOf {
      try await rw.write { $0.setObject(Double.infinity, forKey: "1", inCollection: "numbers") }
    }
    #expect(code == .objectNotEncodable)
  }

  @Test func brokenTable_setObjectPoisons_andTheFirstErrorWins() async throws {
    await #expect(throws: DatabaseError.self) {
      try await rw.write { transaction in
        try transaction.database.execute(sql: "DROP TABLE zdc_object")
        transaction.setObject(Note(title: "lost"), forKey: "1", inCollection: "notes")
        transaction.poison(AppError())
        throw AppError()
      }
    }
    // The table is back: dropping it was part of the poisoned transaction.
    #expect(try noteCount() == 0)
  }

  @Test func unregisteredCollection_untypedReadPoisonsARead() async throws {
    let code = await zdcCodeOf {
      try await manager.uiDatabaseConnection.read { _ = $0.object(forKey: "1", inCollection: "unknown") }
    }
    #expect(code == .collectionNotRegistered)
  }

  @Test func poisonInALogHoldsNoKeyAndNoContent() async throws {
    await #expect(throws: (any Error).self) {
      try await rw.write { transaction in
        transaction.setObject(Note(title: "CANARY-TITLE"), forKey: "CANARY-KEY", inCollection: "notes")
        transaction.setObject(["CANARY-CONTENT": 1], forKey: "CANARY-KEY", inCollection: "notes")
        try transaction.database.execute(sql: "INSERT INTO task VALUES ('1', 'CANARY-ROW')")
      }
    }
    #expect(fixture.log.text.contains("poisoned"))
    #expect(!fixture.log.text.contains("CANARY"))
  }

  // MARK: Fire and forget

  @Test func seedsSpelling_returnsImmediately_blocksRunInOrder() async throws {
    let order = Collected()
    await withCheckedContinuation { continuation in
      queueThree(order) { continuation.resume() }
    }
    #expect(order.values == [1, 2, 3])
  }

  /// Synchronous, so that the seeds' spelling without `await` resolves to the overload that is not async.
  private func queueThree(_ order: Collected, whenDone: @escaping @Sendable () -> Void) {
    rw.asyncReadWrite { (transaction) in
      order.append(1)
      transaction.setObject(Note(title: "a"), forKey: "1", inCollection: "notes")
    }
    rw.asyncReadWrite { _ in order.append(2) }
    rw.asyncReadWrite({ _ in order.append(3) }, completion: { _ in whenDone() })
  }

  @Test func fireAndForgetThatFails_reachesLogAndStatusStream() async throws {
    var failures = manager.context.changes.failures().makeAsyncIterator()
    failAndForget()
    let error = await failures.next()
    #expect(error is AppError)
    #expect(fixture.log.text.contains("database access failed"))
  }

  private func failAndForget() {
    rw.asyncReadWrite { _ in throw AppError() }
  }

  @Test func completionGetsTheValue_orTheError() async throws {
    let value = await withCheckedContinuation { continuation in
      withCompletion { continuation.resume(returning: $0) }
    }
    #expect(try value.get() == 42)
    let failure = await withCheckedContinuation { continuation in
      poisonWithCompletion { continuation.resume(returning: $0) }
    }
    #expect(throws: ZDCError.self) { try failure.get() }
  }

  private func withCompletion(_ completion: @escaping @Sendable (Result<Int, any Error>) -> Void) {
    rw.asyncReadWrite({ _ in 42 }, completion: completion)
  }

  private func poisonWithCompletion(_ completion: @escaping @Sendable (Result<Void, any Error>) -> Void) {
    rw.asyncReadWrite({ $0.poison(ZDCError(.objectNotEncodable)) }, completion: completion)
  }

  // MARK: After the commit

  @Test func afterCommit_runsOnceAndInOrder_whenTheCommitIsVisible() async throws {
    let collected = Collected()
    let ro = manager.roDatabaseConnection
    try await rw.write { transaction in
      transaction.setObject(Note(title: "a"), forKey: "1", inCollection: "notes")
      transaction.afterCommit { collected.append(1) }
      transaction.afterCommit {
        let count = try? ro.read { try $0.numberOfKeys(inCollection: "notes") }
        collected.append(count == 1 ? 2 : -2)
      }
      collected.append(0)
    }
    try await rw.write { _ in }
    #expect(collected.values == [0, 1, 2])
  }

  @Test func afterCommit_neverRunsWhenTheBlockThrows_orIsPoisoned() async throws {
    let collected = Collected()
    await #expect(throws: AppError.self) {
      try await rw.write { transaction in
        transaction.afterCommit { collected.append(1) }
        throw AppError()
      }
    }
    await #expect(throws: AppError.self) {
      try await rw.write { transaction in
        transaction.afterCommit { collected.append(2) }
        transaction.poison(AppError())
      }
    }
    try await rw.write { _ in }
    #expect(collected.values == [])
  }

  /// GRDB drops all prepared statements that delete when an observer is added, so no transaction may add one.
  @Test func afterCommit_keepsPreparedStatements() throws {
    let query = "DELETE FROM zdc_meta WHERE key = ?"
    let statements = try (0..<2).map { _ in
      try rw.write { transaction in
        transaction.afterCommit {}
        transaction.signal(.objects)
        return try transaction.database.cachedStatement(sql: query)
      }
    }
    #expect(statements[0] === statements[1])
  }

  @Test func signals_oneHintAfterTheCommit_noneAfterARollback() async throws {
    var objects = manager.context.changes.hints(.objects).makeAsyncIterator()
    var queue = manager.context.changes.hints(.queue(localUser: 1)).makeAsyncIterator()
    await #expect(throws: AppError.self) {
      try await rw.write { transaction in
        transaction.signal(.queue(localUser: 1))
        transaction.poison(AppError())
      }
    }
    try await rw.write { transaction in
      for key in 0..<100 { transaction.setObject(key, forKey: "\(key)", inCollection: "numbers") }
      transaction.signal(.queue(localUser: 2))
    }
    #expect(await objects.next() != nil)
    manager.context.changes.queueChanged(localUser: 1)
    #expect(await queue.next() != nil)
  }

  // MARK: Misuse

  @Test func writingOnAReadingConnection_isRefused() async throws {
    #expect(await zdcCodeOf { try await manager.roDatabaseConnection.write { _ in } } == .readOnlyConnection)
    #expect(zdcCode { try syncWrite(manager.uiDatabaseConnection) } == .readOnlyConnection)
  }

  private func syncWrite(_ connection: ZDCDatabaseConnection) throws {
    try connection.write { _ in }
  }

  @Test func rawWriteInsideARead_isRefusedBySQLite() async throws {
    await #expect(throws: (any Error).self) {
      try await manager.roDatabaseConnection.read { try $0.database.execute(sql: "DELETE FROM task") }
    }
  }

  @Test func transactionKeptBeyondItsBlock_trapsWhenUsed() async throws {
    await #expect(processExitsWith: .failure) {
      let fixture = try DatabaseFixture()
      let manager = try fixture.open()
      nonisolated(unsafe) var kept: ZDCReadTransaction?
      func keep() { manager.roDatabaseConnection.read { kept = $0 } }
      keep()
      withExtendedLifetime(fixture) { _ = kept?.database }
    }
  }

  @Test func writeTransactionKeptBeyondItsBlock_setObjectTraps() async throws {
    await #expect(processExitsWith: .failure) {
      let fixture = try DatabaseFixture()
      let manager = try fixture.open()
      nonisolated(unsafe) var kept: ZDCReadWriteTransaction?
      func keep() throws { try manager.rwDatabaseConnection.write { kept = $0 } }
      try keep()
      withExtendedLifetime(fixture) { kept?.setObject(1, forKey: "1", inCollection: "numbers") }
    }
  }

  /// The counterpart of the exit tests: the same steps without the misuse exit normally.
  @Test func transactionUsedInsideItsBlock_doesNotTrap() async throws {
    await #expect(processExitsWith: .success) {
      let fixture = try DatabaseFixture()
      let manager = try fixture.open()
      func use() { manager.roDatabaseConnection.read { _ = $0.database } }
      use()
      withExtendedLifetime(fixture) {}
    }
  }

  @Test func writeInsideAWrite_traps() async throws {
    await #expect(processExitsWith: .failure) {
      let fixture = try DatabaseFixture()
      let manager = try fixture.open()
      func nest() throws {
        try manager.rwDatabaseConnection.write { _ in try manager.rwDatabaseConnection.write { _ in } }
      }
      try nest()
      withExtendedLifetime(fixture) {}
    }
  }

  // MARK: Context of the block

  @TaskLocal static var requestID = 0

  @Test func taskLocals_areVisibleInsideTheBlock() async throws {
    let seen = try await Self.$requestID.withValue(7) { try await rw.write { _ in Self.requestID } }
    #expect(seen == 7)
  }

  @Test func cachedStores_areOneForEachTransactionAndType() async throws {
    try await rw.write { transaction in
      #expect(transaction.objects === transaction.objects)
      #expect(transaction.nodes === transaction.nodes)
    }
  }

  @Test func readBesideARunningWrite_seesTheLastCommit() async throws {
    try await rw.write { $0.setObject(Note(title: "old"), forKey: "1", inCollection: "notes") }
    let (hasWritten, mayCommit) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))
    let connection = rw
    async let written: Void = connection.write { transaction in
      transaction.setObject(Note(title: "new"), forKey: "1", inCollection: "notes")
      hasWritten.signal()
      mayCommit.wait()
    }
    await wait(hasWritten)
    let during = try await manager.note("1")
    mayCommit.signal()
    try await written
    #expect(during == Note(title: "old"))
    #expect(try await manager.note("1") == Note(title: "new"))
  }
}

final class Collected: Sendable {
  private let state = Mutex<[Int]>([])
  var values: [Int] { state.withLock { $0 } }
  func append(_ value: Int) { state.withLock { $0.append(value) } }
}

func wait(_ semaphore: DispatchSemaphore) async {
  await withCheckedContinuation { continuation in
    DispatchQueue.global().async {
      semaphore.wait()
      continuation.resume()
    }
  }
}
