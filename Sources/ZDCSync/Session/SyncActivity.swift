internal import Foundation
internal import ZDCSupport

/// Tracks the activity of one local user's engine, and posts a notification when it changes.
final class SyncActivity: Sendable {
  typealias Info = ZDCSyncStatusNotificationInfo

  private struct State {
    /// The number of pulls running at the same time.
    var pulls = 0
    var pushes = 0
    /// The result of the first of these pulls that failed.
    var failure: ZDCPullResult?
    /// Whether the app was notified of the start.
    var isPullShown = false
    var isPushShown = false
  }

  private let localUserID: String
  private let treeID: String
  private let post: @Sendable (Info) -> Void
  private let state = Locked(State())

  package init(localUserID: String, treeID: String, post: @escaping @Sendable (Info) -> Void) {
    self.localUserID = localUserID
    self.treeID = treeID
    self.post = post
  }

  package var isPulling: Bool { state.withLock { $0.pulls > 0 } }
  /// Whether a push is running, including one that only has uploads left.
  package var isPushing: Bool { state.withLock { $0.pushes > 0 || $0.isPushShown } }

  // MARK: Pulling

  func beginPull() { state.withLock { $0.pulls += 1 } }

  func foundChanges() {
    let isNew = state.withLock { state in
      defer { state.isPullShown = true }
      return !state.isPullShown
    }
    if isNew { tell(.pullStarted) }
  }

  func endPull(_ result: ZDCPullResult) {
    let (wasShown, failure) = state.withLock { state in
      state.pulls -= 1
      if case .success = result {} else { state.failure = state.failure ?? result }
      guard state.pulls == 0 else { return (false, ZDCPullResult?.none) }
      defer { (state.isPullShown, state.failure) = (false, nil) }
      return (state.isPullShown, state.failure)
    }
    if wasShown { tell(.pullStopped, failure ?? result) }
  }

  // MARK: Pushing

  func beginPush() { state.withLock { $0.pushes += 1 } }

  package func sends() {
    let isNew = state.withLock { state in
      defer { state.isPushShown = true }
      return !state.isPushShown
    }
    if isNew { tell(.pushStarted) }
  }

  func endPush(isUploading: Bool) {
    state.withLock { $0.pushes -= 1 }
    uploadsChanged(isUploading: isUploading)
  }

  /// Updates the state after an upload. The last upload may end outside of a push.
  func uploadsChanged(isUploading: Bool) {
    let hasStopped = state.withLock { state in
      guard state.isPushShown, state.pushes == 0, !isUploading else { return false }
      state.isPushShown = false
      return true
    }
    if hasStopped { tell(.pushStopped) }
  }

  // MARK: Notifications

  package func tell(_ type: Info.Kind, _ result: ZDCPullResult? = nil) {
    post(Info(type, localUserID: localUserID, treeID: treeID, pullResult: result))
  }
}
