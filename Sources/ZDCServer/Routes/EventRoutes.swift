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
    let (first, listed) = (try FirstEvent(list, call), ListedHeads(list.zones))
    let body = ResponseBody { writer in
      defer { hub.unsubscribe(subscription) }
      try await first.send(to: &writer, on: channel)
      // Streams end with the server: a stream that waits for a commit must not delay the shutdown.
      try await withGracefulShutdownHandler {
        try await request.body.consumeWithInboundCloseHandler { _ in
          try await forward(subscription.mailbox, after: listed, to: &writer, on: channel)
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
    _ mailbox: Mailbox, after listed: ListedHeads, to writer: inout any ResponseBodyWriter, on channel: any Channel
  ) async throws {
    try await channel.untilWritable()
    while let frame = await mailbox.next() {
      if listed.has(frame.head) { continue }
      try await writer.write(frame.bytes)
      try await channel.untilWritable()
    }
  }
}

/// The heads in the list with which a stream begins, for as long as a commit may take to come to the stream as well. They
/// would otherwise be in memory as long as the stream is, megabytes for each stream of an account with many zones.
final class ListedHeads: Sendable {
  private static let kept: Duration = .seconds(60)

  private let seqs: Mutex<[ZoneID: UInt64]>
  private let end = ContinuousClock.now + ListedHeads.kept

  init(_ list: [ZoneStatus]) { seqs = Mutex(Dictionary(list.map { ($0.zone, $0.seq) }) { first, _ in first }) }

  var count: Int { seqs.withLock(\.count) }

  /// Whether the list has this head, or a later one of its zone. A heartbeat, every few seconds, has none.
  func has(_ head: ZoneStatus?, at now: ContinuousClock.Instant = .now) -> Bool {
    seqs.withLock { seqs in
      if now >= end { seqs = [:] }
      guard let head, let seq = seqs[head.zone] else { return false }
      return head.seq <= seq
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
