internal import Hummingbird
internal import ZDCProtocol

/// Endpoints for load balancers, scrapers, and clients that contact a server for the first time.
enum HealthRoutes {
  static func live(_ call: Call) -> Response { .text("ok\n") }

  static func ready(_ call: Call) async throws -> Response {
    guard call.core.isReady else { return .text("stopping\n", status: .serviceUnavailable) }
    _ = try await call.read { try $0.lastReceivedMs() }
    guard try await call.core.hasRoom() else {
      // Servers that share their stores find the same disk full. A load balancer without servers would refuse reads too.
      return .text("full\n", status: call.core.coordination.isShared ? .ok : .serviceUnavailable)
    }
    return .text("ok\n")
  }

  /// Serves scrapers that have the token. Without a configured token, serves clients on this machine, as long as all
  /// origins are loopback: behind a proxy, every client appears to be on this machine. For all others the path does not
  /// exist.
  static func metrics(_ call: Call) throws -> Response {
    guard mayScrape(call) else { throw ServerError(.notFound, "no such path") }
    let writes = call.core.metadata.writeStatistics
    return .text(
      call.core.metrics.text(
        ServerMetrics.Gauges(
          eventStreams: call.core.hub.openStreams, writes: writes.writes, writeGroups: writes.groups,
          writeWaitSeconds: writes.waitedSeconds)))
  }

  private static func mayScrape(_ call: Call) -> Bool {
    guard let token = call.core.configuration.metricsToken else {
      return call.core.configuration.hasOnlyLoopbackOrigins && call.context.peer?.isLoopback == true
    }
    let shown = call.request.headers[.authorization] ?? ""
    // Compares hashes, so that the response time reveals nothing about how much of the token is right.
    return Sessions.hash(Array(shown.utf8)) == Sessions.hash(Array("Bearer \(token)".utf8))
  }

  static func info(_ call: Call) throws -> Response {
    let configuration = call.core.configuration
    return try .json(
      ServerInfo(
        name: configuration.serverName, version: configuration.version, protocols: [1],
        registration: configuration.effectiveRegistration.rawValue, timeMs: call.now))
  }
}
