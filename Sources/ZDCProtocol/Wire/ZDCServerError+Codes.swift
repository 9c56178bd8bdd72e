extension ZDCServerError {
  /// The kind of error. Later versions may add codes, so a `switch` needs a `default`.
  ///
  /// An answer with a code that this version does not know gets the code that fits its HTTP status.
  ///
  /// ```swift
  /// do {
  ///   let (user, words) = try await session.localUserManager.createAccount(invite: typed)
  ///   show(words + [user.displayName])
  /// } catch let error as ZDCServerError {
  ///   switch error.code {
  ///   case .inviteRequired, .registrationClosed: askForInvitation()
  ///   case .unsupportedProtocol: askForUpdate()
  ///   default: report(error)
  ///   }
  /// }
  /// ```
  public struct Code: ErrorCode, Hashable, Sendable, Codable, CustomStringConvertible {
    package enum Name: String, CaseIterable, Sendable {
      case invalidRequest, unauthorized, forbidden, notFound, headMismatch, conflict, zoneExists, refused
      case limitExceeded, quotaExceeded, tooManyRequests, zoneBusy, blobGone, blobIncomplete, gone
      case registrationClosed, inviteRequired, accountClosed, accountSuspended, handleTaken, storageFull
      case shuttingDown, internalError, unsupportedProtocol, methodNotAllowed, rangeNotSatisfiable
    }

    package let name: Name

    package init(_ name: Name) { self.name = name }

    /// Decodes a name of PROTOCOL 4.6, and throws if this version does not know it.
    public init(from decoder: any Decoder) throws { self = try Self.decode(from: decoder) }

    /// Encodes the name.
    public func encode(to encoder: any Encoder) throws { try encodeName(to: encoder) }

    /// The name in PROTOCOL 4.6, which is stable.
    public var description: String { name.rawValue }

    /// The request is malformed; the same request will fail again. Update the app, or report the defect.
    public static let invalidRequest = Self(.invalidRequest)
    /// The session has ended and could not be renewed, or the keys are not accepted. Log in again. If the words were
    /// changed on another device, log in with the new ones.
    public static let unauthorized = Self(.unauthorized)
    /// The account lacks the permission. Ask the owner of the data for access.
    public static let forbidden = Self(.forbidden)
    /// Unknown, or hidden from this caller. The answer does not reveal which. Sync, then try again.
    public static let notFound = Self(.notFound)
    /// The zone's head is not the commit's `prev`. The body of this answer is a page, not this object. Pull, then try
    /// again; the engine does.
    public static let headMismatch = Self(.headMismatch)
    /// A compare-and-swap on something other than a zone failed (identity chain, keyring, tree). Try again.
    public static let conflict = Self(.conflict)
    /// A zone with this ID exists and has another first commit. Sync, then try again.
    public static let zoneExists = Self(.zoneExists)
    /// A replay rule was broken; `security` names it. Do not send the change again.
    public static let refused = Self(.refused)
    /// The request, or what it would make the server do, is too large. Send less.
    public static let limitExceeded = Self(.limitExceeded)
    /// The account has no room left; `quota` has the figures. Delete something, or ask the server's operator.
    public static let quotaExceeded = Self(.quotaExceeded)
    /// The account or address sends too much. Wait for `retryAfterMs`, then try again.
    public static let tooManyRequests = Self(.tooManyRequests)
    /// Another device has the lease of a busy zone. Wait for `retryAfterMs`, then try again.
    public static let zoneBusy = Self(.zoneBusy)
    /// The server no longer has the content. Send it again; after a download, sync first.
    public static let blobGone = Self(.blobGone)
    /// Parts of an upload are missing. Send them, then try again.
    public static let blobIncomplete = Self(.blobIncomplete)
    /// A replaced record or content is no longer kept. Pull commits again.
    public static let gone = Self(.gone)
    /// The server accepts no new accounts. Ask its operator, or choose another server.
    public static let registrationClosed = Self(.registrationClosed)
    /// The server accepts new accounts by invitation only. Pass a valid `invite` to `createAccount(invite:)`.
    public static let inviteRequired = Self(.inviteRequired)
    /// The account is closed. It can be read until the server removes its data. Create another account to write.
    public static let accountClosed = Self(.accountClosed)
    /// The server's operator has suspended the account: it refuses logins. Nothing is lost. Ask the operator;
    /// queued changes are sent when the account is resumed.
    public static let accountSuspended = Self(.accountSuspended)
    /// Another user has the handle, or gave it up less than 30 days ago. Choose another one.
    public static let handleTaken = Self(.handleTaken)
    /// The server's disk is full. Queued changes stay queued and are sent later.
    public static let storageFull = Self(.storageFull)
    /// The server is stopping or restarting. Try again later.
    public static let shuttingDown = Self(.shuttingDown)
    /// The server failed. Its log has the reason. Try again later.
    public static let internalError = Self(.internalError)
    /// Server and framework have no protocol version in common. Update the older one.
    public static let unsupportedProtocol = Self(.unsupportedProtocol)
    /// The server does not support this request on this path. Update the older one of both.
    public static let methodNotAllowed = Self(.methodNotAllowed)
    /// The content has no such bytes. Download it from the start.
    public static let rangeNotSatisfiable = Self(.rangeNotSatisfiable)
  }
}

extension ZDCServerError.Code {
  /// What failed and what to do about it.
  public var explanation: String {
    switch name {
    case .invalidRequest: "the request is malformed; do not repeat it, and report the defect"
    case .unauthorized: "the session is not accepted; log in again, with the new words if they were changed"
    case .forbidden: "the account lacks the permission; ask the owner for access"
    case .notFound: "not found, or hidden from this account; sync, then try again"
    case .headMismatch: "another device was faster; pull, then try again"
    case .conflict: "another device was faster; try again"
    case .zoneExists: "the zone exists already; sync, then try again"
    case .refused: "a rule of the protocol is broken; do not send the same change again"
    case .limitExceeded: "too large for the server; send less"
    case .quotaExceeded: "the account has no room left; delete something, or ask the server's operator"
    case .tooManyRequests: "too many requests; wait, then try again"
    case .zoneBusy: "another device is writing; wait, then try again"
    case .blobGone: "the content is no longer on the server; sync, then try again"
    case .blobIncomplete: "parts of the upload are missing; send them, then try again"
    case .gone: "it was replaced and is no longer kept; sync, then try again"
    case .registrationClosed: "the server accepts no new accounts; ask its operator"
    case .inviteRequired: "the server asks for an invitation; ask its operator for one"
    case .accountClosed: "the account is closed; it can only be read; export what you need"
    case .accountSuspended: "the server's operator has suspended the account; nothing is lost; ask the operator"
    case .handleTaken: "another user has this handle, or had it in the last 30 days; choose another one"
    case .storageFull: "the server's disk is full; try again later"
    case .shuttingDown: "the server is stopping; try again later"
    case .internalError: "the server failed; try again later, and look into its log"
    case .unsupportedProtocol: "the versions do not match; update the older one"
    case .methodNotAllowed: "the server does not support the request; update the older one"
    case .rangeNotSatisfiable: "the content has no such bytes; download it from the start"
    }
  }
}
