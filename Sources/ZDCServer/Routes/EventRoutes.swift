internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import ServiceLifecycle
internal import Synchronization
internal import ZDCProtocol

/// Server-Sent Events: first the zones that have changed, then every new head.
enum EventRoutes {
  static func stream(_ call: Call) async throws -> Response {
    let session = try call.authenticated
    let since = call.position
    // Subscribes before it reads the list: a commit between the two is in both, and is not sent twice.
    let subscription = try call.core.hub.subscribe(session)
    let channel = call.context.channel
    subscription.mailbox.onOverflow { channel.close(promise: nil) }
    do {
      let (list, followed) = try await call.read { reader in
        // The session may have ended before the hub knew the stream; then the stream was not closed with the session's
        // others.
        guard try reader.session(tokenHash: session.tokenHash) != nil else {
          throw ServerError(.unauthorized, "no such session: log in")
        }
        let list = try Zones.list(of: session.user, since: since, in: reader)
        return (list, try reader.memberships(of: session.user).filter { $0.endedSeq == nil }.map(\.zone))
      }
      call.core.hub.activate(subscription, following: followed)
      return try response(call, subscription, list)
    } catch {
      call.core.hub.unsubscribe(subscription)
      throw error
    }
  }

  private static func response(
    _ call: Call, _ subscription: EventHub.Subscription, _ list: ZoneList
  ) throws -> Response {
    let request = call.request
    let hub = call.core.hub
    let channel = call.context.channel
    let first = try FirstEvent(list, call)
    let zones = list.zones
    let body = ResponseBody { writer in
      defer { hub.unsubscribe(subscription) }
      try await first.send(to: &writer, on: channel)
      // Streams end with the server: a stream that waits for a commit must not delay the shutdown.
      try await withGracefulShutdownHandler {
        try await request.body.consumeWithInboundCloseHandler { _ in
          try await forward(subscription.mailbox, after: zones, to: &writer, on: channel)
        } onInboundClosed: {
          subscription.mailbox.close()
        }
      } onGracefulShutdown: {
        subscription.mailbox.close()
      }
      try await writer.finish(nil)
    }
    return Response(status: .ok, headers: headers, body: body)
  }

  /// A proxy that buffers or compresses the response would delay every event. The server closes the connection after a
  /// stream: a client that sent its next request on it would get no response.
  private static let headers: HTTPFields = [
    .contentType: "text/event-stream", .cacheControl: "no-store, no-transform", .accelBuffering: "no",
    .connection: "close",
  ]

  /// Takes a frame from the mailbox only when the socket accepts more, so that the mailbox's limit bounds what the
  /// reader has pending.
  private static func forward(
    _ mailbox: Mailbox, after list: [ZoneStatus], to writer: inout any ResponseBodyWriter, on channel: any Channel
  ) async throws {
    let listed = Dictionary(list.map { ($0.zone, $0.seq) }) { first, _ in first }
    try await channel.untilWritable()
    while let frame = await mailbox.next() {
      if let head = frame.head, let seq = listed[head.zone], head.seq <= seq { continue }
      try await writer.write(frame.bytes)
      try await channel.untilWritable()
    }
  }
}

/// The list with which a stream begins. It may be long, and counts towards the budget for responses until it is sent.
private final class FirstEvent: Sendable {
  private let event: Mutex<(bytes: ByteBuffer, share: BodyShare)?>

  /// - Throws: `tooManyRequests` if too many response bytes are already in transfer.
  init(_ list: ZoneList, _ call: Call) throws {
    let bytes = EventHub.event("zones", position: list.feedPosition, list)
    event = Mutex((ByteBuffer(bytes: bytes), try call.answerShare(of: bytes.count)))
  }

  /// A stream lives long; what it began with does not.
  func send(to writer: inout any ResponseBodyWriter, on channel: any Channel) async throws {
    guard let (bytes, share) = event.withLock({ $0.take() }) else { return }
    try await writer.write(bytes)
    try await channel.untilWritable()
    withExtendedLifetime(share) {}
  }
}
