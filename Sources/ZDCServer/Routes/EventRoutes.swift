internal import HTTPTypes
internal import Hummingbird
internal import NIOCore
internal import ServiceLifecycle
internal import ZDCProtocol

/// Server-Sent Events: first the zones that have changed, then every new head.
enum EventRoutes {
  static func stream(_ call: Call) async throws -> Response {
    let session = try call.authenticated
    let since = call.position
    // Subscribed before the list is read: a commit in between is in both, and is not sent twice.
    let subscription = try call.core.hub.subscribe(session)
    let channel = call.context.channel
    subscription.mailbox.onOverflow { channel.close(promise: nil) }
    do {
      let list = try await call.read { reader in
        // A session that ended before the stream was known to the hub is not found by those who close its streams.
        guard try reader.session(tokenHash: session.tokenHash) != nil else {
          throw ServerError(.unauthorized, "no such session: log in")
        }
        return try Zones.list(of: session.user, since: since, in: reader)
      }
      return response(call, subscription, list)
    } catch {
      call.core.hub.unsubscribe(subscription)
      throw error
    }
  }

  private static func response(_ call: Call, _ subscription: EventHub.Subscription, _ list: ZoneList) -> Response {
    let request = call.request
    let hub = call.core.hub
    let channel = call.context.channel
    let body = ResponseBody { writer in
      defer { hub.unsubscribe(subscription) }
      try await writer.write(ByteBuffer(bytes: EventHub.event("zones", position: list.feedPosition, list)))
      // Streams end with the server: who waits for a commit that will not come must not hold the shutdown up.
      try await withGracefulShutdownHandler {
        try await request.body.consumeWithInboundCloseHandler { _ in
          try await forward(subscription.mailbox, after: list.zones, to: &writer, on: channel)
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

  /// A proxy that collects an answer before it passes it on, or compresses it, would hold every event back. The server
  /// closes the connection after a stream: a client that sent its next request on it would get no answer.
  private static let headers: HTTPFields = [
    .contentType: "text/event-stream", .cacheControl: "no-store, no-transform", .accelBuffering: "no",
    .connection: "close",
  ]

  /// A frame leaves the mailbox only when the socket takes it, so that the mailbox's bound is the reader's.
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
