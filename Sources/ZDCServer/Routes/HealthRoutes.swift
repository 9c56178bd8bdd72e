internal import Hummingbird
internal import ZDCProtocol

/// For load balancers, scrapers, and clients that meet a server for the first time.
enum HealthRoutes {
  static func live(_ call: Call) -> Response { .text("ok\n") }

  static func ready(_ call: Call) async throws -> Response {
    guard call.core.isReady else { return .text("stopping\n", status: .serviceUnavailable) }
    _ = try await call.read { try $0.lastReceivedMs() }
    guard try await call.core.hasRoom() else { return .text("full\n", status: .serviceUnavailable) }
    return .text("ok\n")
  }

  /// For scrapers with the token, or on this machine while there is neither a token nor an origin elsewhere; to others the path
  /// does not exist. Behind a proxy every client comes from this machine.
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
    // Hashes are compared, so that the time tells nothing about how much of the token is right.
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
