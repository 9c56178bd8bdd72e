internal import Foundation
internal import Synchronization
internal import ZDCClientStore

/// The disk manager's limits, and the state that is not in its table: recent uses and the listeners to changes. There
/// is one per open database, because transactions need it.
package final class DiskState: Sendable {
  package struct Limits: Sendable {
    /// Maximum size of the cache in bytes, by kind. 0 disables the cache.
    package var maximum: [DiskKind: UInt64] = [
      .nodeData: 25 << 20, .nodeThumbnail: 5 << 20, .userAvatar: 5 << 20,
    ]
    /// Maximum time in the cache in milliseconds, by kind; no entry means no limit.
    package var lifetime: [DiskKind: UInt64] = [.userAvatar: 7 * 24 * 3_600_000]
  }

  package typealias Listener = @Sendable (ZDCDiskManagerChanges) -> Void

  private struct State {
    var limits = Limits()
    /// Uses that are not written to the table yet, by row.
    var uses: [Int64: UInt64] = [:]
    var lastUse: UInt64 = 0
    var nextListener = 0
    var listeners: [Int: Listener] = [:]
  }

  /// Number of uses to keep in memory before they are written. One write then replaces a write for each look-up.
  private static let usesInMemory = 256
  private let state = Mutex(State())

  package var limits: Limits { state.withLock { $0.limits } }

  func setMaximum(_ kind: DiskKind, _ bytes: UInt64) {
    state.withLock { $0.limits.maximum[kind] = bytes }
  }

  func setLifetime(_ kind: DiskKind, _ milliseconds: UInt64?) {
    state.withLock { $0.limits.lifetime[kind] = milliseconds }
  }

  // MARK: Last use

  /// Returns a number that is greater than all before, close to the clock's time.
  func nextUse(nowMs: UInt64) -> UInt64 {
    state.withLock { state in
      state.lastUse = max(nowMs, state.lastUse + 1)
      return state.lastUse
    }
  }

  /// Restores the last use after a launch: the clock may have been set back since the table was written.
  func continueUses(after used: UInt64) {
    state.withLock { $0.lastUse = max($0.lastUse, used) }
  }

  /// - Returns: whether enough uses have accumulated to write them.
  package func touch(_ row: Int64, nowMs: UInt64) -> Bool {
    state.withLock { state in
      state.lastUse = max(nowMs, state.lastUse + 1)
      state.uses[row] = state.lastUse
      return state.uses.count >= Self.usesInMemory
    }
  }

  var hasUses: Bool { state.withLock { !$0.uses.isEmpty } }

  func takeUses() -> [Int64: UInt64] {
    state.withLock { state in
      defer { state.uses = [:] }
      return state.uses
    }
  }

  // MARK: Changes

  /// Adds a listener. It is called after the commit, on the database's writer queue, before the write returns.
  package func listen(_ listener: @escaping Listener) -> Int {
    state.withLock { state in
      state.nextListener += 1
      state.listeners[state.nextListener] = listener
      return state.nextListener
    }
  }

  func endListening(_ id: Int) {
    // Frees the listener outside the lock.
    _ = state.withLock { $0.listeners.removeValue(forKey: id) }
  }

  package func announce(_ changes: ZDCDiskManagerChanges) {
    for listener in state.withLock({ Array($0.listeners.values) }) { listener(changes) }
  }
}

extension DatabaseContext {
  /// The disk manager's state that is not in its table.
  package var disk: DiskState { attachments.value { DiskState() } }
}
