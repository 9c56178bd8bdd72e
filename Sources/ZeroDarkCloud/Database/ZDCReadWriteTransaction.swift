internal import GRDB
internal import Synchronization

/// A transaction that may write. Everything in it commits together, or nothing does.
///
/// The app's objects, the app's own tables, nodes and queued operations share it. Throwing from the block rolls all of
/// it back.
public final class ZDCReadWriteTransaction: ZDCReadTransaction {
  private var commitActions: CommitActions?

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

  private var actions: CommitActions {
    if let commitActions { return commitActions }
    let actions = CommitActions()
    // One observer for the whole transaction: each would be asked at every statement.
    database.afterNextTransaction { [changes = context.changes] _ in actions.run(changes) }
    commitActions = actions
    return actions
  }
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
