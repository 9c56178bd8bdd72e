internal import Hummingbird
internal import Logging
internal import NIOCore
internal import ZDCProtocol

#if canImport(FoundationEssentials)
  internal import FoundationEssentials
#else
  internal import Foundation
#endif

/// One request on its way through a route: the only argument of handlers.
struct Call: Sendable {
  let request: Request
  let context: ServerContext
  let core: ServerCore
  let route: Route
  /// Nil on routes without authentication.
  let session: SessionRow?
  /// The request's share of the memory for bodies, held while it runs.
  let share: BodyShare

  init(request: Request, context: ServerContext, core: ServerCore, route: Route, session: SessionRow?) {
    self.request = request
    self.context = context
    self.core = core
    self.route = route
    self.session = session
    share = BodyShare(core.bodies, of: Self.party(request, context, core, session))
  }

  private static func party(
    _ request: Request, _ context: ServerContext, _ core: ServerCore, _ session: SessionRow?
  ) -> BodyBudget.Party {
    if let session { return .user(session.user) }
    return .stranger(context.party(of: request, trusting: core.configuration.trustedProxies))
  }

  var now: UInt64 { core.now }
  var logger: Logger { core.logger(of: context) }

  /// The client's address, or the part of it that limits count by.
  var party: String { context.party(of: request, trusting: core.configuration.trustedProxies) }

  var user: UserID {
    get throws { try authenticated.user }
  }

  var authenticated: SessionRow {
    get throws {
      guard let session else { throw ServerError(.unauthorized, "no session") }
      return session
    }
  }

  /// Reads the whole body. A body whose stated length exceeds the limit is refused before any of it is buffered.
  func bytes() async throws -> [UInt8] {
    let limit = route.bodyLimit
    if let length = request.headers[.contentLength] {
      // The parser accepts any 64-bit number.
      guard let length = UInt64(length), length <= limit else { throw tooLong }
    }
    var bytes: [UInt8] = []
    do {
      for try await slice in request.body {
        guard bytes.count + slice.readableBytes <= limit else { throw tooLong }
        try share.take(slice.readableBytes)
        bytes.append(contentsOf: slice.readableBytesView)
      }
    } catch let error where !(error is ServerError || error is CancellationError) {
      throw ServerError(.invalidRequest, "the body is incomplete")
    }
    core.metrics.countBytes(in: bytes.count)
    return bytes
  }

  private var tooLong: ServerError {
    ServerError(.limitExceeded, "the body may have at most \(route.bodyLimit) bytes")
  }

  /// Returns a response body. A long one is sent slice by slice as its reader accepts it, and counts towards the budget
  /// until it is sent.
  ///
  /// - Throws: `tooManyRequests` if too many response bytes are already in transfer.
  func body(_ bytes: [UInt8]) throws -> ResponseBody {
    let buffer = ByteBuffer(bytes: bytes)
    guard bytes.count > Self.answerSlice else { return ResponseBody(byteBuffer: buffer) }
    let share = try answerShare(of: bytes.count)
    let channel = context.channel
    return ResponseBody(contentLength: bytes.count) { writer in
      var rest = buffer
      while let slice = rest.readSlice(length: min(Self.answerSlice, rest.readableBytes)), slice.readableBytes > 0 {
        try await writer.write(slice)
        try await channel.untilWritable()
      }
      withExtendedLifetime(share) {}
      try await writer.finish(nil)
    }
  }

  private static let answerSlice = 256 << 10

  /// Counts these bytes towards the budget for responses until the share is released.
  ///
  /// - Throws: `tooManyRequests` if too many response bytes are already in transfer.
  func answerShare(of count: Int) throws -> BodyShare {
    let share = BodyShare(core.answers, of: Self.party(request, context, core, session))
    try share.take(count)
    return share
  }

  /// Logs records that cannot be served. The client misses them and asks again; only the operator can help.
  func report(_ damaged: [RecordDamaged], in zone: ZoneID) {
    for damage in damaged {
      logger.error(
        "a stored record does not have its hash; stop the server and run zdc-server check",
        metadata: ["zone": "\(zone.root.text)", "node": "\(damage.name.node.text)"])
    }
  }

  func json<T: Decodable>(_ type: T.Type = T.self) async throws -> T {
    let body = try await bytes()
    guard JSONForm.isAcceptable(body) else {
      throw ServerError(.invalidRequest, "the JSON is nested too deeply, repeats a name, or has an escape in one")
    }
    do {
      return try JSONDecoder().decode(type, from: Data(body))
    } catch is DecodingError { throw ServerError(.invalidRequest, "the JSON body does not match the schema") }
  }

  /// Returns the path component at the position of `{name}` in the route.
  func parameter(_ name: String) -> String {
    let place = route.path.split(separator: "/").firstIndex { $0.dropFirst().dropLast() == name }
    return place.flatMap { context.parameters.get("\($0)") } ?? ""
  }

  func id<Role>(_ name: String) throws -> Bytes16<Role> {
    guard let id = Bytes16<Role>(text: parameter(name)) else { throw Self.unknownID }
    return id
  }

  func id<Role>(_ name: String) throws -> Bytes32<Role> {
    guard let id = Bytes32<Role>(text: parameter(name)) else { throw Self.unknownID }
    return id
  }

  private static let unknownID = ServerError(.notFound, "not a valid id")

  func zone() throws -> ZoneID { ZoneID(tree: try id("treeID"), root: try id("zoneRoot")) }

  /// Returns a number from the query; nil if it is not given.
  func number(_ name: Substring) throws -> UInt64? {
    guard let text = request.uri.queryParameters[name] else { return nil }
    guard let number = UInt64(text) else { throw ServerError(.invalidRequest, "\(name) is not a number") }
    return number
  }

  /// The position up to which the caller knows the changes in their zones; nil if not given.
  var position: FeedPosition? { request.uri.queryParameters["since"].map { FeedPosition(String($0)) } }

  func read<T: Sendable>(_ body: @escaping @Sendable (any MetadataReader) throws -> T) async throws -> T {
    try await core.reads.run(Self.party(request, context, core, session)) { try await core.metadata.read(body) }
  }

  func write<T: Sendable>(
    _ subjects: Set<WriteSubject>, _ body: @escaping @Sendable (any MetadataTransaction) throws -> T
  ) async throws -> T {
    try await core.writes.run(Self.party(request, context, core, session)) {
      try await core.metadata.write(subjects, body)
    }
  }
}
