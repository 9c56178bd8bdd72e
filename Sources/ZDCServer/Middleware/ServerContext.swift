internal import Hummingbird
internal import NIOCore

/// Hummingbird's context, with the properties of the connection that the server needs.
struct ServerContext: RequestContext {
  var coreContext: CoreRequestContextStorage
  let channel: any Channel
  /// The other end of the connection; a proxy's address if there is one.
  let peer: IPAddress?

  init(source: ApplicationRequestContextSource) {
    coreContext = CoreRequestContextStorage(source: source)
    channel = source.channel
    peer = channel.remoteAddress?.ipAddress.flatMap { IPAddress($0) }
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
