/// An error on the wire: the body of every unsuccessful answer.
///
/// `message` is for people and never contains a name, key or content. Programs use `code`.
public struct ServerError: Error, Codable, Sendable, Hashable {
  public enum Code: String, Codable, Sendable, CaseIterable {
    /// The request is malformed; the same request will fail again.
    case invalidRequest
    case unauthorized
    case forbidden
    /// Unknown, or hidden from this caller. The answer does not reveal which.
    case notFound
    /// The zone's head is not the commit's `prev`. The body of this answer is a page, not this object.
    case headMismatch
    /// A compare-and-swap on something other than a zone failed (identity chain, keyring, tree).
    case conflict
    case zoneExists
    /// A replay rule was broken; `security` names it.
    case refused
    case limitExceeded
    case quotaExceeded
    case tooManyRequests
    /// Another device has the lease of a busy zone. Retry after `retryAfterMs`.
    case zoneBusy
    case blobGone
    case blobIncomplete
    /// A replaced record or content is no longer kept; pull commits again.
    case gone
    case registrationClosed
    case inviteRequired
    case accountClosed
    case storageFull
    case shuttingDown
    case internalError
    case unsupportedProtocol
    case methodNotAllowed
    case rangeNotSatisfiable
  }

  public var code: Code
  public var message: String
  /// Whether the same request may succeed later.
  public var retryable: Bool
  public var retryAfterMs: UInt64?
  /// The broken rule, with `refused`.
  public var security: ZDCSecurityError.Code?
  /// The account's quota, with `quotaExceeded`.
  public var quota: Quota?

  /// The account's quota, in bytes of sealed content.
  public struct Quota: Codable, Sendable, Hashable {
    /// Bytes used by data that cannot be released.
    public var used: UInt64
    public var limit: UInt64
    /// Bytes that the refused request would have added.
    public var needed: UInt64

    public init(used: UInt64, limit: UInt64, needed: UInt64) {
      self.used = used
      self.limit = limit
      self.needed = needed
    }
  }

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

  /// The HTTP status for this error.
  public var status: Int {
    switch code {
    case .invalidRequest: 400
    case .unauthorized: 401
    case .forbidden, .registrationClosed, .inviteRequired, .accountClosed: 403
    case .notFound: 404
    case .methodNotAllowed: 405
    case .headMismatch, .conflict, .zoneExists, .blobIncomplete: 409
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
