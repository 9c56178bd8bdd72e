package import ZDCProtocol

// Routes that need no session.
extension ServerConnection {
  /// The protocol generation that this package implements.
  static let protocolGeneration = 1

  /// Sends `GET /v1/info`.
  ///
  /// - Throws: `ZDCServerError` with `unsupportedProtocol` if the server no longer supports the protocol of this framework
  ///   version.
  package func info() async throws -> ServerInfo {
    let info = try await json(.get(Routes.info), as: ServerInfo.self)
    guard info.protocols.contains(Self.protocolGeneration) else {
      throw ServerError(.unsupportedProtocol, "the server no longer speaks this protocol; update the app")
    }
    return info
  }

  /// Sends `POST /v1/accounts` with a body that was created and stored earlier.
  package func register(_ body: [UInt8]) async throws -> RegisterResponse {
    try await json(.bytes(.post, Routes.accounts, body, type: TransportRequest.jsonType))
  }

  package func challenge(_ request: ChallengeRequest) async throws -> ChallengeResponse {
    try await json(.json(.post, Routes.challenge, request))
  }

  package func login(_ request: LoginRequest) async throws -> SessionResponse {
    try await json(.json(.post, Routes.login, request))
  }

  /// Sends `PUT /v1/device-links/{linkID}`. May be repeated.
  package func offerDevice(_ offer: [UInt8], as id: DeviceLinkID) async throws {
    _ = try await answer(
      to: .bytes(.put, Routes.path(Routes.deviceLink, id.text), offer), limit: Limits.jsonBytes)
  }

  /// Sends `PUT /v1/device-links/{linkID}/nonce`. May be repeated.
  package func revealNonce(_ nonce: DeviceLinkNonce, of id: DeviceLinkID) async throws {
    _ = try await answer(
      to: .bytes(.put, Routes.path(Routes.deviceLinkNonce, id.text), nonce.bytes), limit: Limits.jsonBytes)
  }

  /// Waits for the answer to a link for as long as the server holds the request.
  ///
  /// - Returns: Nil if there is none yet. Ask again.
  /// - Throws: `ZDCServerError` with `notFound` if the link has expired.
  package func deviceLinkAnswer(_ id: DeviceLinkID) async throws -> [UInt8]? {
    let answer = try await answer(
      to: .get(Routes.path(Routes.deviceLinkAnswer, id.text)), limit: Limits.deviceLinkAnswerBytes)
    return answer.status == 204 ? nil : answer.body
  }

  package func deviceLogin(_ request: DeviceLoginRequest) async throws -> SessionResponse {
    try await json(.json(.post, Routes.deviceLogin, request))
  }
}
