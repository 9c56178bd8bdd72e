internal import Foundation
internal import Synchronization
internal import ZDCClientStore

/// What the disk manager's files may take, and what it knows that is not in its table: what was used since, and who is
/// to be told of changes. One for each opened database, because transactions need it.
package final class DiskState: Sendable {
  package struct Limits: Sendable {
    /// In bytes, by kind. 0: nothing is cached.
    package var maximum: [DiskKind: UInt64] = [
      .nodeData: 25 << 20, .nodeThumbnail: 5 << 20, .userAvatar: 5 << 20,
    ]
    /// In milliseconds; nil: none.
    package var lifetime: [DiskKind: UInt64] = [.userAvatar: 7 * 24 * 3_600_000]
  }

  package typealias Listener = @Sendable (ZDCDiskManagerChanges) -> Void

  private struct State {
    var limits = Limits()
    /// Uses that are not in the table yet, by row.
    var uses: [Int64: UInt64] = [:]
    var lastUse: UInt64 = 0
    var nextListener = 0
    var listeners: [Int: Listener] = [:]
  }

  /// As many uses are kept in memory before they are written: one write in place of one for each look-up.
  private static let usesInMemory = 256
  private let state = Mutex(State())

  package var limits: Limits { state.withLock { $0.limits } }

  func setMaximum(_ kind: DiskKind, _ bytes: UInt64) {
    state.withLock { $0.limits.maximum[kind] = bytes }
  }

  func setLifetime(_ kind: DiskKind, _ milliseconds: UInt64?) {
    state.withLock { $0.limits.lifetime[kind] = milliseconds }
  }

  // MARK: Uses

  /// A number that is later than all before, near the clock's.
  func nextUse(nowMs: UInt64) -> UInt64 {
    state.withLock { state in
      state.lastUse = max(nowMs, state.lastUse + 1)
      return state.lastUse
    }
  }

  /// After a launch: the clock may have been put back since the table was written.
  func continueUses(after used: UInt64) {
    state.withLock { $0.lastUse = max($0.lastUse, used) }
  }

  /// - Returns: whether there are so many by now that they ought to be written.
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

  /// Told after the commit, on the database's writer queue, before the write returns.
  package func listen(_ listener: @escaping Listener) -> Int {
    state.withLock { state in
      state.nextListener += 1
      state.listeners[state.nextListener] = listener
      return state.nextListener
    }
  }

  func endListening(_ id: Int) {
    // Freed outside of the lock.
    _ = state.withLock { $0.listeners.removeValue(forKey: id) }
  }

  package func announce(_ changes: ZDCDiskManagerChanges) {
    for listener in state.withLock({ Array($0.listeners.values) }) { listener(changes) }
  }
}

extension DatabaseContext {
  /// What the disk manager knows beside its table.
  package var disk: DiskState { attachments.value { DiskState() } }
}
