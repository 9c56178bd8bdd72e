internal import Hummingbird
internal import ZDCProtocol

/// For load balancers, scrapers, and clients that meet a server for the first time.
enum HealthRoutes {
  static func live(_ call: Call) -> Response { .text("ok\n") }

  static func ready(_ call: Call) async throws -> Response {
    guard call.core.isReady else { return .text("stopping\n", status: .serviceUnavailable) }
    _ = try await call.read { try $0.lastRx() }
    return .text("ok\n")
  }

  /// For scrapers on this machine; to others the path does not exist.
  static func metrics(_ call: Call) throws -> Response {
    guard ["127.0.0.1", "::1"].contains(call.context.clientAddress) else {
      throw ServerError(.notFound, "no such path")
    }
    let writes = call.core.metadata.writeStatistics
    return .text(
      call.core.metrics.text(
        ServerMetrics.Gauges(
          eventStreams: call.core.hub.openStreams, writes: writes.writes, writeGroups: writes.groups,
          writeWaitSeconds: writes.waitedSeconds)))
  }

  static func info(_ call: Call) throws -> Response {
    let configuration = call.core.configuration
    return try .json(
      ServerInfo(
        name: configuration.serverName, version: configuration.version, protocols: [1],
        registration: configuration.effectiveRegistration.rawValue, timeMs: call.now))
  }
}
