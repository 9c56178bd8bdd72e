import ArgumentParser
import Foundation
import Logging
import ServiceLifecycle
import UnixSignals
import ZDCServer
import ZDCServerSQLite

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Serves until it is told to stop (SIGTERM or SIGINT).",
    discussion: """
      Prints one line with the address when it is ready. A terminated server refuses what is new, finishes what runs, \
      ends event streams and exits with 0.

      \(ExitStatus.help)
      """)

  @Option(name: .long, help: "The folder that holds everything. It is made if it is not there.")
  var data: String

  @Option(name: .long, help: "Address and port; port 0 lets the system choose.")
  var listen = "127.0.0.1:7342"

  @Option(name: .long, help: "An origin that clients log in under, such as https://sync.example.org. Repeatable.")
  var origin: [String] = []

  @Option(name: .long, help: "Who may register: open, invite or closed. (default: open on loopback, else invite)")
  var registration: ServerRegistration?

  @Option(name: .long, help: "A file with one invite code a line; each may be used once.")
  var inviteFile: String?

  @Option(name: .long, help: "The certificate chain, PEM.")
  var tlsCert: String?

  @Option(name: .long, help: "The certificate's private key, PEM.")
  var tlsKey: String?

  @Option(name: .long, help: "trace, debug, info, notice, warning, error or critical.")
  var logLevel = "notice"

  @Option(name: .long, help: "text or json; to standard error.")
  var logFormat = LogFormat.text

  @Option(name: .long, help: "The longest content that is taken, in bytes of ciphertext.")
  var maxContentBytes: UInt64?

  @Option(name: .long, help: "Event streams that one user may have open.")
  var maxStreams: Int?

  @Option(
    name: .long,
    help: "Registrations and logins per client address and minute. (default: 60, on loopback not limited)")
  var maxAccountCalls: Int?

  @Option(name: .long, help: "Bytes of sealed content that one user may have; 0: unlimited.")
  var quota: UInt64 = 0

  @Option(name: .long, help: "Days that replaced and deleted content is kept.")
  var retention: UInt64 = 30

  @Option(name: .long, help: "Seconds that running requests get to finish after SIGTERM; then they are cut.")
  var drain = 20

  @Option(name: .long, help: "Seconds without a byte of a request after which a connection is closed.")
  var idleTimeout = 120

  @Option(name: .long, help: "A file with the token that /metrics asks for. (default: none; /metrics is for loopback)")
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
    // What the server writes is its user's alone.
    umask(0o077)
    // A file that may not grow is an answer to a client, not the end of the server.
    signal(SIGXFSZ, SIG_IGN)
    let settings = try settings()
    let logger = try logger()
    let folder: DataFolder
    do { folder = try DataFolder(path: data) } catch let error as StoreOpenError { throw Failure(error) }
    let scheme = settings.tls == nil ? "http" : "https"
    let shownHost = settings.host.contains(":") ? "[\(settings.host)]" : settings.host
    let server = Server(
      configuration: settings, metadata: folder.metadata, blobs: folder.blobs, logger: logger,
      onReady: { port in
        FileHandle.standardOutput.write(Data("zdc-server listening on \(scheme)://\(shownHost):\(port)\n".utf8))
      })
    let service = ServiceGroupConfiguration.ServiceConfiguration(
      service: server, successTerminationBehavior: .gracefullyShutdownGroup)
    var group = ServiceGroupConfiguration(
      services: [service], gracefulShutdownSignals: [.sigterm, .sigint], logger: quiet(logger))
    // A reader who never takes the end of his download must not hold the server up for ever.
    group.maximumGracefulShutdownDuration = .seconds(settings.bounds.drainSeconds)
    do { try await ServiceGroup(configuration: group).run() } catch { throw Failure(starting: error, address: listen) }
  }

  private func quiet(_ logger: Logger) -> Logger {
    var logger = logger
    logger.logLevel = max(logger.logLevel, .warning)
    return logger
  }

  private func settings() throws -> ZDCServer.Configuration {
    var settings = ZDCServer.Configuration()
    (settings.host, settings.port) = try address()
    settings.origins = try origin.map(checkedOrigin)
    settings.registration = registration.flatMap { .init(rawValue: $0.rawValue) }
    settings.invites = try invites()
    settings.tls = try tls()
    if let maxContentBytes { settings.bounds.contentBytes = min(maxContentBytes, settings.bounds.contentBytes) }
    if let maxStreams { settings.bounds.eventStreamsPerUser = maxStreams }
    settings.bounds.quotaBytes = quota
    guard retention <= 36_500 else { throw Failure(.usage, "--retention takes days, at most 36500") }
    settings.bounds.retentionMs = retention * 24 * 3_600_000
    guard drain > 0, idleTimeout > 0 else { throw Failure(.usage, "--drain and --idle-timeout take seconds from 1") }
    settings.bounds.drainSeconds = drain
    settings.bounds.idleSeconds = idleTimeout
    settings.metricsToken = try metricsToken()
    settings.bounds.accountCallsPerMinute = maxAccountCalls ?? (settings.isLoopback ? nil : 60)
    return settings
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
    guard let bytes = FileManager.default.contents(atPath: inviteFile) else {
      throw Failure(.noPermission, "cannot read \(inviteFile)")
    }
    let lines = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace)
    return Set(lines.map(String.init))
  }

  private func metricsToken() throws -> String? {
    guard let metricsTokenFile else { return nil }
    guard let bytes = FileManager.default.contents(atPath: metricsTokenFile) else {
      throw Failure(.noPermission, "cannot read \(metricsTokenFile)")
    }
    let token = String(decoding: bytes, as: UTF8.self).split(whereSeparator: \.isWhitespace).first
    guard let token, token.count >= 16 else {
      throw Failure(.usage, "the metrics token has 16 characters at least")
    }
    return String(token)
  }

  private func tls() throws -> ZDCServer.Configuration.TLSFiles? {
    switch (tlsCert, tlsKey) {
    case (nil, nil): return nil
    case (let certificate?, let key?):
      for path in [certificate, key] where !FileManager.default.isReadableFile(atPath: path) {
        throw Failure(.noPermission, "cannot read \(path)")
      }
      return .init(certificate: certificate, key: key)
    default: throw Failure(.usage, "--tls-cert and --tls-key come together")
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
