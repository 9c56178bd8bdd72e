internal import ZDCProtocol

/// The meaning of a failed request for the queue: a single switch with a reason for each case. Pure.
enum PushFailure: Equatable {
  /// The server may or may not have stored the commit, so the same bytes are sent again.
  case unknownOutcome
  /// The server did not accept the commit but may accept it later.
  case retryLater(afterMs: UInt64)
  /// The content must be sent again, because the server no longer has a blob that the commit names.
  case contentLost
  /// The server refuses some of these operations. Smaller commits show which ones.
  case refused(ServerError.Code)
  case overQuota(afterMs: UInt64)
  /// The account can no longer push.
  case noAccess(ServerError.Code)

  package init(_ error: ServerError) {
    let pause = error.retryAfterMs ?? 0
    switch error.code.name {
    case .internalError, .shuttingDown, .storageFull:
      // A 500 may be sent after the commit was stored.
      self = error.code == .internalError ? .unknownOutcome : .retryLater(afterMs: max(pause, 1_000))
    case .tooManyRequests, .zoneBusy: self = .retryLater(afterMs: pause)
    case .blobGone, .blobIncomplete: self = .contentLost
    case .quotaExceeded: self = .overQuota(afterMs: max(pause, 60_000))
    case .unauthorized, .forbidden, .accountClosed, .accountSuspended, .unsupportedProtocol, .registrationClosed,
      .inviteRequired:
      self = .noAccess(error.code)
    case .headMismatch, .conflict, .handleTaken, .zoneExists, .gone: self = .retryLater(afterMs: pause)
    case .invalidRequest, .notFound, .refused, .limitExceeded, .methodNotAllowed, .rangeNotSatisfiable:
      self = .refused(error.code)
    }
  }
}
