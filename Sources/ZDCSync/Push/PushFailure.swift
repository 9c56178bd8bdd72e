internal import ZDCProtocol

/// What a failed request means for the queue. One switch, each case with its reason; pure.
enum PushFailure: Equatable {
  /// Nobody knows whether the server has it: the same bytes again.
  case unknownOutcome
  /// The server did not take it and may take it later.
  case retryLater(afterMs: UInt64)
  /// The content has to be sent again: the server no longer has a blob that the commit names.
  case contentLost
  /// The server refuses these operations. Which of them, a smaller commit will tell.
  case refused(ServerError.Code)
  case overQuota(afterMs: UInt64)
  /// The account cannot push any more.
  case noAccess(ServerError.Code)

  package init(_ error: ServerError) {
    let pause = error.retryAfterMs ?? 0
    switch error.code {
    case .internalError, .shuttingDown, .storageFull:
      // A 500 may come after the commit was stored.
      self = error.code == .internalError ? .unknownOutcome : .retryLater(afterMs: max(pause, 1_000))
    case .tooManyRequests, .zoneBusy: self = .retryLater(afterMs: pause)
    case .blobGone, .blobIncomplete: self = .contentLost
    case .quotaExceeded: self = .overQuota(afterMs: max(pause, 60_000))
    case .unauthorized, .forbidden, .accountClosed, .unsupportedProtocol, .registrationClosed, .inviteRequired:
      self = .noAccess(error.code)
    case .headMismatch, .conflict, .zoneExists, .gone: self = .retryLater(afterMs: pause)
    case .invalidRequest, .notFound, .refused, .limitExceeded, .methodNotAllowed, .rangeNotSatisfiable:
      self = .refused(error.code)
    }
  }
}
