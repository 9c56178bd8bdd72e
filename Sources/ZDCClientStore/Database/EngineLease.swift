package import Foundation
internal import Synchronization
internal import ZDCProtocol
internal import ZDCSupport

/// Which process runs the engines of a database: the one that holds the lock on `<database>.lease`.
///
/// The others open the database, queue and read; the holder's change watcher notices what they commit. The lease ends
/// with the process. Within the process it is counted: it goes back when the last one who took it has released it.
package final class EngineLease: Sendable {
  private struct State {
    var lock: FileLock?
    var holds = 0
    var generation = 0
  }

  private let file: URL
  private let state = Mutex(State())
  /// What this object leaves in the file, so that it sees whether another process was at work in between.
  private let mark = Bytes16<LookupRole>.random().bytes

  package init(databasePath: URL) {
    file = databasePath.appendingPathExtension("lease")
  }

  package var isHeld: Bool { state.withLock { $0.lock != nil } }

  /// Rises whenever the lease comes here from somebody else: what is remembered from before is not true any more.
  package var generation: Int { state.withLock { $0.generation } }

  /// - Returns: Whether this process has it now; each success wants its ``release()``.
  package func tryAcquire() throws -> Bool {
    try state.withLock { state in
      if state.lock == nil {
        guard let lock = try FileLock.trying(file) else { return false }
        if try lock.exchange(mark) != mark { state.generation += 1 }
        state.lock = lock
      }
      state.holds += 1
      return true
    }
  }

  package func release() {
    state.withLock { state in
      state.holds = max(0, state.holds - 1)
      if state.holds == 0 { Self.drop(&state) }
    }
  }

  /// Gives it back whoever has it: the database closes.
  func releaseAll() {
    state.withLock { Self.drop(&$0) }
  }

  private static func drop(_ state: inout State) {
    state.lock?.release()
    state.lock = nil
    state.holds = 0
  }
}
