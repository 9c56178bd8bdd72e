package import Foundation
internal import Synchronization
internal import ZDCProtocol
internal import ZDCSupport

/// The right to run a database's engines, held by the process that has locked `<database>.lease`.
///
/// Other processes open the database, read and queue; the holder's change watcher notices their commits. The lease ends
/// with the process. Within a process it is counted: the last release gives it up.
package final class EngineLease: Sendable {
  private struct State {
    var lock: FileLock?
    var holds = 0
    var generation = 0
  }

  private let file: URL
  private let state = Mutex(State())
  /// The bytes this object leaves in the file, to detect whether another process has held the lease since.
  private let mark = Bytes16<LookupRole>.random().bytes

  package init(databasePath: URL) {
    file = databasePath.appendingPathExtension("lease")
  }

  package var isHeld: Bool { state.withLock { $0.lock != nil } }

  /// A number that increases whenever the lease comes from another holder. State remembered from before is stale.
  package var generation: Int { state.withLock { $0.generation } }

  /// Tries to acquire the lease.
  ///
  /// - Returns: Whether this process holds it now. Each success requires a call to ``release()``.
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

  /// Releases the lease whatever the number of holds, because the database closes.
  func releaseAll() {
    state.withLock { Self.drop(&$0) }
  }

  private static func drop(_ state: inout State) {
    state.lock?.release()
    state.lock = nil
    state.holds = 0
  }
}
