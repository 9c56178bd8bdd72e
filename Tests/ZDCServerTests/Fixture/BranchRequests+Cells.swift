// The table of requests other than commits: each request, each role, each variant.
extension BranchRequests {
  enum Cell: Equatable {
    /// The status of the answer.
    case status(Int)
    /// The request cannot be sent in this variant.
    case absent(reason: String)
  }

  static func cell(_ request: Request, _ role: Role, _ variant: Variant) -> Cell {
    if let reason = absence(of: variant, request) { return .absent(reason: reason) }
    if role == .unauthenticated {
      return variant == .endedSession ? .absent(reason: "a request without a token has no session") : .status(401)
    }
    return switch variant {
    case .otherSignature: .status(otherSignature(request, role))
    case .endedSession: .status(401)
    case .otherPlace: .status(otherPlace(request))
    case .valid: .status(valid(request, role))
    case .repeated: .status(repeated(request, role))
    case .outdated: .status(outdated(request, role))
    case .otherSession: .status(otherSession(request, role))
    }
  }

  /// Why a variant of a request does not exist; nil if it does.
  private static func absence(of variant: Variant, _ request: Request) -> String? {
    switch (variant, request) {
    case (.valid, _), (.repeated, _), (.endedSession, _): nil
    case (_, .attach), (_, .attachFromOtherNode): nil
    case (.otherPlace, .appendLinkOfOwner): "the session says whose chain it is"
    case (_, .appendLinkOfOwner): nil
    case (.otherSignature, .sendMessage): "the signature is inside of the seal: only the recipient can check it"
    case (.otherSignature, _): "the request has no signature"
    case (.otherPlace, .keyring), (.otherPlace, .devices), (.otherPlace, .audit): "the session says whose it is"
    case (.otherPlace, _): nil
    case (.outdated, .log), (.outdated, .records), (.outdated, .kept), (.outdated, .content): nil
    case (.outdated, .leafHashes), (.outdated, .sendMessage): nil
    case (.outdated, .readInbox), (.outdated, .deleteMessage): "the valid one names a message that is not there"
    case (.outdated, _): "the request names no version"
    // The blob of a ticket belongs to the user who has asked for it.
    case (.otherSession, .ticket): nil
    case (.otherSession, _): "all of it is the sender's: it is the valid request of the other role"
    }
  }

  private static func valid(_ request: Request, _ role: Role) -> Int {
    switch request {
    // A former member reads up to the commit that removed them.
    case .log: role == .stranger ? 404 : 200
    case .state: role.isMember || role == .former ? 200 : 404
    case .records, .kept, .node, .content, .leafHashes: role.isMember ? 200 : 404
    case .ticket: role.mayWrite ? 201 : 404
    case .attach: role.isMember ? 200 : 410
    case .attachFromOtherNode: 410
    case .sendMessage, .chain, .keyring, .devices, .audit: 200
    case .listInbox, .readInbox: role == .owner ? 200 : 404
    case .deleteMessage, .decideAboutSender, .removeDeviceOfOwner: role == .owner ? 204 : 404
    // The link does not continue the chain of the session's user.
    case .appendLinkOfOwner: role == .owner ? 201 : 409
    }
  }

  private static func repeated(_ request: Request, _ role: Role) -> Int {
    switch (request, role) {
    case (.appendLinkOfOwner, .owner): 200
    // The first one has ended the session.
    case (.removeDeviceOfOwner, .owner): 401
    default: valid(request, role)
    }
  }

  private static func otherSignature(_ request: Request, _ role: Role) -> Int {
    // The server compares a link with the chain before it verifies the signature.
    request == .appendLinkOfOwner && role != .owner ? 409 : 422
  }

  private static func otherPlace(_ request: Request) -> Int {
    switch request {
    case .attach, .attachFromOtherNode: 410
    // The result in the answer is `notFound`.
    case .sendMessage: 200
    default: 404
    }
  }

  private static func outdated(_ request: Request, _ role: Role) -> Int {
    switch request {
    case .attach, .attachFromOtherNode, .appendLinkOfOwner: 409
    case .records, .content, .leafHashes: role.isMember ? 410 : 404
    // The answer says which versions are kept and which are not.
    case .log, .kept: valid(request, role)
    // The result in the answer is `recipientKeyStale`.
    default: 200
    }
  }

  private static func otherSession(_ request: Request, _ role: Role) -> Int {
    switch request {
    case .ticket: role.mayWrite ? 409 : 201
    case .appendLinkOfOwner: 409
    default: 403
    }
  }
}
