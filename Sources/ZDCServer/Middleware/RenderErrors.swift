internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore
internal import NIOHTTP1
internal import ZDCProtocol

/// The only place that turns an error into a response. Handlers just throw.
struct RenderErrors: RouterMiddleware {
  let core: ServerCore
  /// The methods under which routes have a path.
  let methods: @Sendable (String) -> [HTTPRequest.Method]

  func handle(
    _ request: Request, context: ServerContext,
    next: (Request, ServerContext) async throws -> Response
  ) async throws -> Response {
    do {
      guard !core.isStopping || request.uri.path == Routes.health || request.uri.path == Routes.ready else {
        throw ServerError(.shuttingDown, "the server is stopping", retryable: true, retryAfterMs: 1_000)
      }
      return try await next(request, context)
    } catch is CancellationError {
      throw CancellationError()
    } catch {
      return try render(translate(error, request, context), to: request)
    }
  }

  private func translate(_ error: any Error, _ request: Request, _ context: ServerContext) -> ServerError {
    let logger = core.logger(of: context)
    switch error {
    case let error as ServerError: return error
    case let error as ZDCSecurityError:
      let refusal = ServerError(
        .refused, "a protocol rule was violated: \(error.code.rawValue)", security: error.code)
      guard error.code == .recipientKeyStale, let user = error.user else { return refusal }
      return refusal.with(user: user)
    case is StorageFull:
      core.setFull(true)
      return ServerError(.storageFull, "the server's disk is full", retryable: true, retryAfterMs: 10_000)
    case let failure as BlobStoreFailure:
      logger.error("the blob store failed", metadata: ["reason": "\(failure)"])
      return ServerError(
        .internalError, "the server cannot reach its stored content", retryable: true, retryAfterMs: 5_000)
    case let damage as RecordDamaged:
      logger.error(
        "a stored record does not have its hash; stop the server and run zdc-server check",
        metadata: ["node": "\(damage.name.node.text)"])
      return ServerError(.internalError, "the server failed", retryable: true)
    case let error as HTTPError: return translate(error, request)
    case is HTTPParserError, is ChannelError, is IOError:
      return ServerError(.invalidRequest, "the connection closed before the end of the body")
    default:
      // The error's text may contain anything: the log gets only its type, the client nothing.
      logger.error("request failed", metadata: ["error": "\(type(of: error))"])
      logger.debug("request failed", metadata: ["detail": "\(error)"])
      return ServerError(.internalError, "the server failed", retryable: true)
    }
  }

  private func translate(_ error: HTTPError, _ request: Request) -> ServerError {
    switch error.status {
    case .notFound where !methods(request.uri.path).isEmpty:
      ServerError(.methodNotAllowed, "this path does not support the method")
    case .notFound: ServerError(.notFound, "no such path")
    case .contentTooLarge: ServerError(.limitExceeded, "the body is too long")
    default: ServerError(.invalidRequest, "the request is malformed")
    }
  }

  private func render(_ error: ServerError, to request: Request) throws -> Response {
    var error = error
    if error.retryable, error.retryAfterMs == nil { error.retryAfterMs = 1_000 }
    var response = try Response.json(error, status: HTTPResponse.Status(code: error.status))
    if let wait = error.retryAfterMs { response.headers[.retryAfter] = "\((wait + 999) / 1_000)" }
    // RFC 9110 demands these two.
    if error.code == .unauthorized { response.headers[.wwwAuthenticate] = "Bearer" }
    if error.code == .methodNotAllowed {
      response.headers[.allow] = methods(request.uri.path).map(\.rawValue).joined(separator: ", ")
    }
    // A client of HEAD expects no body: it would take one for the beginning of the next answer.
    return request.method == .head ? response.createHeadResponse() : response
  }
}
