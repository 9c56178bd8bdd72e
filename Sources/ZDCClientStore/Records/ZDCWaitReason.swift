/// Why an operation waits.
///
/// These reasons end without the app or the user:
///
/// - `ready`: the next push sends it.
/// - `waitingForOperation`: it depends on another operation.
/// - `uploading`, `inFlight`: it is being sent.
/// - `offline`: the server cannot be reached.
/// - `backoff`, `serverSaid`: an attempt has failed; another one follows.
/// - `notPulledYet`: the cloud has a newer version of the node, which this device has not read.
/// - `unreadable`: this device cannot open the cloud's version; see ``ZDCUnreadableNode``.
///
/// These need the app or the user:
///
/// - `noDataFromApp`: the delegate threw when it was asked for the content, or its promise was rejected.
/// - `promisePending`: a ``ZDCDataPromise`` has not been answered.
/// - `conflictHeld`: another device changed the content. Merge, or skip the upload.
/// - `deletedRemotely`: another device deleted the node. Keep it or delete it.
/// - `overQuota`: the account has no room on the server.
/// - `paused`: pushes are paused; see ``ZDCSyncManager/pausePush(forLocalUserID:andAbortUploads:)``.
/// - `zoneFrozen`: the server showed an impossible state; see ``ZDCFrozenZone``.
/// - `exhausted`: the node cannot be changed any more. Copy it, and delete it.
///
/// ```swift
/// for operation in cloud.explainQueue() where operation.reason == .overQuota {
///   show(["No room on the server", operation.unblockedBy])
/// }
/// ```
public enum ZDCWaitReason: String, Sendable, Hashable, Codable, CaseIterable {
  case ready, waitingForOperation, backoff, offline, notPulledYet, paused, noDataFromApp, promisePending, conflictHeld
  case deletedRemotely, overQuota, serverSaid, zoneFrozen, uploading, inFlight, unreadable, exhausted, notAllowed

  /// The event that an operation waits for before it can be sent.
  public var unblockedBy: String {
    switch self {
    case .ready: "nothing: the next push sends it"
    case .waitingForOperation: "the end of another operation"
    case .backoff: "time: the framework retries automatically"
    case .offline: "a connection to the server"
    case .notPulledYet: "the next pull: the cloud has a newer version that this device has not read yet"
    case .paused: "resumePush"
    case .noDataFromApp: "the app: queueDataUpload once it has the content, or a relaunch"
    case .promisePending: "the app: fulfill or reject the promise"
    case .conflictHeld: "the app: didMergeData(withETag:) or skipDataUploads"
    case .deletedRemotely: "the app: queueDataUpload or insertNode to keep the node, or delete it"
    case .overQuota: "room in the account"
    case .serverSaid: "the server: the framework retries from time to time"
    case .zoneFrozen: "a decision about the security error of the tree"
    case .uploading: "nothing: its content is being uploaded"
    case .inFlight: "the server's answer"
    case .unreadable: "a version that this device can read, by another device or a newer app; or new content"
    case .exhausted: "nothing: copy the node, and delete it"
    case .notAllowed:
      "another access list, by a member who may change it, or nothing if the owner has closed their account; or revert "
        + "the change"
    }
  }
}

extension ZDCWaitReason {
  package init(_ reason: OperationRow.Reason) {
    switch reason {
    case .ready: self = .ready
    case .waitingForOperation: self = .waitingForOperation
    case .backoff: self = .backoff
    case .offline: self = .offline
    case .notPulledYet: self = .notPulledYet
    case .paused: self = .paused
    case .noDataFromApp: self = .noDataFromApp
    case .promisePending: self = .promisePending
    case .conflictHeld: self = .conflictHeld
    case .deletedRemotely: self = .deletedRemotely
    case .overQuota: self = .overQuota
    case .serverSaid: self = .serverSaid
    case .zoneFrozen: self = .zoneFrozen
    case .uploading: self = .uploading
    case .inFlight: self = .inFlight
    case .unreadable: self = .unreadable
    case .exhausted: self = .exhausted
    case .notAllowed: self = .notAllowed
    }
  }
}
