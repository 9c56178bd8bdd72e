package import Foundation
internal import Synchronization
package import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// The register of downloads that continue after their process has ended.
///
/// zdc_download holds a row for each such download while a request in some process waits for it. A process that ends
/// leaves its rows. Its released lock shows other processes that it has ended, and the first one that checks takes over
/// the rows.
package final class BackgroundDownloads: Sendable {
  package typealias Owner = DownloadStore.Owner

  private struct Entry {
    /// Number of requests in this process that still want the download.
    var callers = 0
    /// Whether a row is committed.
    var hasRow = false
    /// The write of the row, if one is in progress. Requests that join wait for it.
    var saving: Task<Void, any Error>?
    /// Whether the download was taken over from a process that has ended, and is in progress.
    var isResumed = false
    /// Whether a request has received the result.
    var wasServed = false

    var isIdle: Bool { callers == 0 && !isResumed }
    var mayHaveRow: Bool { hasRow || saving != nil }
  }

  private struct State {
    var entries: [DownloadKey: Entry] = [:]
    var lock: FileLock?
    var isStopped = false
    /// Number of requests that are leaving without being awaited.
    var leaving = 0
    /// Resumed when no request is leaving.
    var whenAllHaveLeft: [CheckedContinuation<Void, Never>] = []
  }

  private let database: ZDCDatabaseConnection
  private let folder: URL
  package let owner = Owner.random()
  private let state = Mutex(State())

  /// - Parameter folder: the folder in which a dedicated subfolder holds the processes' locks.
  package init(database: ZDCDatabaseConnection, folder: URL) {
    self.database = database
    self.folder = folder.appendingPathComponent("owners", isDirectory: true)
  }

  /// Stops the register because the process ends; the rows stay. Call ``release()`` when nothing is in progress any
  /// more.
  package func stop() {
    state.withLock { $0.isStopped = true }
  }

  /// Allows other processes to take over the rows.
  package func release() {
    state.withLock { state in
      state.lock?.release()
      state.lock = nil
    }
  }

  // MARK: Requests of this process

  /// One request's entry in the register.
  package final class BackgroundRegistration: Sendable {
    private let register: BackgroundDownloads
    private let key: DownloadKey
    private let options: ZDCDownloadOptions.Values
    private let isOver = Mutex(false)

    fileprivate init(_ register: BackgroundDownloads, _ key: DownloadKey, _ options: ZDCDownloadOptions.Values) {
      self.register = register
      self.key = key
      self.options = options
    }

    /// Saves the download if it is to outlive the process. Call this before the first byte is fetched.
    package func begin() async throws {
      guard !isOver.withLock({ $0 }), options.canDownloadWhileInBackground else { return }
      try await register.save(key, options)
    }

    /// Ends the entry: the request has its answer, or no longer wants it. Only the first call counts.
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

  package func attend(_ key: DownloadKey, _ options: ZDCDownloadOptions.Values) -> BackgroundRegistration {
    state.withLock { $0.entries[key, default: Entry()].callers += 1 }
    return BackgroundRegistration(self, key, options)
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
      // The next request tries again.
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
        // Withdrawn in the meantime.
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

  /// Waits for all requests that are leaving, so that the app is not notified again of results that it already has.
  func allHaveLeft() async {
    await withCheckedContinuation { continuation in
      let isDone = state.withLock { state in
        if state.leaving > 0 { state.whenAllHaveLeft.append(continuation) }
        return state.leaving == 0
      }
      if isDone { continuation.resume() }
    }
  }

  /// Forgets a download that no request waits for, and its row.
  ///
  /// - Parameter isOver: whether to do so even while the process is ending, because the app has the result.
  package func settle(_ key: DownloadKey, isOver: Bool = false) async {
    let hasRow = state.withLock { state in
      guard let entry = state.entries[key], entry.isIdle, !entry.mayHaveRow || (state.isStopped && !isOver) else {
        return state.entries[key]?.isIdle == true
      }
      state.entries[key] = nil
      return false
    }
    guard hasRow else { return }
    // A separate task, so that the row is removed even if the calling task is cancelled: the app has the result.
    await Task { await removeRow(key) }.value
  }

  private func removeRow(_ key: DownloadKey) async {
    do {
      try await database.asyncReadWrite { [self] transaction in
        // A request may want it again by now. Then the row stays for that request.
        let isIdle = state.withLock { state in
          guard state.entries[key]?.isIdle == true else { return false }
          state.entries[key] = nil
          return true
        }
        if isIdle { try transaction.downloads.remove(key, owner: owner) }
      }
    } catch {
      // The download is delivered again at the next launch.
      database.context.logFailure(error)
    }
  }

  // MARK: Downloads of ended processes

  /// Takes over the downloads of ended processes that no request in this process fetches.
  ///
  /// - Returns: the downloads to resume now. End each with ``endResuming(_:)`` or ``postpone(_:)``.
  func takeOver() async throws -> [DownloadStore.Saved] {
    let others = try await database.asyncRead { [owner] in try $0.downloads.owners().filter { $0 != owner } }
    for other in others { try await adopt(other) }
    guard state.withLock({ $0.lock != nil }) else { return [] }
    let saved = try await database.asyncRead { [owner] in try $0.downloads.downloads(of: owner) }
    let begun = saved.filter { beginResuming($0.key) }
    do {
      return try await stillSaved(begun)
    } catch {
      for saved in begun { _ = postpone(saved.key) }
      throw error
    }
  }

  /// Drops downloads whose result the app has received since their rows were read.
  private func stillSaved(_ begun: [DownloadStore.Saved]) async throws -> [DownloadStore.Saved] {
    guard !begun.isEmpty else { return [] }
    // A row is removed after its entry, in one write transaction. Only the next write transaction is certain to see it.
    let rows = try await database.asyncReadWrite { [owner] in Set(try $0.downloads.downloads(of: owner).map(\.id)) }
    let (kept, gone) = (begun.filter { rows.contains($0.id) }, begun.filter { !rows.contains($0.id) })
    state.withLock { state in for saved in kept { state.entries[saved.key]?.hasRow = true } }
    for saved in gone {
      _ = endResuming(saved.key)
      await settle(saved.key)
    }
    return kept
  }

  private func adopt(_ other: Owner) async throws {
    try hold()
    let file = lockFile(other)
    guard let lock = try FileLock.trying(file) else { return }
    defer { lock.release() }
    try await database.asyncReadWrite { [owner] in try $0.downloads.adopt(from: other, to: owner) }
    DownloadFolder.remove(file)
  }

  /// - Returns: false if the download is already being fetched, or the register is stopped.
  private func beginResuming(_ key: DownloadKey) -> Bool {
    state.withLock { state in
      guard state.entries[key] == nil, !state.isStopped else { return false }
      state.entries[key] = Entry(isResumed: true)
      return true
    }
  }

  /// Records that the resumed transfer has ended. Call ``settle(_:)`` when the app knows.
  ///
  /// - Returns: whether no request in this process has received the result or is about to.
  func endResuming(_ key: DownloadKey) -> Bool {
    state.withLock { state in
      state.entries[key]?.isResumed = false
      guard let entry = state.entries[key] else { return false }
      return entry.isIdle && !entry.wasServed && !state.isStopped
    }
  }

  /// Records that the resumed transfer has failed but may succeed later.
  ///
  /// - Returns: false if a request has received the result in the meantime.
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

  /// Takes the lock that shows other processes that this one is alive. It is created with the first row: most
  /// processes have none.
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
