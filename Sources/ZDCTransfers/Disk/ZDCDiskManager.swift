package import Foundation
internal import GRDB
internal import Synchronization
package import ZDCClientStore
internal import ZDCCrypto

/// Keeps contents and thumbnails of nodes, and users' avatars, on this device: sealed, as a cache with a limit or
/// persistently (seed 000).
///
/// Its files lie beside the database under random names; what they are stands sealed in the database, so that both
/// always agree, whenever the process ends. Deleting a node deletes its files.
///
/// All calls are synchronous and may be made on any thread, also inside a transaction: then they are part of it. An
/// import seals on the calling thread; large ones belong before the transaction.
///
/// Look-ups do not throw. If the database fails in one, it gives nil, the error goes to the log and the status stream,
/// and a transaction that it is part of is poisoned.
///
/// ## Topics
/// ### Contents of nodes
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
  /// Works off what transactions left to delete; everything slow that nobody waits for.
  package let queue = DispatchQueue(label: "ZeroDarkCloud.disk", qos: .utility)
  /// Called behind each step that a crash may follow.
  package let onStep: @Sendable (DiskStep) throws -> Void
  private let running = Mutex(Running())
  private let unposted = PendingDiskChanges()

  private struct Running {
    var observation: AnyDatabaseCancellable?
    var listener: Int?
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

  /// Clears up behind a process that was killed, and from then on behind every commit.
  package func start() {
    let observation = DatabaseRegionObservation(tracking: Table("zdc_disk_garbage")).start(
      in: database.pool, onError: { [weak self] in self?.report($0) },
      onChange: { [weak self] _ in self?.enqueue { try $0.collectGarbage() } })
    holds.whenDoomedFileGoes { [weak self] in self?.enqueue { try $0.collectGarbage() } }
    let listener = disk.listen { [weak self] changes in self?.post(changes) }
    running.withLock { running in
      running.observation = observation
      running.listener = listener
    }
    enqueue { try $0.sweep() }
  }

  /// Before the database closes.
  package func stop() {
    let (observation, listener) = running.withLock { running in
      running.isStopped = true
      defer { running.observation = nil }
      return (running.observation, running.listener)
    }
    observation?.cancel()
    if let listener { disk.endListening(listener) }
    finishPending()
    do { try flushUses() } catch { report(error) }
  }

  var isStopped: Bool { running.withLock { $0.isStopped } }

  /// Waits for what was begun behind earlier commits.
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

  /// One block waits for the main queue at a time, however many commits come before it runs.
  private func post(_ changes: ZDCDiskManagerChanges) {
    guard unposted.add(changes) else { return }
    DispatchQueue.main.async { [weak self, unposted] in
      guard let changes = unposted.take() else { return }
      NotificationCenter.default.post(
        name: .ZDCDiskManagerChanged, object: self, userInfo: [kZDCDiskManagerChanges: changes])
    }
  }

  /// Whose files come, change and go from now on, in this process. A slow reader gets several changes as one.
  public var changes: AsyncStream<ZDCDiskManagerChanges> {
    let pending = PendingDiskChanges()
    let (hints, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let disk = disk
    let listener = disk.listen { changes in
      pending.add(changes)
      continuation.yield()
    }
    continuation.onTermination = { _ in disk.endListening(listener) }
    return AsyncStream {
      for await _ in hints {
        if let changes = pending.take() { return changes }
      }
      return nil
    }
  }
}

/// What a crash may follow while a file is taken in or deleted.
package enum DiskStep: Sendable, Hashable, CaseIterable {
  case fileBegun
  case fileWritten
  case fileSynced
  case rowWritten
  case committed
  case fileDeleted
  case garbageRemoved
}
