internal import ZeroDarkCloud

/// A queued operation, reduced to what commands need.
struct QueuedOperation: Sendable, Hashable {
  var uuid: String
  var nodeUUID: String
  var kind: String
  /// A code: `ready`, `offline`, `backoff`, …
  var code: String
  /// The reason as human-readable text.
  var words: String
  /// An error code of the server or of the network.
  var detail: String?
  /// The number of failed attempts.
  var attempts = 0
  /// Whether only a change by the app or in the cloud can unblock it. Also true after three failed attempts.
  var isStuck: Bool
}

extension QueuedOperation {
  init(_ explanation: ZDCOperationExplanation) {
    uuid = explanation.uuid
    nodeUUID = explanation.nodeID
    kind = explanation.kind
    code = explanation.reason.rawValue
    words = WaitWords.text(explanation)
    detail = explanation.detail
    attempts = explanation.attempts
    switch explanation.reason {
    case .noDataFromApp, .conflictHeld, .deletedRemotely, .zoneFrozen, .overQuota, .paused, .notAllowed: isStuck = true
    default: isStuck = explanation.attempts >= 3
    }
  }
}

/// Texts for users of `zdc`: the reason that an operation is queued, and what to do.
enum WaitWords {
  static func text(_ explanation: ZDCOperationExplanation) -> String {
    if explanation.reason == .ready || explanation.reason == .backoff { return words(explanation) }
    let code = explanation.detail.map { "\(explanation.reason.rawValue): \($0)" } ?? explanation.reason.rawValue
    return "\(words(explanation)) (\(ShownName.text(code)))"
  }

  static func words(_ explanation: ZDCOperationExplanation) -> String {
    switch explanation.reason {
    case .ready, .backoff, .serverSaid: tried(explanation)
    case .waitingForOperation: "it waits for another queued change"
    case .offline: "the server cannot be reached; zdc sync sends it later"
    case .notPulledYet: "the cloud has a newer version; zdc sync reads it first"
    case .paused: "sending is paused"
    case .noDataFromApp, .promisePending:
      "its file is gone or cannot be read: put it again, or remove it with zdc rm"
    case .conflictHeld: "changed here and by another device: see zdc explain and zdc journal"
    case .deletedRemotely: "another device deleted it: put it again, or remove it with zdc rm"
    case .overQuota: "the account on the server has no room left: remove something, or ask the server's operator"
    case .zoneFrozen: "its tree is frozen: see zdc repair"
    case .unreadable: "its newest version in the cloud cannot be read here: put its content again, or see zdc status"
    case .exhausted: "it was changed too often while it was sent: put it under another name, then remove it"
    case .notAllowed: "the access list does not allow it: ask the owner of the tree, or revert the change"
    case .uploading: "its content is being sent"
    case .inFlight: "the server has not answered yet; zdc sync asks again"
    }
  }

  /// Prefers the server's last response to a plain "is retried", because it is more specific.
  private static func tried(_ explanation: ZDCOperationExplanation) -> String {
    let code = explanation.reason == .serverSaid ? explanation.detail : explanation.history.last?.code
    guard let code else { return "zdc sync sends it" }
    switch code {
    case "limitExceeded": return "too large for the server, or for a proxy in front of it"
    case "storageFull", "quotaExceeded": return "the server has no room left; zdc sync tries again (\(code))"
    default: return "the server rejected it: \(ShownName.text(code)); zdc sync tries again"
    }
  }
}
