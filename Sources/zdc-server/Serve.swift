import ArgumentParser
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals
import ZDCServer
import ZDCServerSQLite

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serve until SIGTERM, SIGINT or SIGHUP arrives.",
    discussion: """
      Prints one line with the address when it is ready. On a signal, it refuses new requests, finishes running ones, \
      ends event streams and exits with 0. All three signals do the same; none reloads configuration. Under nohup, \
      SIGHUP is ignored.

      A server on loopback without a non-loopback --origin is for development: registration is open, calls are not limited, and \
      /metrics needs no token. Behind a proxy, give --origin and --trusted-proxy.

      \(ExitStatus.help)
      """)

  @Option(
    name: .long,
    help: "A JSON file with these options, as docs/server.md describes it. Options given here and the environment win.")
  var config: String?

  @Option(name: .long, help: "The data folder; created if it does not exist.")
  var data: String

  @OptionGroup var blobOptions: BlobOptions

  @Option(
    name: .long,
    help: """
      URL of a PostgreSQL database for everything but large content, such as postgres://zdc@db.example.org/zdc. Give a \
      URL with a password in the environment, as ZDC_DATABASE. (default: SQLite in the data folder)
      """)
  var database: String?

  @Option(
    name: .long,
    help: """
      A file that lists closed accounts and removed content, for restore. Keep it apart from backups. \
      (default: deletions in the data folder)
      """)
  var deletions: String?

  @Option(
    name: .long,
    help:
      "The Unix socket for zdc-server admin. Only the user who runs the server can open it. (default: admin.sock in the data folder)"
  )
  var adminSocket: String?

  @Option(name: .long, help: "Address and port; port 0 lets the system choose.")
  var listen = "127.0.0.1:7342"

  @Option(name: .long, help: "An origin that clients log in under, such as https://sync.example.org. Repeatable.")
  var origin: [String] = []

  @Option(
    name: .long,
    help: "Who may register: open, invite or closed. (default: open on loopback without --origin, else invite)")
  var registration: ServerRegistration?

  @Option(name: .long, help: "A file with one invite code a line; each may be used once.")
  var inviteFile: String?

  @Option(name: .long, help: "The certificate chain, PEM.")
  var tlsCert: String?

  @Option(name: .long, help: "The certificate's private key, PEM.")
  var tlsKey: String?

  @Option(name: .long, help: "Lowest level to log: trace, debug, info, notice, warning, error or critical.")
  var logLevel = "notice"

  @Option(name: .long, help: "Format of the log on standard error: text or json.")
  var logFormat = LogFormat.text

  @Option(name: .long, help: "Maximum size of a file's content, in bytes of ciphertext.")
  var maxContentBytes: UInt64?

  @Option(
    name: .long,
    help: "A proxy, as ADDRESS or ADDRESS/BITS, whose X-Forwarded-For or Forwarded names the client. Repeatable.")
  var trustedProxy: [String] = []

  @Option(name: .long, help: "Maximum number of open event streams per user.")
  var maxStreams: Int?

  @Option(
    name: .long,
    help: """
      Maximum number of registrations and logins per client address and minute. \
      (default: 60; not limited on loopback without --origin)
      """)
  var maxAccountCalls: Int?

  @Option(
    name: .long,
    help:
      "Maximum bytes of sealed content per user, plus a quarter of that (at least 64 MiB) for records; 0: unlimited."
  )
  var quota: UInt64 = 0

  @Option(name: .long, help: "Days to keep replaced and deleted content.")
  var retention: UInt64 = 30

  @Option(name: .long, help: "Seconds to let running requests finish after SIGTERM.")
  var drain = 20

  @Option(
    name: .long,
    help: """
      Seconds after SIGTERM in which requests are still answered and /readyz says 503, so that a load balancer takes the \
      server out of service first.
      """)
  var stopDelay = 0

  @Option(name: .long, help: "Seconds without receiving a byte of a request before its connection is closed.")
  var idleTimeout = 120

  @Option(
    name: .long,
    help:
      "A file with the token that /metrics requires. (default: none; /metrics is then served on loopback without --origin only)"
  )
  var metricsTokenFile: String?

  func run() async throws {
    do {
      try await serve()
    } catch let failure as Failure {
      failure.report()
      throw failure.status.code
    }
  }

  private func serve() async throws {
    // Only the server's own user may access the files that it writes.
    umask(0o077)
    var settings = try settings()
    let logger = try logger()
    if let files = OpenFileLimit.raise() { settings.bounds.connections = OpenFileLimit.connections(of: files) }
    for warning in ServeWarnings.all(settings, hasInvites: inviteFile != nil) { logger.warning("\(warning)") }
    let place = StorePlace(
      data: data, database: database ?? ProcessInfo.processInfo.environment["ZDC_DATABASE"], blobs: blobOptions.place)
    let stores = try await place.open(.serve)
    defer { withExtendedLifetime(stores) {} }
    let ledger = DeletionFile(path: deletions ?? "\(data)/\(DeletionFile.defaultName)")
    try await Failure.translating { try ledger.create() }
    let coordination = try await stores.coordination(settings)
    let scheme = settings.tls == nil ? "http" : "https"
    let shownHost = settings.host.contains(":") ? "[\(settings.host)]" : settings.host
    let server = Server(
      configuration: settings, metadata: stores.metadata, blobs: stores.blobs, coordination: coordination,
      deletions: ledger, logger: logger,
      onReady: { port in
        FileHandle.standardOutput.write(Data("zdc-server listening on \(scheme)://\(shownHost):\(port)\n".utf8))
      })
    let service = ServiceGroupConfiguration.ServiceConfiguration(
      service: server, successTerminationBehavior: .gracefullyShutdownGroup)
    var configuration = ServiceGroupConfiguration(services: [service], logger: quiet(logger))
    // A reader who never finishes a download must not delay the shutdown forever.
    configuration.maximumGracefulShutdownDuration = .seconds(settings.bounds.drainSeconds)
    let group = ServiceGroup(configuration: configuration)
    let signals = await UnixSignalsSequence(trapping: Self.stopSignals())
    async let _: Void = stop(group, server, at: signals)
    do { try await group.run() } catch { throw Failure(starting: error, address: listen) }
  }

  /// Waits for a signal, then stops the server. Cancelled when the server ends by itself.
  private func stop(_ group: ServiceGroup, _ server: Server, at signals: UnixSignalsSequence) async {
    for await _ in signals {
      server.announceStop()
      // Cancelled only if the server has ended.
      try? await Task.sleep(for: .seconds(stopDelay))
      return await group.triggerGracefulShutdown()
    }
  }

  /// Returns the signals that stop the server. `nohup` starts a program with SIGHUP ignored; it then stays ignored.
  private static func stopSignals() -> [UnixSignal] {
    var action = sigaction()
    guard sigaction(SIGHUP, nil, &action) == 0, isIgnored(action) else { return [.sigterm, .sigint, .sighup] }
    return [.sigterm, .sigint]
  }

  private static func isIgnored(_ action: sigaction) -> Bool {
    #if canImport(Darwin)
      let handler = action.__sigaction_u.__sa_handler
    #elseif canImport(Musl)
      let handler = action.__sa_handler.sa_handler
    #else
      let handler = action.__sigaction_handler.sa_handler
    #endif
    return unsafeBitCast(handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  private func quiet(_ logger: Logger) -> Logger {
    var logger = logger
    logger.logLevel = max(logger.logLevel, .warning)
    return logger
  }

  /// Checks all options that can be checked without opening anything.
  ///
  /// - Throws: ``Failure``.
  func check() throws {
    _ = try settings()
    _ = try logger()
  }

  private func settings() throws -> ZDCServer.Configuration {
    var settings = ZDCServer.Configuration()
    (settings.host, settings.port) = try address()
    settings.origins = try origin.map(checkedOrigin)
    settings.registration = registration.flatMap { .init(rawValue: $0.rawValue) }
    settings.invites = try invites()
    settings.tls = try tls()
    settings.metricsToken = try metricsToken()
    settings.adminSocket = try adminPath()
    for text in trustedProxy where !settings.trustedProxies.add(text) {
      throw Failure(.usage, "--trusted-proxy takes ADDRESS or ADDRESS/BITS, such as 127.0.0.1 or 10.0.0.0/8")
    }
    try setBounds(of: &settings)
    return settings
  }

  private func setBounds(of settings: inout ZDCServer.Configuration) throws {
    let day = 86_400
    if let maxContentBytes {
      try check("--max-content-bytes", maxContentBytes, 1 << 16...1 << 60)
      settings.bounds.contentBytes = min(maxContentBytes, settings.bounds.contentBytes)
    }
    if let maxStreams {
      try check("--max-streams", maxStreams, 1...65_536)
      settings.bounds.eventStreamsPerUser = maxStreams
    }
    try check("--quota", quota, 0...1 << 60)
    settings.bounds.quotaBytes = quota
    try check("--retention", retention, 0...36_500)
    settings.bounds.retentionMs = retention * 24 * 3_600_000
    try check("--drain", drain, 1...day)
    settings.bounds.drainSeconds = drain
    try check("--stop-delay", stopDelay, 0...day)
    try check("--idle-timeout", idleTimeout, 1...day)
    settings.bounds.idleSeconds = idleTimeout
    if let maxAccountCalls { try check("--max-account-calls", maxAccountCalls, 1...1_000_000) }
    settings.bounds.accountCallsPerMinute = maxAccountCalls ?? (settings.isDevelopment ? nil : 60)
  }

  private func check<Number: FixedWidthInteger>(
    _ option: String, _ number: Number, _ range: ClosedRange<Number>
  ) throws {
    guard !range.contains(number) else { return }
    throw Failure(.usage, "\(option) takes a number from \(range.lowerBound) to \(range.upperBound)")
  }

  private func contents(of path: String) throws -> Data {
    guard FileManager.default.fileExists(atPath: path) else { throw Failure(.noInput, "no such file: \(path)") }
    guard let bytes = FileManager.default.contents(atPath: path) else {
      throw Failure(.noPermission, "cannot read \(path)")
    }
    return bytes
  }

  private func address() throws -> (String, Int) {
    guard let colon = listen.lastIndex(of: ":"), let port = Int(listen[listen.index(after: colon)...]),
      (0...65_535).contains(port)
    else { throw Failure(.usage, "--listen takes ADDRESS:PORT, such as 127.0.0.1:7342") }
    var host = String(listen[..<colon])
    if host.hasPrefix("["), host.hasSuffix("]") { host = String(host.dropFirst().dropLast()) }
    guard !host.isEmpty else { throw Failure(.usage, "--listen takes ADDRESS:PORT, such as 127.0.0.1:7342") }
    return (host, port)
  }

  private func checkedOrigin(_ text: String) throws -> String {
    let isOrigin = text.hasPrefix("https://") || text.hasPrefix("http://")
    guard isOrigin, !text.dropFirst(8).dropLast().contains("/") else {
      throw Failure(.usage, "--origin takes scheme://host[:port]")
    }
    return text
  }

  private func invites() throws -> Set<String> {
    guard let inviteFile else { return [] }
    let lines = String(decoding: try contents(of: inviteFile), as: UTF8.self).split(whereSeparator: \.isWhitespace)
    return Set(lines.map(String.init))
  }

  private func metricsToken() throws -> String? {
    guard let metricsTokenFile else { return nil }
    let token = String(decoding: try contents(of: metricsTokenFile), as: UTF8.self).split(
      whereSeparator: \.isWhitespace
    ).first
    guard let token, token.count >= 16 else {
      throw Failure(.usage, "the metrics token must have at least 16 characters")
    }
    return String(token)
  }

  /// - Returns: nil if the data folder's path is too long for a socket in it.
  private func adminPath() throws -> String? {
    let path = adminSocket ?? "\(data)/\(AdminSocket.defaultName)"
    if path.utf8.count <= AdminSocket.maximumPathBytes { return path }
    guard adminSocket == nil else {
      throw Failure(.usage, "--admin-socket takes a path of at most \(AdminSocket.maximumPathBytes) bytes")
    }
    return nil
  }

  private func tls() throws -> ZDCServer.Configuration.TLSFiles? {
    switch (tlsCert, tlsKey) {
    case (nil, nil): return nil
    case (let certificate?, let key?):
      for path in [certificate, key] { _ = try contents(of: path) }
      return .init(certificate: certificate, key: key)
    default: throw Failure(.usage, "give both --tls-cert and --tls-key, or neither")
    }
  }

  private func logger() throws -> Logger {
    guard let level = Logger.Level(rawValue: logLevel) else { throw Failure(.usage, "no such log level: \(logLevel)") }
    var logger = Logger(label: "zdc-server") { _ in LineLogHandler(format: logFormat) }
    logger.logLevel = level
    return logger
  }
}

enum ServerRegistration: String, ExpressibleByArgument, CaseIterable {
  case open, invite, closed
}

enum LogFormat: String, ExpressibleByArgument, CaseIterable {
  case text, json
}
