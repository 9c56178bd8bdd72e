/// An error that the server answered: the body of every unsuccessful answer.
///
/// ```swift
/// do { try await zdc.localUserManager?.createAccount() }
/// catch let error as ZDCServerError where error.code == .inviteRequired { askForInvitation() }
/// ```
///
/// `message` is for people and never contains a name, key or content, if the server is honest. Programs use `code`.
public struct ZDCServerError: Error, Codable, Sendable, Hashable {
  /// Why the server refused the request.
  public var code: Code
  /// Text of the server for people. Show it as text only: it is not verified.
  public var message: String
  /// Whether the same request may succeed later.
  public var retryable: Bool
  /// The time to wait before the next try, in milliseconds.
  ///
  /// ```swift
  /// do {
  ///   try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// } catch let error as ZDCServerError where error.retryable {
  ///   print("try again in", error.retryAfterMs ?? 1_000, "ms")
  /// }
  /// ```
  public var retryAfterMs: UInt64?
  /// The broken rule, with `refused`.
  public var security: ZDCSecurityError.Code?
  /// The account's quota, with `quotaExceeded`.
  ///
  /// ```swift
  /// do {
  ///   try await session.syncManager.syncUntilIdle(localUserID: user.uuid)
  /// } catch let error as ZDCServerError where error.code == .quotaExceeded {
  ///   if let quota = error.quota { show(["\(quota.used) of \(quota.limit) bytes are used"]) }
  /// }
  /// ```
  public var quota: Quota?
  /// The member whom the refusal concerns, with `recipientKeyStale` and `accountClosed`.
  package var user: UserID?

  /// The account's quota, in bytes of sealed content.
  ///
  /// ```swift
  /// let quota = ZDCServerError.Quota(used: 900, limit: 1_000, needed: 200)  // for a preview
  /// ```
  public struct Quota: Codable, Sendable, Hashable {
    /// Bytes used by data that cannot be released.
    public var used: UInt64
    /// Bytes that the account may use.
    public var limit: UInt64
    /// Bytes that the refused request would have added.
    public var needed: UInt64

    /// Creates the figures of a quota.
    public init(used: UInt64, limit: UInt64, needed: UInt64) {
      self.used = used
      self.limit = limit
      self.needed = needed
    }
  }

  /// Creates an error answer, as a server makes it.
  public init(
    _ code: Code, _ message: String, retryable: Bool = false, retryAfterMs: UInt64? = nil,
    security: ZDCSecurityError.Code? = nil, quota: Quota? = nil
  ) {
    self.code = code
    self.message = message
    self.retryable = retryable
    self.retryAfterMs = retryAfterMs
    self.security = security
    self.quota = quota
  }

  /// Returns the same error about this member.
  package func with(user: UserID) -> ServerError {
    var error = self
    error.user = user
    return error
  }

  /// The HTTP status for this error.
  package var status: Int {
    switch code.name {
    case .invalidRequest: 400
    case .unauthorized: 401
    case .forbidden, .registrationClosed, .inviteRequired, .accountClosed, .accountSuspended: 403
    case .notFound: 404
    case .methodNotAllowed: 405
    case .headMismatch, .conflict, .handleTaken, .zoneExists, .blobIncomplete: 409
    case .gone, .blobGone: 410
    case .limitExceeded: 413
    case .rangeNotSatisfiable: 416
    case .refused: 422
    case .unsupportedProtocol: 426
    case .tooManyRequests, .zoneBusy: 429
    case .internalError: 500
    case .shuttingDown: 503
    case .quotaExceeded, .storageFull: 507
    }
  }
}

/// The name inside the package.
package typealias ServerError = ZDCServerError

extension ZDCServerError: CustomStringConvertible {
  /// What failed and what to do about it. It holds nothing of the server's text, so it may be logged.
  public var description: String {
    guard let security else { return "the server answered \(code): \(code.explanation)" }
    return "the server answered \(code) (\(security)): \(code.explanation)"
  }
}
