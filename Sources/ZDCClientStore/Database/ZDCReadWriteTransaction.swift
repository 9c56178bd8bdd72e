internal import GRDB
internal import Synchronization
internal import ZDCSupport

/// A transaction that may write. Everything in it commits together, or nothing does.
///
/// The app's objects, the app's own tables, nodes and queued operations share it. Throwing from the block rolls all of
/// it back.
///
/// ```swift
/// try await connection.write { transaction in
///   transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
///   try transaction.database.execute(sql: "UPDATE task SET completed = 1 WHERE id = ?", arguments: [task.uuid])
/// }
/// ```
public final class ZDCReadWriteTransaction: ZDCReadTransaction {
  private(set) var commitActions: CommitActions?
  /// The number of partial rollbacks. Cached database state is valid as long as this number stays the same.
  package private(set) var rollbacks = 0
  /// The mode in which this transaction calls the app.
  package var appCalls = AppCalls()

  /// Runs `body` after the commit is on disk, on the database's writer queue; never if the transaction fails.
  ///
  /// For external effects, such as posting a notification or waking a task. `body` must not open a transaction
  /// synchronously.
  ///
  /// ```swift
  /// transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
  /// transaction.afterCommit { refreshCell() }
  /// ```
  public func afterCommit(_ body: @escaping @Sendable () -> Void) {
    actions.append(body)
  }

  /// Notifies listeners after the commit, once per interest, however often it is called.
  package func signal(_ interest: ChangeSignals.Interest) {
    actions.signal(interest)
  }

  /// Runs `body` in a savepoint. If it throws, its writes and commit actions are undone. A call in it that poisons the
  /// transaction counts as thrown.
  package func undoable<T>(_ body: () throws -> T) throws -> T {
    // A failure before this part must not be undone with it.
    if let poisonError { throw poisonError }
    let remembered = cache
    let mark = commitActions?.count ?? 0
    do {
      var result: T?
      try database.inSavepoint {
        result = try body()
        if let error = takePoison() { throw error }
        return .commit
      }
      guard let result else { throw ZDCError(.corruptDatabase) }
      return result
    } catch {
      _ = takePoison()
      forget(to: remembered, actions: mark)
      // A full disk rolls back the whole transaction: nothing may be written after that.
      guard database.isInsideTransaction else { throw DelegateError.unwrap(error) }
      throw error
    }
  }

  private func forget(to remembered: [ObjectIdentifier: AnyObject], actions mark: Int) {
    cache = remembered
    for case let store as any TransactionCache in cache.values { store.invalidate() }
    commitActions?.truncate(to: mark)
    rollbacks += 1
  }

  private var actions: CommitActions {
    if let commitActions { return commitActions }
    let actions = CommitActions()
    commitActions = actions
    return actions
  }
}

/// A cache of rows that lives as long as a transaction.
package protocol TransactionCache: AnyObject {
  /// Clears the cache after a partial rollback.
  func invalidate()
}

/// The actions to run after a commit.
final class CommitActions: Sendable {
  private struct State {
    var bodies: [@Sendable () -> Void] = []
    var interests: Set<ChangeSignals.Interest> = []
  }

  private let state = Mutex(State())

  func append(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.bodies.append(body) }
  }

  var count: Int { state.withLock { $0.bodies.count } }

  func truncate(to count: Int) {
    state.withLock { $0.bodies.removeLast(max(0, $0.bodies.count - count)) }
  }

  func signal(_ interest: ChangeSignals.Interest) {
    state.withLock { _ = $0.interests.insert(interest) }
  }

  func run(_ changes: ChangeSignals) {
    let due = state.withLock { state in
      defer { state = State() }
      return state
    }
    for body in due.bodies { body() }
    if !due.interests.isEmpty { changes.send(due.interests) }
  }
}
