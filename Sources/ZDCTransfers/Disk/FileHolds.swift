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

/// The disk manager's files that are being read or are about to be written. No process deletes them.
///
/// Within this process, each held file has a count. For other processes, it has a shared lock on one byte of a lock
/// file, at a position derived from the file's name. All locks share one descriptor, and the system releases them when
/// a process dies.
package final class FileHolds: Sendable {
  private struct State {
    var counts: [String: Int] = [:]
    /// Files to delete when their last hold is released.
    var doomed: Set<String> = []
    /// Called after such a file was deleted.
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

  /// Opens the lock file. Call this before the first file is written.
  ///
  /// - Throws: ``ZDCError`` with `fileFailure` or `diskFull` if the lock file cannot be created.
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

  /// - Parameter body: called on the reader's thread when the last reader has released a file that was to be deleted.
  func onFileRemoval(_ body: @escaping @Sendable () -> Void) {
    state.withLock { $0.didDeleteDoomed = body }
  }

  /// Returns a token that holds the file for as long as the token lives.
  package func token(_ name: String) -> ZDCFileRetainToken {
    hold(name)
    return ZDCFileRetainToken(name) { [self] in release(name) }
  }

  /// Prevents the deletion of the file from now on. It may already be deleted, so check that it exists.
  package func hold(_ name: String) {
    state.withLock { state in
      state.counts[name, default: 0] += 1
      if state.counts[name] == 1 { share(name) }
    }
  }

  /// Takes the shared lock. Other processes hold the exclusive lock only for moments, to check whether the file is free
  /// or to unlink it. Without retries, a reader that arrives in such a moment would have no hold that is visible to
  /// them. After 0.1 s the hold counts in this process only.
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

  /// Whether no process holds the file. A finished writer no longer holds its file.
  package func isFree(_ name: String) -> Bool {
    state.withLock { state in
      guard state.counts[name] == nil, lock(name, F_WRLCK) else { return false }
      _ = lock(name, F_UNLCK)
      return true
    }
  }

  /// Deletes the file, immediately or when the last reader in this process releases it.
  ///
  /// - Returns: whether the file is gone now.
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
    private static let setLock: CInt = 90  // F_OFD_SETLK, which the module does not export.
  #else
    private static let setLock: CInt = 37
  #endif

  /// Sets a lock that belongs to the open file, not to the process, so that two managers of one folder in one process
  /// respect each other's locks.
  ///
  /// - Returns: false if another lock excludes it. True if the lock fails for any other reason, such as a file
  ///   system without locks: then no other process is taken into account.
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
