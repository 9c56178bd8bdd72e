internal import Foundation
internal import Synchronization

/// Which process runs the engines of a database: the one that holds the lock on `<database>.lease`.
///
/// The others open the database, queue and read; the holder's change watcher notices what they commit. The lease ends
/// with the process.
package final class EngineLease: Sendable {
  private let file: URL
  private let lock = Mutex<FileLock?>(nil)

  init(databasePath: URL) {
    file = databasePath.appendingPathExtension("lease")
  }

  package var isHeld: Bool { lock.withLock { $0 != nil } }

  /// - Returns: Whether this process has it now.
  package func tryAcquire() throws -> Bool {
    try lock.withLock { lock in
      if lock == nil { lock = try FileLock.trying(file) }
      return lock != nil
    }
  }

  package func release() {
    lock.withLock { lock in
      lock?.release()
      lock = nil
    }
  }
}
