package import Foundation
internal import GRDB
internal import Synchronization
package import ZDCClientStore
internal import ZDCCrypto

/// Keeps nodes' content and thumbnails, and users' avatars, sealed on this device: as a cache with a limit, or
/// persistently.
///
/// Its files are beside the database under random names. Their sealed descriptions are in the database, so that both
/// always agree, no matter when the process ends. Deleting a node deletes its files.
///
/// All calls are synchronous and may be made on any thread. Inside a transaction they are part of it. An import seals
/// on the calling thread, so import large files outside of a write transaction.
///
/// Look-ups do not throw. If the database fails, a look-up returns nil, the error goes to the log and the status
/// stream, and a surrounding transaction is poisoned.
///
/// To read the newest content of a node from this device, or else download and keep it:
///
/// ```swift
/// if let stored = session.diskManager.nodeData(node), stored.eTag == node.eTag_data, let file = stored.cryptoFile {
///   return try ZDCFileConversion.decryptCryptoFile(intoMemory: file)  // no request
/// }
/// let options = ZDCDownloadOptions()
/// options.cacheToDiskManager = true
/// let (_, file) = try await session.downloadManager.downloadNodeData(node, options: options)
/// return try ZDCFileConversion.decryptCryptoFile(intoMemory: file)
/// ```
///
/// ## Topics
/// ### Content of nodes
/// - ``importNodeData(_:for:)``
/// - ``nodeData(_:)``
/// ### Thumbnails
/// - ``importNodeThumbnail(_:for:)``
/// - ``nodeThumbnail(_:)``
/// ### Limits
/// - ``maxNodeDataCacheSize``
/// - ``defaultUserAvatarCacheExpiration``
/// ### Changes
/// - ``changes``
public final class ZDCDiskManager: Sendable {
  package let database: ZDCDatabaseConnection
  package let folder: DiskFolder
  package let holds: FileHolds
  /// The queue that deletes the files of removed rows, and does all slow work that no caller waits for.
  package let queue = DispatchQueue(label: "ZeroDarkCloud.disk", qos: .utility)
  /// Called after each step that may be followed by a crash.
  package let onStep: @Sendable (DiskStep) throws -> Void
  private let running = Mutex(Running())
  private let unposted = PendingDiskChanges()

  private struct Running {
    var observation: AnyDatabaseCancellable?
    var listener: Int?
    var readers: [Int: AsyncStream<Void>.Continuation] = [:]
    var isStopped = false
  }

  package init(
    database: ZDCDatabaseConnection, folder: URL, onStep: @escaping @Sendable (DiskStep) throws -> Void = { _ in }
  ) {
    self.database = database
    self.folder = DiskFolder(url: folder)
    self.onStep = onStep
    holds = FileHolds(self.folder)
  }

  package var disk: DiskState { database.context.disk }
  package var nowMs: UInt64 { database.context.clock() }

  // MARK: Running

  /// Cleans up after a process that was killed, and from then on after every commit.
  package func start() {
    let observation = DatabaseRegionObservation(tracking: Table("zdc_disk_garbage")).start(
      in: database.pool, onError: { [weak self] in self?.report($0) },
      onChange: { [weak self] _ in self?.enqueue { try $0.collectGarbage() } })
    holds.onFileRemoval { [weak self] in self?.enqueue { try $0.collectGarbage() } }
    let listener = disk.listen { [weak self] changes in self?.post(changes) }
    running.withLock { running in
      running.observation = observation
      running.listener = listener
    }
    enqueue { try $0.sweep() }
  }

  /// Stops background work. Call this before the database closes.
  package func stop() {
    let stopped = running.withLock { running in
      defer {
        running = Running()
        running.isStopped = true
      }
      return running
    }
    stopped.observation?.cancel()
    if let listener = stopped.listener { disk.endListening(listener) }
    for reader in stopped.readers.values { reader.finish() }
    finishPending()
    do { try flushUses() } catch { report(error) }
  }

  var isStopped: Bool { running.withLock { $0.isStopped } }

  /// Waits for work that earlier commits have started.
  package func finishPending() {
    queue.sync {}
  }

  package func enqueue(_ work: @escaping @Sendable (ZDCDiskManager) throws -> Void) {
    queue.async { [weak self] in
      guard let self, !self.isStopped else { return }
      do { try work(self) } catch { self.report(error) }
    }
  }

  package func report(_ error: any Error) {
    database.context.logFailure(error)
    database.context.changes.report(error)
  }

  /// Keeps at most one block waiting for the main queue, however many commits come before it runs.
  private func post(_ changes: ZDCDiskManagerChanges) {
    guard unposted.add(changes) else { return }
    DispatchQueue.main.async { [weak self, unposted] in
      guard let changes = unposted.take() else { return }
      NotificationCenter.default.post(
        name: .ZDCDiskManagerChanged, object: self, userInfo: [kZDCDiskManagerChanges: changes])
    }
  }

  /// The owners whose files are added, changed or removed from now on, in this process. A slow reader receives several
  /// changes as one.
  ///
  /// ```swift
  /// for await changes in session.diskManager.changes {
  ///   for nodeID in changes.changedNodeThumbnails { refreshRow(nodeID) }
  /// }
  /// ```
  public var changes: AsyncStream<ZDCDiskManagerChanges> {
    let pending = PendingDiskChanges()
    let (hints, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let disk = disk
    let listener = disk.listen { changes in
      pending.add(changes)
      continuation.yield()
    }
    continuation.onTermination = { [weak self] _ in
      disk.endListening(listener)
      self?.running.withLock { _ = $0.readers.removeValue(forKey: listener) }
    }
    let isStopped = running.withLock { running in
      if !running.isStopped { running.readers[listener] = continuation }
      return running.isStopped
    }
    if isStopped { continuation.finish() }
    return AsyncStream {
      for await _ in hints {
        if let changes = pending.take() { return changes }
      }
      return nil
    }
  }
}

/// The steps after which a crash may occur while a file is stored or deleted.
package enum DiskStep: Sendable, Hashable, CaseIterable {
  case fileBegun
  case fileWritten
  case fileSynced
  case rowWritten
  case committed
  case fileDeleted
  case garbageRemoved
}
