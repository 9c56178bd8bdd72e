internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// Closes a connection whose request arrives too slowly. The server's own idle timeout detects only connections that
/// send nothing at all, so one byte a minute would hold a connection, and one of the limited slots, forever.
///
/// A head must be complete within one window, which begins when the connection opens or the last response ends. Its
/// total size is limited too, because the parser limits only each field. A body must deliver a minimum of bytes in each
/// of its shorter windows. A parse error closes the connection.
final class SlowRequestGuard: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart
  typealias OutboundIn = HTTPResponsePart
  typealias OutboundOut = HTTPResponsePart

  struct Timing: Sendable {
    let idle: TimeAmount
    let body: TimeAmount
    let leastBytes: Int
    let stalled: TimeAmount

    init(_ bounds: Configuration.Bounds) {
      idle = .seconds(Int64(bounds.idleSeconds))
      body = .seconds(Int64(min(bounds.bodySeconds, bounds.idleSeconds)))
      leastBytes = bounds.bytesPerWindow
      stalled = .seconds(Int64(bounds.stalledSeconds))
    }
  }

  private let timing: Timing
  private var received = 0
  private var unanswered = 0
  private var task: Scheduled<Void>?
  private let headBytes = HeadBytes()

  init(_ timing: Timing) {
    self.timing = timing
  }

  func handlerAdded(context: ChannelHandlerContext) {
    awaitHead(context)
    // Before the parser and TLS: the limit does not need to be exact.
    do {
      try context.pipeline.syncOperations.addHandlers(
        [SlowReaderGuard(window: timing.stalled), headBytes], position: .first)
    } catch { context.close(promise: nil) }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head:
      unanswered += 1
      headBytes.stop()
      awaitBody(context)
    case .body(let buffer): received += buffer.readableBytes
    case .end:
      cancel()
      // The request was answered before its body was complete.
      if unanswered == 0 { awaitHead(context) }
    }
    context.fireChannelRead(data)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .end = unwrapOutboundIn(data) {
      unanswered -= 1
      // The next request may have arrived already; a body that is still arriving keeps its own window.
      if unanswered == 0, task == nil { awaitHead(context) }
    }
    context.write(data, promise: promise)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    context.close(promise: nil)
    context.fireErrorCaught(error)
  }

  func channelInactive(context: ChannelHandlerContext) {
    cancel()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { cancel() }

  private func awaitHead(_ context: ChannelHandlerContext) {
    cancel()
    headBytes.start()
    task = context.eventLoop.assumeIsolated().scheduleTask(in: timing.idle) { context.close(promise: nil) }
  }

  private func awaitBody(_ context: ChannelHandlerContext) {
    cancel()
    received = 0
    task = context.eventLoop.assumeIsolated().scheduleTask(in: timing.body) { [self] in
      guard received >= timing.leastBytes else { return context.close(promise: nil) }
      awaitBody(context)
    }
  }

  private func cancel() {
    task?.cancel()
    task = nil
  }
}

/// Closes a connection whose request head exceeds the limit. The decoder behind it takes 80 KiB of path, names and values; this
/// bounds everything else.
private final class HeadBytes: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  /// One read may contain a head and part of its body.
  private static let limit = 256 << 10
  /// Nil while no head is expected.
  private var received: Int? = 0

  func start() { received = 0 }
  func stop() { received = nil }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    if let received { self.received = received + unwrapInboundIn(data).readableBytes }
    guard received ?? 0 <= Self.limit else { return context.close(promise: nil) }
    context.fireChannelRead(data)
  }
}
