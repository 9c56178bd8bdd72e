public import ZDCClientStore
public import ZDCProtocol

/// A status message of a local user's sync engine; see ``ZDCSyncManager/statusUpdates``.
///
/// ```swift
/// for await status in session.syncManager.statusUpdates where status.localUserID == user.uuid {
///   switch status {
///   case .offline: banner.isHidden = false
///   case .online: banner.isHidden = true
///   case .security(_, let error): report(error)
///   default: break
///   }
/// }
/// ```
public enum ZDCSyncStatus: Sendable {
  /// A pull has begun.
  case pullStarted(localUserID: String)
  /// A pull has ended, with the number of new `commits` and of callbacks `announced` to the app.
  case pullFinished(localUserID: String, commits: Int, announced: Int)
  /// A push has begun.
  case pushStarted(localUserID: String)
  /// A push has ended, with the number of queued `operations` that the server accepted.
  case pushFinished(localUserID: String, operations: Int)
  /// Pushes were paused; see ``ZDCSyncManager/pausePush(forLocalUserID:andAbortUploads:)``.
  case pushPaused(localUserID: String)
  /// Pushes were resumed.
  case pushResumed(localUserID: String)
  /// The event stream is open, and the pull after its start has ended; a failed pull is reported separately. From now
  /// on, changes by others arrive automatically.
  case online(localUserID: String)
  /// The server cannot be reached. The engine retries automatically, and no changes are lost.
  case offline(localUserID: String)
  /// The server answers requests, but its event stream delivers nothing, because an intermediary such as a buffering
  /// proxy holds events back. The engine polls every 30 seconds until an event arrives.
  case eventsMissing(localUserID: String)
  /// An operation failed. The engine continues where it can; `explain` describes the waiting operations.
  case error(localUserID: String, any Error)
  /// The server sent data that an honest server does not send. The error is also stored in the database.
  case security(localUserID: String, ZDCSecurityError)
}

extension ZDCSyncStatus {
  /// The user whose engine posted the status, or an empty string if it concerns all engines.
  public var localUserID: String {
    switch self {
    case .pullStarted(let user), .pushStarted(let user), .pushPaused(let user), .pushResumed(let user),
      .online(let user), .offline(let user), .eventsMissing(let user):
      user
    case .pullFinished(let user, _, _): user
    case .pushFinished(let user, _): user
    case .error(let user, _): user
    case .security(let user, _): user
    }
  }
}

/// The amount of data that a pull fetched.
///
/// ```swift
/// let summary = try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
/// print(summary.pulled.commits, "commits,", summary.pulled.announced, "nodes reported to the delegate")
/// ```
public struct ZDCPullSummary: Sendable, Hashable {
  /// Commits that were new to this device.
  public var commits = 0
  /// Records that were fetched.
  public var records = 0
  /// Callbacks that the app received.
  public var announced = 0

  package static func += (a: inout ZDCPullSummary, b: ZDCPullSummary) {
    a.commits += b.commits
    a.records += b.records
    a.announced += b.announced
  }
}

/// The amount of data that a push sent, and the number of operations that wait for something other than their turn.
///
/// ```swift
/// let summary = try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
/// print(summary.pushed.operations, "changes sent,", summary.pushed.waiting, "still queued")
/// ```
public struct ZDCPushSummary: Sendable, Hashable {
  /// Commits that the server accepted.
  public var commits = 0
  /// Queued operations that these commits finished.
  public var operations = 0
  /// Operations that wait for something other than their turn.
  public var waiting = 0
  /// Whether the app was notified of conflicts, or of content that it did not provide.
  package var calledApp = false
  /// Whether operations were queued in other zones, into which nodes move.
  var changedQueue = false
  /// Whether nothing was sent but another commit may succeed, because the server refused this one.
  var triesAgain = false
  /// Whether the queue was empty afterwards.
  var isDrained = false
  /// Whether another push may have work to do.
  var hasNext: Bool { commits > 0 || triesAgain }

  package static func += (a: inout ZDCPushSummary, b: ZDCPushSummary) {
    a.calledApp = a.calledApp || b.calledApp
    a.changedQueue = a.changedQueue || b.changedQueue
    a.triesAgain = a.triesAgain || b.triesAgain
    a.isDrained = b.isDrained
    a.commits += b.commits
    a.operations += b.operations
    a.waiting += b.waiting
  }
}

/// The outcome of ``ZDCSyncManager/syncUntilIdle(localUserID:)``.
///
/// ```swift
/// let summary = try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
/// for (reason, count) in summary.stillQueued { print(count, "wait for", reason.unblockedBy) }
/// ```
public struct ZDCSyncSummary: Sendable, Hashable {
  /// The result of the pulls.
  public var pulled = ZDCPullSummary()
  /// The result of the pushes.
  public var pushed = ZDCPushSummary()
  /// The operations still queued at the end, by what they wait for. Empty if the server has everything.
  ///
  /// ```swift
  /// let summary = try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// for (reason, count) in summary.stillQueued { print(count, "wait for:", reason.unblockedBy) }
  /// ```
  public var stillQueued: [ZDCWaitReason: Int] = [:]
  /// Trees that were neither pulled nor pushed, because the user must decide.
  public var frozenZones: [ZDCFrozenZone] = []
  /// The number of nodes whose version in the cloud this device could not read: see
  /// ``ZDCSyncManager/unreadableNodes(localUserID:limit:)``.
  public var unreadableNodes = 0
  /// Whether the server has all of this device's changes, and this device has read everything on the server.
  ///
  /// ```swift
  /// let summary = try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// if !summary.isComplete { print(summary.stillQueued) }
  /// ```
  public var isComplete: Bool { stillQueued.isEmpty && frozenZones.isEmpty && unreadableNodes == 0 }
}
