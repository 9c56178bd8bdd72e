public import Foundation
public import Observation
internal import ZDCClientStore
internal import ZDCSupport

/// How a local user's sync stands, for user interfaces: a view that reads a property is drawn again when it changes.
///
/// ```swift
/// struct SyncView: View {
///   let status: ZDCSyncStatusModel
///   var body: some View {
///     if status.isSyncing { ProgressView() }
///     Text("\(status.pending.total) changes wait")
///   }
/// }
/// ```
///
/// Follows ``ZDCSyncManager/syncStates(forLocalUserID:)`` until it is released or the framework closed.
@MainActor @Observable public final class ZDCSyncStatusModel {
  /// A pull or a push is under way.
  public private(set) var isSyncing = false
  public private(set) var isPulling = false
  public private(set) var isPushing = false
  /// See ``ZDCSyncManager/pausePush(forLocalUserID:andAbortUploads:)``.
  public private(set) var isPaused = false
  /// The server could not be reached last.
  public private(set) var isOffline = false
  public private(set) var connection = ZDCSyncState.Connection.unknown
  /// How many operations are queued, and what for.
  public private(set) var pending = ZDCSyncState.Pending()
  /// Trees that are neither pulled nor pushed until the user decides.
  public private(set) var frozenZones: [ZDCFrozenZone] = []
  /// What failed last; nil again once a pull and a push have gone through since.
  public private(set) var lastError: ZDCSyncFailure?
  /// When a pull of this process last went through.
  public private(set) var lastSynced: Date?
  /// Whether it still follows; false once the framework is closed, or the local user gone.
  public private(set) var isFollowing = true

  @ObservationIgnored private let following = Locked<Task<Void, Never>?>(nil)

  public init(_ manager: ZDCSyncManager, localUserID: String) {
    let states = manager.syncStates(forLocalUserID: localUserID)
    let task = Task { @MainActor [weak self] in
      do {
        for try await state in states {
          guard let self else { return }
          self.show(state)
        }
      } catch {
        // The local user is gone, or the database: there is nothing to follow any more.
      }
      self?.isFollowing = false
    }
    following.withLock { $0 = task }
  }

  deinit {
    following.withLock { $0 }?.cancel()
  }

  /// Sets what differs only: setting alone would redraw every view that reads it.
  private func show(_ state: ZDCSyncState) {
    set(\.isSyncing, state.isSyncing)
    set(\.isPulling, state.isPulling)
    set(\.isPushing, state.isPushing)
    set(\.isPaused, state.isPaused)
    set(\.isOffline, state.isOffline)
    set(\.connection, state.connection)
    set(\.pending, state.pending)
    set(\.frozenZones, state.frozenZones)
    set(\.lastError, state.lastError)
    set(\.lastSynced, state.lastSynced)
  }

  private func set<Value: Equatable>(_ property: ReferenceWritableKeyPath<ZDCSyncStatusModel, Value>, _ value: Value) {
    if self[keyPath: property] != value { self[keyPath: property] = value }
  }
}
