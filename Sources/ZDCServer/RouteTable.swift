internal import HTTPTypes
internal import Hummingbird
internal import ZDCProtocol

/// All routes on one screen. With a body limit of zero, the route reads no body, or streams it and checks its length
/// itself (parts).
enum RouteTable {
  static let all: [Route] = [
    Route(.get, Routes.health, .open, HealthRoutes.live),
    Route(.get, Routes.ready, .open, HealthRoutes.ready),
    Route(.get, Routes.metrics, .open, HealthRoutes.metrics),
    Route(.get, Routes.info, .open, HealthRoutes.info),

    Route(.post, Routes.accounts, .limited, body: registration, AccountRoutes.register),
    Route(.post, Routes.challenge, .limited, body: small, SessionRoutes.challenge),
    Route(.post, Routes.login, .limited, body: small, SessionRoutes.login),
    Route(.post, Routes.deviceLogin, .limited, body: small, SessionRoutes.deviceLogin),
    Route(.delete, Routes.session, .session, SessionRoutes.end),
    Route(.get, Routes.sessions, .session, SessionRoutes.list),
    Route(.delete, Routes.sessionOfDevice, .session, SessionRoutes.removeDevice),

    Route(.put, Routes.deviceLink, .limited, body: DeviceLinkOffer.byteCount, DeviceLinkRoutes.offer),
    Route(.get, Routes.deviceLink, .session, DeviceLinkRoutes.offered),
    Route(
      .put, Routes.deviceLinkAnswer, .session, body: Limits.deviceLinkAnswerBytes, DeviceLinkRoutes.answer),
    Route(.get, Routes.deviceLinkAnswer, .limited, DeviceLinkRoutes.answered),
    Route(.put, Routes.deviceLinkNonce, .limited, body: 32, DeviceLinkRoutes.reveal),
    Route(.get, Routes.deviceLinkNonce, .session, DeviceLinkRoutes.revealed),

    Route(.get, Routes.keyring, .session, AccountRoutes.keyring),
    Route(.post, Routes.links, .session, body: 2 * (Limits.linkBytes + Limits.keyringBytes), AccountRoutes.appendLink),
    Route(.get, Routes.audit, .session, AccountRoutes.audit),
    Route(.get, Routes.chain, .session, AccountRoutes.chain),
    Route(.post, Routes.chains, .session, body: 36 * Limits.aclEntries, AccountRoutes.chains),

    Route(.get, Routes.handles, .session, AccountRoutes.handles),

    Route(.put, Routes.tree, .session, body: Limits.commitRequestBytes, ZoneRoutes.createTree),
    Route(.get, Routes.zones, .session, ZoneRoutes.list),
    Route(
      .post, Routes.zonePages, .session, body: ZonePosition.byteCount * Limits.zonesPerRequest, ZoneRoutes.pages),
    Route(.put, Routes.membership, .session, MembershipRoutes.accept),
    Route(.delete, Routes.membership, .session, MembershipRoutes.end),
    Route(.get, Routes.events, .session, EventRoutes.stream),
    Route(.post, Routes.commits, .session, body: Limits.commitRequestBytes, ZoneRoutes.commit),
    Route(.get, Routes.zoneCommits, .session, ZoneRoutes.page),
    Route(.get, Routes.zoneState, .session, ZoneRoutes.state),
    Route(.post, Routes.records, .session, body: 48 * Limits.recordsPerRequest, ZoneRoutes.records),
    Route(.post, Routes.contents, .session, body: 32 * Limits.blobsPerRequest, ZoneRoutes.contents),
    Route(.post, Routes.kept, .session, body: 48 * Limits.recordsPerRequest, ZoneRoutes.kept),
    Route(.get, Routes.node, .session, ZoneRoutes.node),

    Route(.post, Routes.messages, .session, body: Limits.commitRequestBytes, InboxRoutes.deliver),
    Route(.get, Routes.inbox, .session, InboxRoutes.list),
    Route(
      .post, Routes.inboxEnvelopes, .session, body: MessageName.byteCount * Limits.recordsPerRequest, InboxRoutes.read),
    Route(.delete, Routes.inboxMessage, .session, InboxRoutes.remove),
    Route(.put, Routes.sender, .session, body: small, InboxRoutes.setSender),
    Route(.delete, Routes.sender, .session, InboxRoutes.forgetSender),

    Route(.get, Routes.content, .session, BlobRoutes.content),
    Route(.get, Routes.leafHashes, .session, BlobRoutes.leafHashes),
    Route(.get, Routes.leafProof, .session, BlobRoutes.leafProof),
    Route(.post, Routes.blobs, .session, body: small, BlobRoutes.ticket),
    Route(.put, Routes.blobPart, .session, BlobRoutes.putPart),
    Route(.get, Routes.blobParts, .session, BlobRoutes.parts),
    Route(.post, Routes.blobComplete, .session, BlobRoutes.complete),
    Route(.delete, Routes.blob, .session, BlobRoutes.abort),
  ]

  private static let small = 16 << 10
  /// Fits a genesis link, a keyring and four trunks, in base64.
  private static let registration = 128 << 10

  static func router(for core: ServerCore, _ routes: [Route] = all) -> Router<ServerContext> {
    let router = Router(context: ServerContext.self)
    router.add(middleware: LogRequests(core: core, displayPath: displayPath(of: routes)))
    router.add(middleware: RenderErrors(core: core, methods: { methods(of: $0, in: routes) }))
    for route in routes {
      router.on(RouterPath(positional(route.path)), method: route.method) { request, context in
        try refuseEncoding(of: request)
        let session = try await Authenticate.check(route.auth, request, context, core)
        return try await route.handler(
          Call(request: request, context: context, core: core, route: route, session: session))
      }
    }
    return router
  }

  /// Refuses content encodings. Sealed data does not compress, and a small compressed body could expand into a large
  /// one.
  private static func refuseEncoding(of request: Request) throws {
    for value in request.headers[values: .contentEncoding] where value.lowercased() != "identity" {
      throw ServerError(.invalidRequest, "content encodings are not supported")
    }
  }

  /// Names each path parameter by its position: the router requires one name per position, regardless of what follows.
  static func positional(_ path: String) -> String {
    path.split(separator: "/").enumerated()
      .map { $1.first == "{" ? "/{\($0)}" : "/\($1)" }.joined()
  }

  /// The paths as written here, for logs and metrics.
  private static func displayPath(of routes: [Route]) -> [String: String] {
    Dictionary(routes.map { (positional($0.path), $0.path) }, uniquingKeysWith: { first, _ in first })
  }

  /// Returns the methods under which routes have this path.
  private static func methods(of path: String, in routes: [Route]) -> [HTTPRequest.Method] {
    let parts = path.split(separator: "/", omittingEmptySubsequences: true)
    return routes.filter { route in
      let pattern = route.path.split(separator: "/")
      return pattern.count == parts.count && zip(pattern, parts).allSatisfy { $0.first == "{" || $0 == $1 }
    }.map(\.method)
  }
}
