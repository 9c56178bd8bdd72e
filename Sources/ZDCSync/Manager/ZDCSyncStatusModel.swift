public import Foundation
public import Observation
internal import ZDCClientStore
internal import ZDCSupport

/// The state of a local user's sync for user interfaces. A view that reads a property is redrawn when the property
/// changes.
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
/// Follows ``ZDCSyncManager/syncStates(forLocalUserID:)`` until it is released or the framework is closed.
@MainActor @Observable public final class ZDCSyncStatusModel {
  /// Whether a pull or a push is running.
  public private(set) var isSyncing = false
  /// Whether a pull is running.
  public private(set) var isPulling = false
  /// Whether a push is running.
  public private(set) var isPushing = false
  /// See ``ZDCSyncManager/pausePush(forLocalUserID:andAbortUploads:)``.
  public private(set) var isPaused = false
  /// Whether the last attempt to reach the server failed.
  public private(set) var isOffline = false
  /// Whether the server can be reached, as far as this process knows.
  public private(set) var connection = ZDCSyncState.Connection.unknown
  /// The numbers of queued operations, by what they wait for.
  public private(set) var pending = ZDCSyncState.Pending()
  /// Trees that are neither pulled nor pushed until the user decides.
  public private(set) var frozenZones: [ZDCFrozenZone] = []
  /// The last failure, or nil once both a pull and a push have succeeded since.
  public private(set) var lastError: ZDCSyncFailure?
  /// The date of the last complete pull; see ``ZDCSyncState/lastSynced``.
  public private(set) var lastSynced: Date?
  /// Whether the model still follows the state. False once the framework is closed or the local user is removed.
  public private(set) var isFollowing = true

  @ObservationIgnored private let following = Locked<Task<Void, Never>?>(nil)

  /// Creates a model that follows the user's state from now on. ``isFollowing`` becomes false if the user is not local.
  ///
  /// Keep it as long as the view exists, and use one for all views of a user.
  ///
  /// ```swift
  /// let status = await ZDCSyncStatusModel(session.syncManager, localUserID: user.uuid)  // no await on the main actor
  /// ```
  ///
  /// - Parameters:
  ///   - manager: The manager of an unlocked database.
  ///   - localUserID: The user to follow.
  public init(_ manager: ZDCSyncManager, localUserID: String) {
    let states = manager.syncStates(forLocalUserID: localUserID)
    let task = Task { @MainActor [weak self] in
      do {
        for try await state in states {
          guard let self else { return }
          self.show(state)
        }
      } catch {
        // The local user or the database no longer exists, so there is nothing left to follow.
      }
      self?.isFollowing = false
    }
    following.withLock { $0 = task }
  }

  deinit {
    following.withLock { $0 }?.cancel()
  }

  /// Sets only properties that differ, because setting one redraws every view that reads it.
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
