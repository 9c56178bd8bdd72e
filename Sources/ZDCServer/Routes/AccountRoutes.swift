internal import Hummingbird
internal import ZDCProtocol

/// Registration, and account data other than trees.
enum AccountRoutes {
  static func register(_ call: Call) async throws -> Response {
    let configuration = call.core.configuration
    guard configuration.effectiveRegistration != .closed else { throw Accounts.closed }
    let registration = try Accounts.Registration(try await call.json(RegisterRequest.self))
    let now = call.now
    let isNew = try await call.write([.account(registration.identity.userID)]) { tx in
      try Accounts.register(
        registration, mode: configuration.effectiveRegistration, invites: configuration.invites, now: now, in: tx)
    }
    return try .json(RegisterResponse(userID: registration.identity.userID), status: isNew ? .created : .ok)
  }

  static func keyring(_ call: Call) async throws -> Response {
    let user = try call.user
    guard let bytes = try await call.read({ try $0.keyring(of: user) }) else {
      throw ServerError(.notFound, "no keyring")
    }
    return try .octets(bytes, for: call)
  }

  static func appendLink(_ call: Call) async throws -> Response {
    let user = try call.user
    let device = try call.authenticated.device
    try call.core.takeWork(of: user)
    let request = try await call.json(AppendLinkRequest.self)
    // Signatures are verified before the write, because the store's only writer serves all users.
    guard let verify = try await call.read({ try Accounts.verify(request, user: user, in: $0) }) else {
      return Response(status: .ok)
    }
    let next = try verify()
    let (core, now) = (call.core, call.now)
    try await call.write([.account(user)]) { tx in
      guard try Accounts.append(next, user: user, device: device, now: now, in: tx) else { return }
      if next.isNewRoot { try core.coordination.announce(.allSessionsEnded(except: device, of: user), in: tx) }
      // Last: a link that is refused must not be in the list.
      let deletion: Deletion =
        next.isClosed
        ? .account(user, ms: now, links: try tx.links(of: user)) : .link(request, of: user, by: device, ms: now)
      try core.deletions?.note([deletion])
    }
    return Response(status: .created)
  }

  static func chain(_ call: Call) async throws -> Response {
    let user: UserID = try call.id("userID")
    return try .bundle(try await call.read { try Accounts.chain(of: user, in: $0) }, for: call)
  }

  static func chains(_ call: Call) async throws -> Response {
    let body = try await call.bytes()
    guard body.count % 36 == 0 else {
      throw ServerError(.invalidRequest, "expected a list of user ids and numbers of links")
    }
    var reader = ByteReader(body)
    var positions: [ChainPosition] = []
    while reader.remaining > 0 {
      positions.append(ChainPosition(user: try reader.read32(), count: try reader.readUInt32()))
    }
    let asked = positions
    return try .bundle(try await call.read { try Accounts.chains(after: asked, in: $0) }, for: call)
  }

  static func handles(_ call: Call) async throws -> Response {
    let user = try call.user
    try call.core.takeLookup(of: user)
    let asked = call.parameter("handle")
    guard let beginning = Handle.beginning(typed: asked), beginning == asked else {
      throw ServerError(.invalidRequest, "not the beginning of a handle: 3 to 32 characters")
    }
    return try .octets(try await call.read { try Accounts.handles(beginning: beginning, in: $0) }, for: call)
  }

  static func audit(_ call: Call) async throws -> Response {
    let user = try call.user
    try call.core.takeWork(of: user)
    let now = call.now
    let quotas = call.core.quotas
    return try .json(try await call.read { try Audit.report(for: user, quotas: quotas, now: now, in: $0) }, for: call)
  }
}
