internal import ZDCProtocol

/// How a server runs. Everything has a sensible default for one machine.
package struct Configuration: Sendable {
  package enum Registration: String, Sendable, CaseIterable {
    case open, invite, closed
  }

  package struct TLSFiles: Sendable {
    package var certificate: String
    package var key: String

    package init(certificate: String, key: String) {
      self.certificate = certificate
      self.key = key
    }
  }

  /// What one server takes; the protocol's own limits are in `ZDCProtocol.Limits`.
  package struct Bounds: Sendable {
    package var contentBytes: UInt64 = Limits.contentCipherBytes
    package var eventStreamsPerUser = 64
    package var pendingEventBytes = 1 << 20
    package var connections = 4_096
    /// Connections of one client address, except loopback and trusted proxies.
    package var connectionsPerAddress: Int { max(connections / 8, 8) }
    /// Unauthenticated account calls per client address and minute; nil: not limited.
    package var accountCallsPerMinute: Int?
    package var sessionMs: UInt64 = 24 * 3_600_000
    package var challengeMs: UInt64 = 120_000
    package var retentionMs: UInt64 = 30 * 24 * 3_600_000
    package var abandonedUploadMs: UInt64 = 7 * 24 * 3_600_000
    package var heartbeatSeconds = 15
    /// Bytes of sealed content per user; zero: unlimited.
    package var quotaBytes: UInt64 = 0
    /// Bytes of records, commits, access lists and grants per user; nil: derived from `quotaBytes`.
    package var recordQuotaBytes: UInt64?
    /// Apps that one account may have a tree for.
    package var treesPerUser = 64
    /// Calls of one user and minute that make the server verify signatures or read much; nil: not limited.
    package var accountWorkPerMinute: Int? = 120
    /// Live nodes below deleted and moved ones that one request makes the server visit.
    package var subtreeNodesPerRequest = 1_000_000
    /// The same for one user and minute. A request that takes more is answered, and the next ones wait.
    package var subtreeNodesPerMinute = 1_200_000
    /// Bytes of request bodies in memory, all connections together. A user or an address gets an eighth, and all senders
    /// without a session together a quarter.
    package var bufferedBodyBytes = 256 << 20
    /// The same for answers that are not sent yet.
    package var bufferedAnswerBytes = 256 << 20
    /// How long a commit may be held until its device's turn in a busy zone comes.
    package var commitHoldMs: UInt64 = 4_000
    /// How long running requests may take to finish when the server stops; then they are cut.
    package var drainSeconds = 20
    /// A connection on which nothing comes for so long, while the server waits for its request, is closed.
    package var idleSeconds = 120
    /// A connection whose request's body brings less than `bytesPerWindow` in this time is closed.
    package var bodySeconds = 20
    package var bytesPerWindow = 16 << 10
    /// A connection whose client takes no byte of an answer for so long is closed.
    package var stalledSeconds = 60

    package init() {}
  }

  package var host = "127.0.0.1"
  /// Zero lets the system choose; ``Server/start()`` tells which.
  package var port = 0
  /// Origins that logins may name. Empty: the loopback names of the port that is listened on.
  package var origins: [String] = []
  /// Nil: open in development, else by invite.
  package var registration: Registration?
  /// Codes that may be used once each.
  package var invites: Set<String> = []
  package var tls: TLSFiles?
  package var bounds = Bounds()
  /// What a scraper has to show; nil: the counters are for this machine only.
  package var metricsToken: String?
  /// Peers whose `Forwarded` and `X-Forwarded-For` name the client.
  package var trustedProxies = TrustedProxies()
  package var serverName = "zdc-server"
  package var version = ServerVersion.text

  package init() {}

  package var isLoopback: Bool { ["127.0.0.1", "::1", "localhost"].contains(host) }

  /// On loopback, without another origin, only programs of this machine come. With one there is a proxy in front.
  package var isDevelopment: Bool { isLoopback && hasOnlyLoopbackOrigins }

  package var hasOnlyLoopbackOrigins: Bool { origins.allSatisfy(Self.isLoopback(origin:)) }

  private static let loopbackHosts = ["127.0.0.1", "localhost", "[::1]"]

  private static func isLoopback(origin: String) -> Bool {
    let rest = normalizedOrigin(origin).drop { $0 != "/" }.drop { $0 == "/" }
    return loopbackHosts.contains { rest == $0 || rest.hasPrefix($0 + ":") }
  }

  package var effectiveRegistration: Registration { registration ?? (isDevelopment ? .open : .invite) }

  /// The origins in force once the port is known.
  package func effectiveOrigins(port: Int) -> Set<String> {
    guard origins.isEmpty else { return Set(origins.map(Self.normalizedOrigin)) }
    let hosts = isLoopback ? Self.loopbackHosts : [host]
    return Set(hosts.flatMap { host in ["http", "https"].map { Self.normalizedOrigin("\($0)://\(host):\(port)") } })
  }

  /// Lower case, without the scheme's default port and without a slash at the end.
  package static func normalizedOrigin(_ origin: String) -> String {
    var text = origin.lowercased()
    if text.hasSuffix("/") { text.removeLast() }
    if text.hasPrefix("http://"), text.hasSuffix(":80") { text.removeLast(3) }
    if text.hasPrefix("https://"), text.hasSuffix(":443") { text.removeLast(4) }
    return text
  }
}

/// The version of this package's server.
package enum ServerVersion {
  package static let text = "0.1.0"
}

/// Where the server gets the time. Tests give their own.
package struct ServerClock: Sendable {
  /// Milliseconds since 1970. It may be set, to either side.
  package let nowMs: @Sendable () -> UInt64
  /// Milliseconds that have passed since some moment. It never goes back: turns and rates count by it.
  package let elapsedMs: @Sendable () -> UInt64

  package init(nowMs: @escaping @Sendable () -> UInt64, elapsedMs: (@Sendable () -> UInt64)? = nil) {
    self.nowMs = nowMs
    self.elapsedMs = elapsedMs ?? nowMs
  }
}
