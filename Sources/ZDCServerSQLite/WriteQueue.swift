internal import Dispatch
internal import GRDB
internal import GRDBSQLite
internal import Synchronization
internal import ZDCServer

/// Group commit: writes that arrive while SQLite waits for the disk share the next transaction, each in its own
/// savepoint. One fsync then acknowledges many writes.
///
/// A single write needs no savepoint, for which SQLite would copy every changed page.
final class WriteQueue: Sendable {
  /// A write. `body` runs inside the savepoint. The closure that it returns is called once the transaction is durable,
  /// or with the error if it failed.
  struct Job: Sendable {
    typealias Completion = @Sendable ((any Error)?) -> Void
    let enqueued = ContinuousClock.now
    let body: @Sendable (SQLiteTransaction) throws -> Completion
    let fail: @Sendable (any Error) -> Void
  }

  private struct State {
    var waiting: [Job] = []
    var isDraining = false
    var statistics = WriteStatistics()
  }

  /// Bounds the time that the first job of a group waits for the last one.
  private static let groupLimit = 128

  private let pool: DatabasePool
  private let checkpointer: Checkpointer
  private let queue = DispatchQueue(label: "zdc.server.writer", qos: .userInitiated)
  private let state = Mutex(State())

  init(pool: DatabasePool, checkpointer: Checkpointer) {
    self.pool = pool
    self.checkpointer = checkpointer
  }

  var statistics: WriteStatistics { state.withLock { $0.statistics } }

  func enqueue(_ job: Job) {
    let mustStart = state.withLock { state in
      state.waiting.append(job)
      defer { state.isDraining = true }
      return !state.isDraining
    }
    if mustStart { queue.async { self.drain() } }
  }

  private func drain() {
    while let group = next() { perform(group) }
  }

  private func next() -> [Job]? {
    state.withLock { state in
      guard !state.waiting.isEmpty else {
        state.isDraining = false
        return nil
      }
      let group = Array(state.waiting.prefix(Self.groupLimit))
      state.waiting.removeFirst(group.count)
      let now = ContinuousClock.now
      state.statistics.groups += 1
      state.statistics.writes += UInt64(group.count)
      for job in group { state.statistics.waitedSeconds += (now - job.enqueued).seconds }
      return group
    }
  }

  /// The callbacks to run once the group's outcome is known.
  private struct Ending {
    typealias Success = (completion: Job.Completion, effects: [@Sendable () -> Void])
    var succeeded: [Success] = []
    var failed: [@Sendable () -> Void] = []
  }

  private func perform(_ group: [Job]) {
    var ending = Ending()
    var failure: (any Error)?
    do {
      try pool.writeWithoutTransaction { db in
        try db.beginTransaction(.immediate)
        do {
          if let job = group.first, group.count == 1 {
            ending.succeeded.append(try run(job, in: db))
          } else {
            for job in group { try perform(job, in: db, &ending) }
          }
          try db.commit()
          checkpointer.wrote(db)
        } catch {
          let error = Self.translated(error, db)
          if db.isInsideTransaction { try? db.rollback() }
          throw error
        }
      }
    } catch {
      failure = error
    }
    tell(group, ending, failure: failure)
  }

  private func run(_ job: Job, in db: Database) throws -> Ending.Success {
    let transaction = SQLiteTransaction(db)
    defer { transaction.invalidate() }
    let completion = try job.body(transaction)
    return (completion, transaction.effects)
  }

  private func perform(_ job: Job, in db: Database, _ ending: inout Ending) throws {
    try db.run("SAVEPOINT job")
    do {
      let success = try run(job, in: db)
      try db.run("RELEASE job")
      ending.succeeded.append(success)
    } catch {
      let error = Self.translated(error, db)
      // A full disk may have ended the whole transaction; then the other jobs are lost too, for the same reason.
      guard db.isInsideTransaction else { throw error }
      try db.run("ROLLBACK TO job")
      try db.run("RELEASE job")
      ending.failed.append { job.fail(error) }
    }
  }

  /// Translates errors of a full disk. SQLite reports only one kind as full; the system's errno identifies the others.
  private static func translated(_ error: any Error, _ db: Database) -> any Error {
    guard let failure = error as? DatabaseError else { return error }
    if failure.resultCode == .SQLITE_FULL { return StorageFull() }
    let isFull = failure.resultCode == .SQLITE_IOERR && OpenFile.isFull(sqlite3_system_errno(db.sqliteConnection))
    return isFull ? StorageFull() : error
  }

  private func tell(_ group: [Job], _ ending: Ending, failure: (any Error)?) {
    if let failure {
      // Jobs that failed on their own also get the group's error: no change of this group is durable.
      for job in group { job.fail(failure) }
      return
    }
    for (_, effects) in ending.succeeded { for effect in effects { effect() } }
    for (completion, _) in ending.succeeded { completion(nil) }
    for fail in ending.failed { fail() }
  }
}

extension Duration {
  var seconds: Double { Double(components.seconds) + Double(components.attoseconds) * 1e-18 }
}
