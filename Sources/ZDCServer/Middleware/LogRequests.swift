internal import HTTPTypes
internal import Hummingbird
internal import Logging
internal import NIOCore

/// Writes one log line and one count per request: its ID, route pattern, status, time, size. Never logs a path with ids, a
/// query, an address, or a header but the request ID of a trusted proxy. The answer has the same ID.
struct LogRequests: RouterMiddleware {
  let core: ServerCore
  /// Maps the router's paths to the paths of PROTOCOL 4.
  let displayPath: [String: String]

  func handle(
    _ request: Request, context: ServerContext,
    next: (Request, ServerContext) async throws -> Response
  ) async throws -> Response {
    let start = ContinuousClock.now
    core.metrics.openRequest()
    var context = context
    context.takeRequestID(of: request, trusting: core.configuration.trustedProxies)
    do {
      var response = try await next(request, context)
      response.headers[.requestID] = context.requestID
      let length = request.method == .head ? 0 : response.body.contentLength
      note(request, context, status: Int(response.status.code), bytes: length ?? 0, since: start)
      count(&response.body, length: length)
      return response
    } catch {
      note(request, context, status: 499, bytes: 0, since: start)
      throw error
    }
  }

  /// A long body, which its reader may not take to the end, counts while it is written.
  private func count(_ body: inout ResponseBody, length: Int?) {
    if let length, length <= Self.countedAtOnce { return core.metrics.countBytes(out: length) }
    let (whole, metrics) = (body, core.metrics)
    body = ResponseBody(contentLength: length) { writer in
      try await whole.write(CountedWriter(writer: writer, metrics: metrics))
    }
  }

  /// A body up to this length is sent with its head in one write, which a counted one is not.
  private static let countedAtOnce = 64 << 10

  private func note(
    _ request: Request, _ context: ServerContext, status: Int, bytes: Int, since start: ContinuousClock.Instant
  ) {
    let elapsed = ContinuousClock.now - start
    let route = context.endpointPath.flatMap { displayPath[$0] } ?? "unknown"
    let milliseconds = Double(elapsed.components.seconds) * 1_000 + Double(elapsed.components.attoseconds) * 1e-15
    let key = ServerMetrics.RequestKey(method: request.method.rawValue, route: route, status: status)
    core.metrics.countRequest(key, seconds: milliseconds / 1_000)
    core.logger(of: context).log(
      level: status >= 500 ? .error : .info, "request",
      metadata: [
        "method": "\(request.method.rawValue)", "route": "\(route)", "status": "\(status)",
        "ms": "\((milliseconds * 10).rounded() / 10)", "bytes": "\(bytes)",
      ])
  }
}

/// Counts the bytes of an answer that its reader has room for.
private struct CountedWriter: ResponseBodyWriter {
  var writer: any ResponseBodyWriter
  let metrics: ServerMetrics

  mutating func write(_ buffer: ByteBuffer) async throws {
    try await writer.write(buffer)
    metrics.countBytes(out: buffer.readableBytes)
  }

  consuming func finish(_ trailingHeaders: HTTPFields?) async throws { try await writer.finish(trailingHeaders) }
}
