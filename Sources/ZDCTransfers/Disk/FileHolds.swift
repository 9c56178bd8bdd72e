internal import Foundation
internal import Synchronization
internal import ZDCSupport

#if canImport(Glibc)
  internal import Glibc
#elseif canImport(Musl)
  internal import Musl
#elseif canImport(Darwin)
  internal import Darwin
#endif

/// Which of the disk manager's files somebody reads or is about to write: those are not deleted, by no process.
///
/// In this process a count for each file, towards others a shared lock on one byte of a lock file, whose place is taken
/// from the file's name. One descriptor for all, and the system gives the locks back when a process dies.
package final class FileHolds: Sendable {
  private struct State {
    var counts: [String: Int] = [:]
    /// To be deleted by whoever lets go last.
    var doomed: Set<String> = []
    /// Called when that has happened.
    var didDeleteDoomed: @Sendable () -> Void = {}
  }

  private let folder: DiskFolder
  private let descriptor = Mutex<CInt>(-1)
  private let state = Mutex(State())

  package init(_ folder: DiskFolder) {
    self.folder = folder
  }

  deinit {
    descriptor.withLock { if $0 >= 0 { close($0) } }
  }

  /// Before the first file is written.
  ///
  /// - Throws: ``ZDCError`` with `fileFailure` or `diskFull` if the lock file cannot be made.
  package func prepare() throws {
    try descriptor.withLock { descriptor in
      if descriptor < 0 { descriptor = openLockFile() }
      guard descriptor >= 0 else { throw LocalFile.failure() }
    }
  }

  private func openLockFile() -> CInt {
    let path = folder.url.appendingPathComponent("holds.lock", isDirectory: false).path
    return openFile(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
  }

  /// - Parameter body: called when the last reader has let go of a file that was to be deleted, on the reader's thread.
  func whenDoomedFileGoes(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.didDeleteDoomed = body }
  }

  /// Holds the file for as long as the token lives.
  package func token(_ name: String) -> ZDCFileRetainToken {
    hold(name)
    return ZDCFileRetainToken(name) { [self] in release(name) }
  }

  /// From now on the file is not deleted, unless it was before: look whether it is there.
  package func hold(_ name: String) {
    state.withLock { state in
      state.counts[name, default: 0] += 1
      if state.counts[name] == 1 { share(name) }
    }
  }

  /// Others have the exclusive lock for moments only, to look whether the file is free or to unlink it: without a second
  /// try, a reader who comes in such a moment would have no hold that they see.
  private func share(_ name: String) {
    for _ in 0..<1_000 {
      if lock(name, F_RDLCK) { return }
      usleep(100)
    }
  }

  package func release(_ name: String) {
    let tell = state.withLock { state -> (@Sendable () -> Void)? in
      guard let count = state.counts[name] else { return nil }
      state.counts[name] = count == 1 ? nil : count - 1
      guard count == 1 else { return nil }
      guard state.doomed.remove(name) != nil, unlinkExclusively(name) else {
        _ = lock(name, F_UNLCK)
        return nil
      }
      return state.didDeleteDoomed
    }
    tell?()
  }

  /// Whether nobody has it. A file that a finished writer has is not held any more.
  package func isFree(_ name: String) -> Bool {
    state.withLock { state in
      guard state.counts[name] == nil, lock(name, F_WRLCK) else { return false }
      _ = lock(name, F_UNLCK)
      return true
    }
  }

  /// Deletes the file, at once or when the last reader in this process lets go of it.
  ///
  /// - Returns: whether it is gone by now.
  package func remove(_ name: String) -> Bool {
    state.withLock { state in
      guard state.counts[name] == nil else {
        state.doomed.insert(name)
        return false
      }
      return unlinkExclusively(name)
    }
  }

  /// Names of files that are held, for tests.
  package var held: Set<String> { state.withLock { Set($0.counts.keys) } }

  private func unlinkExclusively(_ name: String) -> Bool {
    guard lock(name, F_WRLCK) else { return false }
    defer { _ = lock(name, F_UNLCK) }
    return unlink(folder.url(name).path) == 0 || errno == ENOENT
  }

  // MARK: Locks

  #if canImport(Darwin)
    private static let setLock: CInt = 90  // F_OFD_SETLK, which the module does not show.
  #else
    private static let setLock: CInt = 37
  #endif

  /// Locks of an open file, not of a process: two managers over one folder in one process see each other's.
  ///
  /// - Returns: false if another has a lock that excludes it. Where the file system knows no locks there are no other
  ///   processes to tell apart, and it is true.
  private func lock(_ name: String, _ kind: some BinaryInteger) -> Bool {
    var range = flock()
    range.l_type = .init(kind)
    range.l_whence = .init(SEEK_SET)
    range.l_start = .init(DiskFolder.lockPlace(name))
    range.l_len = 1
    let open = descriptor.withLock { descriptor in
      if descriptor < 0 { descriptor = openLockFile() }
      return descriptor
    }
    while fcntl(open, Self.setLock, &range) != 0 {
      if errno == EINTR { continue }
      return errno != EAGAIN && errno != EACCES
    }
    return true
  }
}
