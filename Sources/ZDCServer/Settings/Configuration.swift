internal import ZDCProtocol

/// The server's configuration. The defaults suit a single machine.
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

  /// The limits of one server; those of the protocol are in `ZDCProtocol.Limits`.
  package struct Bounds: Sendable {
    package var contentBytes: UInt64 = Limits.contentCipherBytes
    package var eventStreamsPerUser = 64
    package var pendingEventBytes = 1 << 20
    package var connections = 4_096
    /// Maximum number of connections per client address, except loopback and trusted proxies.
    package var connectionsPerAddress: Int { max(connections / 8, 8) }
    /// Unauthenticated account calls per client address and minute; nil means unlimited.
    package var accountCallsPerMinute: Int?
    package var sessionMs: UInt64 = 24 * 3_600_000
    package var challengeMs: UInt64 = 120_000
    package var retentionMs: UInt64 = 30 * 24 * 3_600_000
    /// How long a closed account can still be read.
    package var closedAccountMs: UInt64 = 30 * 24 * 3_600_000
    package var abandonedUploadMs: UInt64 = 7 * 24 * 3_600_000
    package var heartbeatSeconds = 15
    /// Bytes of sealed content per user; zero means unlimited.
    package var quotaBytes: UInt64 = 0
    /// Bytes of records, commits, access lists and grants per user; nil means derived from `quotaBytes`.
    package var recordQuotaBytes: UInt64?
    /// Maximum number of apps with a tree per account.
    package var treesPerUser = 64
    /// Maximum number of devices per account.
    package var devicesPerUser = 10_000
    /// Maximum number of zones in an account's own trees, closed ones included: each list of zones may have them all.
    package var zonesPerUser = 10_000
    /// Calls per user and minute that make the server verify signatures or read much; nil means unlimited.
    package var accountWorkPerMinute: Int? = 120
    /// Look-ups of handles per user and minute. Twice as many may come at once.
    package var lookupsPerMinute = 30
    /// Maximum number of other users' zones that one user follows.
    package var memberships = Limits.memberships
    /// Acceptances per user and minute. A user may accept as many zones as they may follow before it takes effect.
    package var acceptancesPerMinute = 60
    /// Commits per minute of a member in a zone of another user. Twice as many may come at once.
    package var memberCommitsPerMinute = 300
    /// Bytes of commits, records, lists and small content per minute of a member in a zone of another user. Eight times
    /// as many may come at once.
    package var memberBytesPerMinute = 16 << 20
    /// Messages per user and minute. Twice as many may come at once.
    package var messagesPerMinute = 600
    /// Limits of an inbox.
    package var inboxes = InboxBounds()
    /// How long a message of an unknown sender waits.
    package var requestMs: UInt64 = 30 * 24 * 3_600_000
    /// Live nodes below deleted and moved ones that one request may make the server visit.
    package var subtreeNodesPerRequest = 1_000_000
    /// The same per user and minute. A request may exceed it; the user's next ones must then wait.
    package var subtreeNodesPerMinute = 1_200_000
    /// Bytes of request bodies in memory, over all connections. A user or an address gets an eighth, and all senders
    /// without a session together a quarter.
    package var bufferedBodyBytes = 256 << 20
    /// The same for responses that are not sent yet.
    package var bufferedAnswerBytes = 256 << 20
    /// The maximum time that the server holds a commit until its device's turn in a busy zone.
    package var commitHoldMs: UInt64 = 4_000
    /// The time that running requests get to finish when the server stops; then they are cut off.
    package var drainSeconds = 20
    /// The server closes a connection that sends nothing for this long while the server waits for its request.
    package var idleSeconds = 120
    /// The server closes a connection whose request body delivers less than `bytesPerWindow` in this time.
    package var bodySeconds = 20
    package var bytesPerWindow = 16 << 10
    /// The server closes a connection whose client accepts no byte of a response for this long.
    package var stalledSeconds = 60

    package init() {}
  }

  package var host = "127.0.0.1"
  /// Zero lets the system choose; ``Server/start()`` returns the port.
  package var port = 0
  /// Origins that logins may name. Empty: the loopback names with the server's port.
  package var origins: [String] = []
  /// Nil: open in development, otherwise by invite.
  package var registration: Registration?
  /// Invite codes, each valid for one registration.
  package var invites: Set<String> = []
  package var tls: TLSFiles?
  package var bounds = Bounds()
  /// The bearer token for scrapers; nil: only this machine may read the metrics.
  package var metricsToken: String?
  /// The path of the Unix socket for the operator's commands; nil for none.
  package var adminSocket: String?
  /// Peers whose `Forwarded` and `X-Forwarded-For` fields name the client.
  package var trustedProxies = TrustedProxies()
  package var serverName = "zdc-server"
  package var version = ServerVersion.text

  package init() {}

  package var isLoopback: Bool { ["127.0.0.1", "::1", "localhost"].contains(host) }

  /// On loopback without another origin, only programs on this machine connect. Another origin means a proxy in front.
  package var isDevelopment: Bool { isLoopback && hasOnlyLoopbackOrigins }

  package var hasOnlyLoopbackOrigins: Bool { origins.allSatisfy(Self.isLoopback(origin:)) }

  private static let loopbackHosts = ["127.0.0.1", "localhost", "[::1]"]

  private static func isLoopback(origin: String) -> Bool {
    let rest = normalizedOrigin(origin).drop { $0 != "/" }.drop { $0 == "/" }
    return loopbackHosts.contains { rest == $0 || rest.hasPrefix($0 + ":") }
  }

  package var effectiveRegistration: Registration { registration ?? (isDevelopment ? .open : .invite) }

  /// Returns the origins in force once the port is known.
  package func effectiveOrigins(port: Int) -> Set<String> {
    guard origins.isEmpty else { return Set(origins.map(Self.normalizedOrigin)) }
    let hosts = isLoopback ? Self.loopbackHosts : [host]
    return Set(hosts.flatMap { host in ["http", "https"].map { Self.normalizedOrigin("\($0)://\(host):\(port)") } })
  }

  /// Returns the origin in lower case, without the scheme's default port and without a trailing slash.
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

/// The server's source of time. Tests supply their own.
package struct ServerClock: Sendable {
  /// Milliseconds since 1970. The clock may be set forward or back.
  package let nowMs: @Sendable () -> UInt64
  /// Milliseconds since some moment. The value never goes back: turns and rates use it.
  package let elapsedMs: @Sendable () -> UInt64

  package init(nowMs: @escaping @Sendable () -> UInt64, elapsedMs: (@Sendable () -> UInt64)? = nil) {
    self.nowMs = nowMs
    self.elapsedMs = elapsedMs ?? nowMs
  }
}
