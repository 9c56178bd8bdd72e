package import Foundation
internal import Synchronization
package import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// The register of downloads that go on when their process has ended (reference 4.4).
///
/// A row stands in zdc_download while somebody in a process waits for such a download. A process that ends leaves its
/// rows behind; the lock that it held tells others so, and the next one that looks takes them over.
package final class BackgroundDownloads: Sendable {
  package typealias Owner = DownloadStore.Owner

  private struct Entry {
    /// Requests of this process that still want it.
    var callers = 0
    /// A row is committed.
    var hasRow = false
    /// One is being written: whoever joins waits for it.
    var saving: Task<Void, any Error>?
    /// Taken over from a process that has ended, and under way.
    var isResumed = false
    /// Somebody got it meanwhile.
    var wasServed = false

    var isIdle: Bool { callers == 0 && !isResumed }
    var mayHaveRow: Bool { hasRow || saving != nil }
  }

  private struct State {
    var entries: [DownloadKey: Entry] = [:]
    var lock: FileLock?
    var isStopped = false
    /// Those who leave without being awaited.
    var leaving = 0
    /// Called when nobody leaves any more.
    var whenAllHaveLeft: [CheckedContinuation<Void, Never>] = []
  }

  private let database: ZDCDatabaseConnection
  private let folder: URL
  package let owner = Owner.random()
  private let state = Mutex(State())

  /// - Parameter folder: where the processes' locks are, in a folder of their own.
  package init(database: ZDCDatabaseConnection, folder: URL) {
    self.database = database
    self.folder = folder.appendingPathComponent("owners", isDirectory: true)
  }

  /// The rows stay: the process ends. ``release()`` follows, when nothing is under way any more.
  package func stop() {
    state.withLock { $0.isStopped = true }
  }

  /// From now on others may take the rows over.
  package func release() {
    state.withLock { state in
      state.lock?.release()
      state.lock = nil
    }
  }

  // MARK: Requests of this process

  /// One request's part in the register.
  package final class Attendance: Sendable {
    private let register: BackgroundDownloads
    private let key: DownloadKey
    private let options: ZDCDownloadOptions.Values
    private let isOver = Mutex(false)

    fileprivate init(_ register: BackgroundDownloads, _ key: DownloadKey, _ options: ZDCDownloadOptions.Values) {
      self.register = register
      self.key = key
      self.options = options
    }

    /// To be called before the first byte is fetched: when it returns the request outlives the process, if it is to.
    package func begin() async throws {
      guard !isOver.withLock({ $0 }), options.canDownloadWhileInBackground else { return }
      try await register.save(key, options)
    }

    /// The request has its answer, or does not want it any more. Only the first call counts.
    package func end(wasServed: Bool) async {
      guard isFirstEnd() else { return }
      await register.leave(key, wasServed: wasServed)
    }

    package func endSoon(wasServed: Bool) {
      if isFirstEnd() { register.leaveSoon(key, wasServed: wasServed) }
    }

    private func isFirstEnd() -> Bool {
      isOver.withLock { isOver in
        defer { isOver = true }
        return !isOver
      }
    }
  }

  package func attend(_ key: DownloadKey, _ options: ZDCDownloadOptions.Values) -> Attendance {
    state.withLock { $0.entries[key, default: Entry()].callers += 1 }
    return Attendance(self, key, options)
  }

  private func save(_ key: DownloadKey, _ options: ZDCDownloadOptions.Values) async throws {
    try hold()
    let saving = state.withLock { state -> Task<Void, any Error>? in
      guard let entry = state.entries[key], !entry.hasRow else { return nil }
      let saving = entry.saving ?? Task { try await insert(key, options) }
      state.entries[key]?.saving = saving
      return saving
    }
    do {
      try await saving?.value
    } catch {
      // The next one who asks tries again.
      state.withLock { state in
        if state.entries[key]?.saving == saving { state.entries[key]?.saving = nil }
      }
      throw error
    }
  }

  private func insert(_ key: DownloadKey, _ options: ZDCDownloadOptions.Values) async throws {
    try await database.asyncReadWrite { [self] transaction in
      let isWanted = state.withLock { state in
        if let entry = state.entries[key], entry.callers > 0 { return true }
        // Withdrawn meanwhile.
        state.entries[key]?.saving = nil
        return false
      }
      guard isWanted else { return }
      try transaction.downloads.insert(key, options, owner: owner)
      transaction.afterCommit { [self] in
        state.withLock { state in
          state.entries[key]?.hasRow = true
          state.entries[key]?.saving = nil
        }
      }
    }
  }

  private func leave(_ key: DownloadKey, wasServed: Bool) async {
    state.withLock { state in
      state.entries[key]?.callers -= 1
      if wasServed { state.entries[key]?.wasServed = true }
    }
    await settle(key, isOver: wasServed)
  }

  private func leaveSoon(_ key: DownloadKey, wasServed: Bool) {
    state.withLock { $0.leaving += 1 }
    Task {
      await leave(key, wasServed: wasServed)
      let waiting = state.withLock { state in
        state.leaving -= 1
        guard state.leaving == 0 else { return [CheckedContinuation<Void, Never>]() }
        defer { state.whenAllHaveLeft = [] }
        return state.whenAllHaveLeft
      }
      for continuation in waiting { continuation.resume() }
    }
  }

  /// Returns when those have left who said so before: what the app has got is not told again.
  func allHaveLeft() async {
    await withCheckedContinuation { continuation in
      let isDone = state.withLock { state in
        if state.leaving > 0 { state.whenAllHaveLeft.append(continuation) }
        return state.leaving == 0
      }
      if isDone { continuation.resume() }
    }
  }

  /// Forgets a download that nobody waits for, and its row.
  ///
  /// - Parameter isOver: also if the process ends: the app has got it.
  package func settle(_ key: DownloadKey, isOver: Bool = false) async {
    let hasRow = state.withLock { state in
      guard let entry = state.entries[key], entry.isIdle, !entry.mayHaveRow || (state.isStopped && !isOver) else {
        return state.entries[key]?.isIdle == true
      }
      state.entries[key] = nil
      return false
    }
    guard hasRow else { return }
    // Also when the task is cancelled in which this is asked for: what the app has got is over.
    await Task { await removeRow(key) }.value
  }

  private func removeRow(_ key: DownloadKey) async {
    do {
      try await database.asyncReadWrite { [self] transaction in
        // Somebody may want it again by now: then the row stays for him.
        let isIdle = state.withLock { state in
          guard state.entries[key]?.isIdle == true else { return false }
          state.entries[key] = nil
          return true
        }
        if isIdle { try transaction.downloads.remove(key, owner: owner) }
      }
    } catch {
      // It comes once more at the next launch.
      database.context.logFailure(error)
    }
  }

  // MARK: Those of processes that have ended

  /// Takes over what ended processes have left.
  ///
  /// - Returns: everything that is saved here and that nobody in this process fetches.
  func orphans() async throws -> [DownloadStore.Saved] {
    let others = try await database.asyncRead { [owner] in try $0.downloads.owners().filter { $0 != owner } }
    for other in others { try await adopt(other) }
    guard state.withLock({ $0.lock != nil }) else { return [] }
    let saved = try await database.asyncRead { [owner] in try $0.downloads.downloads(of: owner) }
    return saved.filter { saved in state.withLock { $0.entries[saved.key] == nil } }
  }

  private func adopt(_ other: Owner) async throws {
    try hold()
    let file = lockFile(other)
    guard let lock = try FileLock.trying(file) else { return }
    defer { lock.release() }
    try await database.asyncReadWrite { [owner] in try $0.downloads.adopt(from: other, to: owner) }
    DownloadFolder.remove(file)
  }

  /// - Returns: false if somebody fetches it already.
  func beginResuming(_ key: DownloadKey) -> Bool {
    state.withLock { state in
      guard state.entries[key] == nil, !state.isStopped else { return false }
      state.entries[key] = Entry(hasRow: true, isResumed: true)
      return true
    }
  }

  /// The resumed transfer has come to its end; ``settle(_:)`` follows when the app knows.
  ///
  /// - Returns: Whether nobody in this process has got it or is about to.
  func endResuming(_ key: DownloadKey) -> Bool {
    state.withLock { state in
      state.entries[key]?.isResumed = false
      guard let entry = state.entries[key] else { return false }
      return entry.isIdle && !entry.wasServed && !state.isStopped
    }
  }

  /// The resumed transfer has failed and may succeed at another occasion.
  ///
  /// - Returns: false if somebody has got it meanwhile.
  package func postpone(_ key: DownloadKey) -> Bool {
    state.withLock { state in
      state.entries[key]?.isResumed = false
      guard let entry = state.entries[key], entry.isIdle else { return true }
      if entry.wasServed { return false }
      state.entries[key] = nil
      return true
    }
  }

  // MARK: The lock

  /// Shows others that this process lives. Made with the first row: most processes have none.
  private func hold() throws {
    try state.withLock { state in
      guard state.lock == nil else { return }
      guard !state.isStopped else { throw CancellationError() }
      do {
        try FileManager.default.createDirectory(
          at: folder, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
      } catch { throw ZDCError(.fileFailure, underlying: error) }
      state.lock = try FileLock.trying(lockFile(owner))
    }
  }

  private func lockFile(_ owner: Owner) -> URL { folder.appendingPathComponent(owner.text, isDirectory: false) }
}
