package import ZDCProtocol

extension ServerAPI {
  /// Downloads the sealed keyring.
  package func keyring() async throws -> [UInt8] {
    try await answer(to: .get(Routes.keyring), limit: Limits.keyringBytes).body
  }

  /// Downloads a user's identity chain: the bundle as received, not yet verified.
  package func chain(of user: UserID) async throws -> [UInt8] {
    let request = TransportRequest.get(Routes.path(Routes.chain, user.text))
    return try requireBundle(try await answer(to: request, limit: Limits.chainBundleBytes)).body
  }

  /// Downloads the links after these positions in several users' chains: the bundle as received, not yet verified. It
  /// may be incomplete, and has no links of users that the server does not know.
  package func chains(after positions: [ChainPosition]) async throws -> [UInt8] {
    var body = ByteWriter(capacity: 36 * positions.count)
    for position in positions {
      body.append(position.user)
      body.append(position.count)
    }
    let request = TransportRequest.bytes(.post, Routes.chains, body.bytes)
    return try requireBundle(try await answer(to: request, limit: Self.bundleBytes)).body
  }

  /// Returns who has the handles that begin with a text, as the server says.
  package func handles(beginning text: String) async throws -> [HandleList.Entry] {
    let answer = try await answer(to: .get(Routes.path(Routes.handles, text)), limit: HandleList.byteCount)
    return try HandleList.read(answer.body, beginning: text)
  }

  package func appendLink(_ request: AppendLinkRequest) async throws {
    _ = try await answer(to: .json(.post, Routes.links, request), limit: Limits.jsonBytes)
  }

  /// Creates another app's trunks on an existing account. `bundle`: the items of four births in trunk order.
  package func createTree(_ appTreeID: String, bundle: [UInt8]) async throws -> ZoneList {
    let path = Routes.path(Routes.tree, Self.escaped(appTreeID))
    return try await json(.bytes(.put, path, bundle, type: Bundle.mediaType))
  }

  /// Returns everything that the server holds for this user, field by field.
  package func audit() async throws -> AuditReport {
    try await json(.get(Routes.audit))
  }

  package func sessions() async throws -> SessionList {
    try await json(.get(Routes.sessions))
  }

  /// Ends this session. The server keeps the device.
  package func endSession() async throws {
    _ = try await answer(to: TransportRequest(.delete, Routes.session), limit: Limits.jsonBytes)
    try await session.forget()
  }

  /// Removes a device and its sessions from the server.
  package func endSessions(of device: DeviceID) async throws {
    let path = Routes.path(Routes.sessionOfDevice, device.text)
    _ = try await answer(to: TransportRequest(.delete, path), limit: Limits.jsonBytes)
  }

  /// Percent-encodes the name of an app's tree, which may contain any character. Unreserved characters stay as they
  /// are.
  private static func escaped(_ text: String) -> String {
    text.utf8.map { byte in
      let isPlain = byte < 0x80 && (Character(Unicode.Scalar(byte)).isLetter || (48...57).contains(byte))
      let sign = isPlain || "-._~".utf8.contains(byte)
      return sign ? String(Unicode.Scalar(byte)) : "%" + hexadecimal([byte]).uppercased()
    }.joined()
  }
}
