internal import GRDB
internal import Synchronization
internal import ZDCSupport

/// The end of a write transaction, for work requested inside it that must not start before the commit.
package final class TransactionEnd: Sendable {
  private enum State {
    case pending([CheckedContinuation<Bool, Never>])
    case ended(hasCommitted: Bool)
  }

  /// Only the transaction's commit actions retain it, so a rollback frees it without a commit.
  private final class Holder: Sendable {
    let end: TransactionEnd

    init(_ end: TransactionEnd) { self.end = end }

    deinit { end.finish(hasCommitted: false) }
  }

  private let state = Mutex(State.pending([]))

  /// Returns the end of the calling thread's write transaction; nil if there is none.
  package static func ofCurrent(_ context: DatabaseContext) -> TransactionEnd? {
    guard let transaction = CurrentTransaction.ofDatabase(context) as? ZDCReadWriteTransaction else { return nil }
    let end = TransactionEnd()
    let holder = Holder(end)
    transaction.afterCommit { holder.end.finish(hasCommitted: true) }
    return end
  }

  /// Returns once the transaction has committed.
  ///
  /// - Throws: ``ZDCError`` with `transactionRolledBack`.
  package func committed() async throws {
    let hasCommitted = await withCheckedContinuation { continuation in
      let known = state.withLock { state -> Bool? in
        switch state {
        case .ended(let hasCommitted): return hasCommitted
        case .pending(let waiting):
          state = .pending(waiting + [continuation])
          return nil
        }
      }
      if let known { continuation.resume(returning: known) }
    }
    guard hasCommitted else { throw ZDCError(.transactionRolledBack) }
  }

  private func finish(hasCommitted: Bool) {
    let waiting = state.withLock { state -> [CheckedContinuation<Bool, Never>] in
      guard case .pending(let waiting) = state else { return [] }
      state = .ended(hasCommitted: hasCommitted)
      return waiting
    }
    for continuation in waiting { continuation.resume(returning: hasCommitted) }
  }
}

/// Waits for this process's writes in progress, because a task started inside a transaction's block may read before
/// that transaction commits. Concurrent callers share one turn of the writer.
package final class WriterBarrier: Sendable {
  private let waiting = Mutex<[CheckedContinuation<Void, Never>]>([])

  package init() {}

  package func pass(_ database: ZDCDatabaseConnection) async {
    await withCheckedContinuation { continuation in
      let isFirst = waiting.withLock { waiting in
        waiting.append(continuation)
        return waiting.count == 1
      }
      if isFirst { database.pool.asyncWriteWithoutTransaction { _ in self.open() } }
    }
  }

  private func open() {
    let passing = waiting.withLock { waiting in
      defer { waiting = [] }
      return waiting
    }
    for continuation in passing { continuation.resume() }
  }
}
