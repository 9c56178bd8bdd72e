internal import GRDB
internal import Synchronization
internal import ZDCSupport

/// A transaction that may write. Everything in it commits together, or nothing does.
///
/// The app's objects, the app's own tables, nodes and queued operations share it. Throwing from the block rolls all of
/// it back.
public final class ZDCReadWriteTransaction: ZDCReadTransaction {
  private var commitActions: CommitActions?
  /// How often a part of it was taken back: what others remember of the database is good for as long as this stays.
  package private(set) var rollbacks = 0
  /// How the app is called in this transaction.
  package var appCalls = AppCalls()

  /// Runs `body` after the commit is on disk, on the database's writer queue; never if the transaction fails.
  ///
  /// For effects on the world: post a notification, wake a task. It must not open a transaction synchronously.
  public func afterCommit(_ body: @escaping @Sendable () -> Void) {
    actions.append(body)
  }

  /// Tells listeners after the commit, once, however often it is called.
  package func signal(_ interest: ChangeSignals.Interest) {
    actions.signal(interest)
  }

  /// A part that stands or falls by itself: what it wrote is taken back if it throws, and so is what it wanted done
  /// after the commit. A call in it that poisons the transaction counts as thrown.
  package func undoable<T>(_ body: () throws -> T) throws -> T {
    // What failed before is not taken back with this part.
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
      // A full disk takes back the whole transaction: nothing may be written behind it.
      guard database.isInsideTransaction else { throw DelegateError.unwrap(error) }
      throw error
    }
  }

  private func forget(to remembered: [ObjectIdentifier: AnyObject], actions mark: Int) {
    cache = remembered
    for case let store as any Forgetful in cache.values { store.forgetAll() }
    commitActions?.truncate(to: mark)
    rollbacks += 1
  }

  private var actions: CommitActions {
    if let commitActions { return commitActions }
    let actions = CommitActions()
    // One observer for the whole transaction: each would be asked at every statement.
    database.afterNextTransaction { [changes = context.changes] _ in actions.run(changes) }
    commitActions = actions
    return actions
  }
}

/// Remembers rows for the length of a transaction.
package protocol Forgetful: AnyObject {
  /// A part of the transaction was taken back.
  func forgetAll()
}

/// What happens after a commit.
private final class CommitActions: Sendable {
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
