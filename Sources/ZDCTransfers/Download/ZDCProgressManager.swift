public import Foundation
package import ZDCSupport

/// The progress of uploads and downloads.
///
/// A `Progress` of this manager counts bytes, never runs backwards even if work is retried, and reaches its total when
/// the work is complete. It is the same object for as long as the work lasts. `totalUnitCount` and `completedUnitCount`
/// may be read on any thread. The manager exists before the database is unlocked.
///
/// ```swift
/// if let progress = zdc.progressManager.dataUploadProgress(forNodeID: node.uuid) {
///   print("\(Int(progress.fractionCompleted * 100)) %")
/// }
/// for await change in zdc.progressManager.changes where change.nodeID == node.uuid {
///   refreshCell()
/// }
/// ```
///
/// ## Topics
/// ### Downloads
/// - ``downloadProgress(forNodeID:)``
/// - ``dataDownloadProgress(forNodeID:)``
/// - ``metaDownloadProgress(forNodeID:components:)``
/// ### Uploads
/// - ``dataUploadProgress(forNodeID:)``
/// - ``uploadProgress(forOperationUUID:)``
/// ### All together
/// - ``uploadProgress(forLocalUserID:)``
/// - ``downloadProgress(forLocalUserID:)``
/// - ``changes``
public final class ZDCProgressManager: Sendable {
  package enum Key: Hashable, Sendable {
    case download(DownloadKey)
    /// By the operation's uuid.
    case upload(String)
  }

  package struct Entry: Sendable {
    /// Distinguishes the entry from an earlier one with the same key.
    package let id: Int
    package let meter = ProgressMeter()
    package var change: ZDCProgressManagerChanges
    /// Number of requests that wait for it. An upload that is not being sent at the moment has none.
    var holders = 0
    /// Identifies the entry in the total. It changes each time the transfer starts.
    package var turn = 0
    package var size: UInt64 = 1
    package var isActive: Bool { holders > 0 }
  }

  package struct State: Sendable {
    package var nextID = 0
    package var entries: [Key: Entry] = [:]
    /// Uploads of a node, in the order in which they began.
    package var uploads: [String: [String]] = [:]
    var totals: [Total: TotalMeter] = [:]
    /// The manager that adds a listener's completion to a download.
    package weak var downloads: ZDCDownloadManager?
  }

  struct Total: Hashable, Sendable {
    package var localUserID: String
    var isUpload: Bool
  }

  package let state = Locked(State())
  private let listeners = Broadcast<ZDCProgressManagerChanges>(limit: 1_000)

  package init() {}

  // MARK: Changes

  /// The transfers that begin or end from now on. A reader that does not keep up loses the oldest changes.
  public var changes: AsyncStream<ZDCProgressManagerChanges> {
    listeners.stream()
  }

  package func post(_ change: ZDCProgressManagerChanges) {
    listeners.send(change)
    NotificationCenter.default.post(
      name: .ZDCProgressListChangedNotification, object: self, userInfo: [kZDCProgressManagerChanges: change])
  }

  // MARK: Running transfers

  @discardableResult
  package func begin(_ key: Key, size: UInt64 = 1, _ change: @autoclosure () -> ZDCProgressManagerChanges) -> Entry {
    let (entry, isNew) = state.withLock { state in
      state.nextID += 1
      var entry = state.entries[key] ?? Entry(id: state.nextID, change: change())
      let isNew = !entry.isActive
      if isNew { entry.turn = state.nextID }
      entry.holders += 1
      entry.size = max(entry.size, size)
      state.entries[key] = entry
      if isNew { state.list(key, entry) }
      return (entry, isNew)
    }
    if isNew {
      total(of: entry.change).begin(entry.turn, fraction: entry.meter.fraction, size: entry.size) {
        // It may have ended in the meantime. Then nothing would remove it from the total.
        state.withLock { $0.entries[key].map { $0.isActive && $0.turn == entry.turn } ?? false }
      }
      post(entry.change)
    }
    return entry
  }

  package func report(_ key: Key, _ done: UInt64, of size: UInt64) {
    let entry = state.withLock { state in
      state.entries[key]?.size = max(1, size)
      return state.entries[key]
    }
    guard let entry, entry.isActive else { return }
    entry.meter.report(done, of: size)
    total(of: entry.change).report(entry.turn, fraction: entry.meter.fraction, size: entry.size)
  }

  package enum End {
    case done
    /// The transfer is not retried.
    case failed
    /// The transfer will be retried. Observers keep the same object.
    case waits
  }

