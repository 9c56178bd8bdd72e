internal import Hummingbird
internal import HummingbirdCore
internal import HummingbirdTLS
package import Logging
internal import NIOCore
internal import ServiceLifecycle
internal import Synchronization

/// A server over two stores. The program and the tests run the same code.
///
/// `run()` serves until the task is cancelled or its service group shuts down gracefully. Then running requests finish,
/// event streams end, and the stores are flushed and closed. A graceful shutdown that becomes a cancellation, because a
/// request did not end in time, is not an error.
package struct Server: Service {
  fileprivate let core: ServerCore
  private let onReady: @Sendable (_ port: Int) -> Void

  /// - Parameters:
  ///   - coordination: shared with the server's other processes; nil if this is the only one.
  ///   - deletions: where the server notes what it deletes for good.
  ///   - onReady: called once, when the server listens.
  package init(
    configuration: Configuration, metadata: any MetadataStore, blobs: any BlobStore,
    coordination: (any ServerCoordination)? = nil, deletions: (any DeletionLedger)? = nil,
    clock: ServerClock = .system, logger: Logger, onReady: @escaping @Sendable (_ port: Int) -> Void = { _ in }
  ) {
    core = ServerCore(
      configuration: configuration, metadata: metadata, blobs: blobs,
      coordination: coordination ?? LocalCoordination(clock: clock, bounds: configuration.bounds),
      deletions: deletions, clock: clock, logger: logger)
    self.onReady = onReady
  }

  /// Reports in `/readyz` that the server is about to stop. Requests are answered until it does.
  package func announceStop() { core.announceStop() }

  package func run() async throws {
    let core = core
    let application = try application()
    let outcome: Result<Void, any Error>
    do {
      try await withGracefulShutdownHandler {
        try await withThrowingTaskGroup(of: Void.self) { group in
          group.addTask { await sendHeartbeats() }
          group.addTask { await Reaper(core: core).run() }
          if let path = core.configuration.adminSocket {
            group.addTask { await AdminSocket(core: core, path: path).run() }
          }
          defer { group.cancelAll() }
          try await application.run()
        }
      } onGracefulShutdown: {
        core.stop()
      }
      outcome = .success(())
    } catch  where core.isStopping && Task.isCancelled {
      outcome = .success(())
    } catch { outcome = .failure(error) }
    core.stop()
    // In a separate task: cancelling this one must not leave the store open.
    try await Task {
      await core.coordination.end()
      try await core.metadata.close()
    }.value
    try outcome.get()
  }

  private func application() throws -> some ApplicationProtocol {
    let configuration = core.configuration
    let timing = SlowRequestGuard.Timing(configuration.bounds)
    let connections = core.connections
    var http = HTTPServerBuilder.http1(
      configuration: HTTP1Channel.Configuration(
        additionalChannelHandlers: [ConnectionCounter(connections), SlowRequestGuard(timing)],
        idleTimeout: timing.idle))
    if let files = configuration.tls { http = try .tls(http, tlsConfiguration: Self.tls(files)) }
    return Application(
      router: RouteTable.router(for: core), server: http,
      configuration: ApplicationConfiguration(
        address: .hostname(configuration.host, port: configuration.port), serverName: configuration.serverName,
        backlog: 512, availableConnectionsDelegate: MaximumAvailableConnections(configuration.bounds.connections)),
      onServerRunning: { [core, onReady] channel in
        let port = channel.localAddress?.port ?? 0
        core.begin(port: port)
        onReady(port)
      },
      logger: Self.quiet(core.logger))
  }

  /// Raises the framework's log level to warnings. Its info lines only repeat the server's own.
  private static func quiet(_ logger: Logger) -> Logger {
    var logger = logger
    logger.logLevel = max(logger.logLevel, .warning)
    return logger
  }

  private static func tls(_ files: Configuration.TLSFiles) throws -> TLSConfiguration {
    let chain = try NIOSSLCertificate.fromPEMFile(files.certificate)
    let key = try NIOSSLPrivateKey(file: files.key, format: .pem)
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
    tls.minimumTLSVersion = .tlsv12
    return tls
  }

  private func sendHeartbeats() async {
    let interval = Duration.seconds(core.configuration.bounds.heartbeatSeconds)
    while (try? await Task.sleep(for: interval)) != nil { core.hub.heartbeat(now: core.now) }
  }
}

/// A server that runs in this process, for tests and for programs that embed one.
package final class RunningServer: Sendable {
  /// The port that the server listens on.
  package let port: Int
  package let configuration: Configuration
  private let core: ServerCore
  private let group: ServiceGroup
  private let task: Task<Void, any Error>

  private init(
    port: Int, configuration: Configuration, core: ServerCore, group: ServiceGroup, task: Task<Void, any Error>
  ) {
    self.port = port
    self.core = core
    self.configuration = configuration
    self.group = group
    self.task = task
  }

  /// `http://127.0.0.1:PORT`, or https with TLS files.
  package var url: String { "\(configuration.tls == nil ? "http" : "https")://\(configuration.host):\(port)" }

  /// Starts a server and returns when it listens.
  ///
  /// - Throws: the error that keeps the server from listening; the stores are then closed.
  package static func start(
    configuration: Configuration = Configuration(), metadata: any MetadataStore, blobs: any BlobStore,
    coordination: (any ServerCoordination)? = nil, deletions: (any DeletionLedger)? = nil,
    clock: ServerClock = .system, logger: Logger
  ) async throws -> RunningServer {
    let (ready, signal) = AsyncThrowingStream<Int, any Error>.makeStream()
    let server = Server(
      configuration: configuration, metadata: metadata, blobs: blobs, coordination: coordination,
      deletions: deletions, clock: clock, logger: logger,
      onReady: { port in
        signal.yield(port)
        signal.finish()
      })
    var groupConfiguration = ServiceGroupConfiguration(services: [server], logger: Server.groupLogger(logger))
    groupConfiguration.maximumGracefulShutdownDuration = .seconds(configuration.bounds.drainSeconds)
    let group = ServiceGroup(configuration: groupConfiguration)
    let task = Task {
      do {
        try await group.run()
        signal.finish(throwing: CancellationError())
      } catch {
        signal.finish(throwing: error)
        throw error
      }
    }
    for try await port in ready {
      return RunningServer(
        port: port, configuration: configuration, core: server.core, group: group, task: task)
    }
    throw CancellationError()
  }

  /// Refuses new requests, lets running ones finish, ends event streams, and flushes and closes the stores.
  package func stop() async throws {
    await group.triggerGracefulShutdown()
    try await task.value
  }

  /// Whether the server is ready; false once it has begun to stop.
  package var isReady: Bool { core.isReady }

  /// Bytes of request bodies that are currently in memory.
  package var bufferedBytes: Int { core.bodies.bytes }

  /// Bytes of responses that are currently in memory because they are too long to be sent in one piece.
  package var unsentBytes: Int { core.answers.bytes }

  /// The number of open event streams.
  package var eventStreams: Int { core.hub.openStreams }

  /// The number of open connections.
  package var connections: Int { core.connections.count }

  /// Removes data whose retention has expired, as the server does once an hour.
  package func collect() async throws { try await Reaper(core: core).collect() }

  /// Waits until the server ends, on its own or by ``stop()``.
  package func wait() async throws { try await task.value }
}

extension Server {
  static func groupLogger(_ logger: Logger) -> Logger { quiet(logger) }
}
