internal import GRDB
internal import Synchronization

/// Counts a database's commits, and kills the device after one of them. From then on, no commit succeeds.
final class CommitGuard: TransactionObserver, Sendable {
  struct Killed: Error {}

  private struct State {
    var left: Int?
    var commits = 0
    var isDead = false
    var hasChanged = false
  }

  private let state = Mutex(State())
  private let died: @Sendable () -> Void

  /// - Parameter died: Called once, when the last commit is on disk.
  init(died: @escaping @Sendable () -> Void) {
    self.died = died
  }

  var isDead: Bool { state.withLock { $0.isDead } }
  var commits: Int { state.withLock { $0.commits } }

  /// - Parameter count: The number of commits that still succeed; nil for all.
  func arm(after count: Int?) {
    let isDead = state.withLock { state in
      state.left = count
      state.commits = 0
      state.isDead = count == 0
      return state.isDead
    }
    if isDead { died() }
  }

  func observes(eventsOfKind eventKind: DatabaseEventKind) -> Bool { true }

  func databaseDidChange(with event: DatabaseEvent) { state.withLock { $0.hasChanged = true } }

  func databaseWillCommit() throws {
    if isDead { throw Killed() }
  }

  func databaseDidCommit(_ db: Database) {
    let isLast = state.withLock { state in
      guard state.hasChanged else { return false }
      state.hasChanged = false
      state.commits += 1
      guard let left = state.left else { return false }
      state.left = left - 1
      state.isDead = left <= 1
      return state.isDead
    }
    if isLast { died() }
  }

  func databaseDidRollback(_ db: Database) { state.withLock { $0.hasChanged = false } }
}
