internal import Synchronization

/// The running observations of a database. While there are any, a watcher polls for commits of other processes.
package final class Observations: Sendable {
  private struct State {
    var lastID = 0
    var ends: [Int: @Sendable () -> Void] = [:]
    var watching: Task<Void, Never>?
    var isClosed = false
  }

  private let state = Mutex(State())
  private let watcher: ChangeWatcher

  package init(watcher: ChangeWatcher) {
    self.watcher = watcher
  }

  package var count: Int { state.withLock { $0.ends.count } }

  package var isClosed: Bool { state.withLock { $0.isClosed } }

  /// Registers an observation.
  ///
  /// - Parameter end: Ends the observation from outside; must lead to ``end(_:)``.
  /// - Returns: nil once the database is closed.
  package func begin(end: @escaping @Sendable () -> Void) -> Int? {
    state.withLock { state in
      guard !state.isClosed else { return nil }
      state.lastID += 1
      state.ends[state.lastID] = end
      if state.watching == nil { state.watching = Task { [watcher] in await watcher.run() } }
      return state.lastID
    }
  }

  package func end(_ id: Int) {
    state.withLock { state in
      state.ends[id] = nil
      guard state.ends.isEmpty else { return }
      state.watching?.cancel()
      state.watching = nil
    }
  }

  /// Ends all observations and refuses later ones.
  package func close() {
    let ends = state.withLock { state in
      state.isClosed = true
      defer { state.ends = [:] }
      return Array(state.ends.values)
    }
    state.withLock { $0.watching }?.cancel()
    for end in ends { end() }
  }
}
