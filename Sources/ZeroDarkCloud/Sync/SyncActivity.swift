internal import Foundation

/// What one local user's engine is doing now, and who is told when that changes.
final class SyncActivity: Sendable {
  typealias Info = ZDCSyncStatusNotificationInfo

  private struct State {
    var isPulling = false
    var isPushing = false
    /// Whether the app was told that it has begun.
    var isPullShown = false
    var isPushShown = false
  }

  private let localUserID: String
  private let treeID: String
  private let post: @Sendable (Info) -> Void
  private let state = Locked(State())

  init(localUserID: String, treeID: String, post: @escaping @Sendable (Info) -> Void) {
    self.localUserID = localUserID
    self.treeID = treeID
    self.post = post
  }

  var isPulling: Bool { state.withLock { $0.isPulling } }
  /// Also while only uploads are under way.
  var isPushing: Bool { state.withLock { $0.isPushing || $0.isPushShown } }

  // MARK: Pulling

  func beginPull() { state.withLock { $0.isPulling = true } }

  func foundChanges() {
    let isNew = state.withLock { state in
      defer { state.isPullShown = true }
      return !state.isPullShown
    }
    if isNew { tell(.pullStarted) }
  }

  func endPull(_ result: ZDCPullResult) {
    let wasShown = state.withLock { state in
      defer { (state.isPulling, state.isPullShown) = (false, false) }
      return state.isPullShown
    }
    if wasShown { tell(.pullStopped, result) }
  }

  // MARK: Pushing

  func beginPush() { state.withLock { $0.isPushing = true } }

  func sends() {
    let isNew = state.withLock { state in
      defer { state.isPushShown = true }
      return !state.isPushShown
    }
    if isNew { tell(.pushStarted) }
  }

  func endPush(isUploading: Bool) {
    state.withLock { $0.isPushing = false }
    uploadsChanged(isUploading: isUploading)
  }

  /// The last upload may have ended outside of a push.
  func uploadsChanged(isUploading: Bool) {
    let hasStopped = state.withLock { state in
      guard state.isPushShown, !state.isPushing, !isUploading else { return false }
      state.isPushShown = false
      return true
    }
    if hasStopped { tell(.pushStopped) }
  }

  // MARK: Telling

  func tell(_ type: Info.Kind, _ result: ZDCPullResult? = nil) {
    post(Info(type, localUserID: localUserID, treeID: treeID, pullResult: result))
  }
}
