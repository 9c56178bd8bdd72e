public import ZDCClientStore
public import ZDCProtocol

/// What the sync engine of a local user is doing; see ``ZDCSyncManager/statusUpdates``.
public enum ZDCSyncStatus: Sendable {
  case pullStarted(localUserID: String)
  /// `commits` that were new, and how many callbacks the app got for them.
  case pullFinished(localUserID: String, commits: Int, announced: Int)
  case pushStarted(localUserID: String)
  case pushFinished(localUserID: String, operations: Int)
  case pushPaused(localUserID: String)
  case pushResumed(localUserID: String)
  /// The event stream is open, and the pull after its start has ended; a pull that failed is reported on its own. From
  /// now on, changes of others arrive by themselves.
  case online(localUserID: String)
  /// The server cannot be reached. The engine tries again by itself; nothing is lost.
  case offline(localUserID: String)
  /// The server answers, and its event stream brings nothing: something in between holds events back, for example a
  /// proxy that buffers. The engine asks every 30 seconds until an event arrives.
  case eventsMissing(localUserID: String)
  /// Something failed. The engine goes on where it can; what waits is told by `explain`.
  case error(localUserID: String, any Error)
  /// What the server sent is not what an honest server sends. Also kept in the database.
  case security(localUserID: String, ZDCSecurityError)
}

extension ZDCSyncStatus {
  /// Whose engine it is; empty if it concerns all of them.
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

/// How much a pull brought.
public struct PullSummary: Sendable, Hashable {
  public var commits = 0
  public var records = 0
  public var announced = 0

  package static func += (a: inout PullSummary, b: PullSummary) {
    a.commits += b.commits
    a.records += b.records
    a.announced += b.announced
  }
}

/// How much a push sent, and how many operations wait for something else than their turn.
public struct PushSummary: Sendable, Hashable {
  public var commits = 0
  public var operations = 0
  public var waiting = 0
  /// Whether the app was told of conflicts, or of content that it did not give.
  package var calledApp = false
  /// Whether nothing was sent and another commit may be: the server refused this one.
  var triesAgain = false
  /// Whether nothing was queued any more afterwards.
  var isDrained = false
  /// Whether another push has something to do.
  var hasNext: Bool { commits > 0 || triesAgain }

  package static func += (a: inout PushSummary, b: PushSummary) {
    a.calledApp = a.calledApp || b.calledApp
    a.triesAgain = a.triesAgain || b.triesAgain
    a.isDrained = b.isDrained
    a.commits += b.commits
    a.operations += b.operations
    a.waiting += b.waiting
  }
}

/// The outcome of ``ZDCSyncManager/syncUntilQuiet(localUserID:)``.
public struct ZDCSyncSummary: Sendable, Hashable {
  public var pulled = PullSummary()
  public var pushed = PushSummary()
  /// What is queued at the end, by what it waits for. Empty if the server has everything.
  public var stillQueued: [ZDCWaitReason: Int] = [:]
  /// Trees that were neither pulled nor pushed, because the user has to decide.
  public var frozenZones: [ZDCFrozenZone] = []
  /// How many nodes this device could not read as they are in the cloud: see
  /// ``ZDCSyncManager/unreadableNodes(localUserID:limit:)``.
  public var unreadableNodes = 0
  /// Whether the server has all of this device's changes, and this device has read all that the server has.
  public var isComplete: Bool { stillQueued.isEmpty && frozenZones.isEmpty && unreadableNodes == 0 }
}
