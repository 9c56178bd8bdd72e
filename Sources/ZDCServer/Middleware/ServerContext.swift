internal import Hummingbird
internal import Logging
internal import NIOCore

/// Hummingbird's context, with the properties of the connection that the server needs.
struct ServerContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel
  /// The other end of the connection; a proxy's address if there is one.
  let peer: IPAddress?
  /// Names the request in the log and in its answer.
  private(set) var requestID = String(UInt64.random(in: 1...UInt64.max), radix: 16)

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
    peer = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
  }

  /// Takes over the name that a trusted proxy has given the request, so that the logs of both can be compared.
  mutating func takeRequestID(of request: Request, trusting proxies: TrustedProxies) {
    guard let peer, proxies.contains(peer), let name = request.headers[.requestID] else { return }
    if name.wholeMatch(of: /[A-Za-z0-9-]{1,64}/) != nil { requestID = name }
  }

  /// Returns the key by which limits count the request's client.
  func party(of request: Request, trusting proxies: TrustedProxies) -> String {
    guard let peer else { return "unknown" }
    guard !proxies.isEmpty else { return peer.party }
    return proxies.client(
      of: peer, forwarded: request.headers[values: .forwarded], forwardedFor: request.headers[values: .forwardedFor]
    ).party
  }
}

extension ServerCore {
  /// A logger whose lines name the request.
  func logger(of context: ServerContext) -> Logger {
    var logger = logger
    logger[metadataKey: "request"] = "\(context.requestID)"
    return logger
  }
}