  /// - Parameter id: nil for any entry.
  /// - Returns: whether the entry is kept for its next attempt.
  @discardableResult
  package func end(_ key: Key, _ end: End, id: Int? = nil) -> Bool {
    let ended = state.withLock { state -> (entry: Entry, wasActive: Bool)? in
      guard var entry = state.entries[key], id == nil || id == entry.id else { return nil }
      let wasActive = entry.isActive
      entry.holders = end == .done ? 0 : max(0, entry.holders - 1)
      let stays = entry.isActive || (end == .waits && entry.meter.isShown)
      state.entries[key] = stays ? entry : nil
      if !entry.isActive { state.unlist(key, entry) }
      return (entry, wasActive)
    }
    guard let (entry, wasActive) = ended, !entry.isActive else { return false }
    if end == .done { entry.meter.finish() }
    if wasActive {
      total(of: entry.change).end(entry.turn, hasSucceeded: end == .done)
      post(entry.change)
    }
    return end == .waits && entry.meter.isShown
  }

  private func total(of change: ZDCProgressManagerChanges) -> TotalMeter {
    total(Total(localUserID: change.localUserID, isUpload: change.progressType == .upload))
  }

  private func total(_ total: Total) -> TotalMeter {
    state.withLock { state in
      let meter = state.totals[total] ?? TotalMeter()
      state.totals[total] = meter
      return meter
    }
  }

  // MARK: Combined progress

  /// Returns the progress of all uploads of a user, from the start of the first until none is left; nil while none is
  /// in progress.
  ///
  /// Counts parts of the whole instead of bytes. Work that is added later takes a share of the remaining part.
  ///
  /// ```swift
  /// if let progress = zdc.progressManager.uploadProgress(forLocalUserID: user.uuid) {
  ///   print("uploading, \(Int(progress.fractionCompleted * 100)) %")  // of everything that is being sent
  /// }
  /// ```
  public func uploadProgress(forLocalUserID localUserID: String) -> Progress? {
    total(Total(localUserID: localUserID, isUpload: true)).progress
  }

  /// Returns the progress of all downloads of a user; see ``uploadProgress(forLocalUserID:)``.
  ///
  /// ```swift
  /// let all = zdc.progressManager.downloadProgress(forLocalUserID: user.uuid)
  /// ```
  public func downloadProgress(forLocalUserID localUserID: String) -> Progress? {
    total(Total(localUserID: localUserID, isUpload: false)).progress
  }

  package func progress(_ key: Key) -> Progress? {
    state.withLock { $0.entries[key].flatMap { $0.isActive ? $0.meter : nil } }?.progress
  }
}

extension ZDCProgressManager.State {
  fileprivate mutating func list(_ key: ZDCProgressManager.Key, _ entry: ZDCProgressManager.Entry) {
    guard case .upload(let operation) = key else { return }
    uploads[entry.change.nodeID, default: []].append(operation)
  }

  fileprivate mutating func unlist(_ key: ZDCProgressManager.Key, _ entry: ZDCProgressManager.Entry) {
    guard case .upload(let operation) = key else { return }
    uploads[entry.change.nodeID]?.removeAll { $0 == operation }
    if uploads[entry.change.nodeID]?.isEmpty == true { uploads[entry.change.nodeID] = nil }
  }
}

/// A `Progress` over all transfers of a kind. After the last transfer has ended, the next one starts a new `Progress`.
final class TotalMeter: Sendable {
  private typealias Aggregate = AggregateProgress<Int>

  private let aggregate = Locked(Aggregate())
  private let made = Locked<Progress?>(nil)

  /// The progress; nil while no transfer is in progress.
  package var progress: Progress? {
    // Avoids the other lock, which is held while the progress is set: an observer may ask for it.
    if let known = made.withLock({ $0 }) { return known }
    return aggregate.withLock { aggregate -> Progress? in
      guard !aggregate.isEmpty else { return nil }
      let completed = aggregate.completed
      return made.withLock { made -> Progress? in
        if let made { return made }
        let progress = Progress.steady()
        progress.totalUnitCount = Aggregate.units
        progress.completedUnitCount = completed
        made = progress
        return progress
      }
    }
  }

  /// - Parameter isActive: evaluated when ``end(_:hasSucceeded:)`` can no longer come first.
  package func begin(_ turn: Int, fraction: Double, size: UInt64, if isActive: () -> Bool) {
    change { aggregate in
      if isActive() { aggregate.report(turn, fraction: fraction, size: size) }
    }
  }

  /// Does nothing for a transfer that has ended.
  package func report(_ turn: Int, fraction: Double, size: UInt64) {
    change { aggregate in
      if aggregate.contains(turn) { aggregate.report(turn, fraction: fraction, size: size) }
    }
  }

  package func end(_ turn: Int, hasSucceeded: Bool) {
    change { $0.end(turn, hasSucceeded: hasSucceeded) }
  }

  private func change(_ body: (inout Aggregate) -> Void) {
    aggregate.withLock { aggregate in
      body(&aggregate)
      made.withLock { $0 }?.completedUnitCount = aggregate.completed
      guard aggregate.isEmpty else { return }
      aggregate = Aggregate()
      made.withLock { $0 = nil }
    }
  }
}
