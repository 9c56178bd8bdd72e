internal import HTTPTypes
internal import NIOCore
internal import NIOHTTPTypes

/// Closes a connection whose request comes drop by drop. The server's own idle timeout sees only connections that bring
/// nothing at all, so one byte a minute would hold a connection, and a slot among the possible ones, for ever.
///
/// A request whose head is not complete is not seen here: for that the idle timeout counts.
final class SlowRequestGuard: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPRequestPart
  typealias InboundOut = HTTPRequestPart

  private let window: TimeAmount
  private let leastBytes: Int
  private var received = 0
  private var task: Scheduled<Void>?

  init(window: TimeAmount, leastBytes: Int) {
    self.window = window
    self.leastBytes = leastBytes
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head: schedule(context)
    case .body(let buffer): received += buffer.readableBytes
    case .end: cancel()
    }
    context.fireChannelRead(data)
  }

  func channelInactive(context: ChannelHandlerContext) {
    cancel()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { cancel() }

  private func schedule(_ context: ChannelHandlerContext) {
    received = 0
    task = context.eventLoop.assumeIsolated().scheduleTask(in: window) { [self] in
      guard received >= leastBytes else { return context.close(promise: nil) }
      schedule(context)
    }
  }

  private func cancel() {
    task?.cancel()
    task = nil
  }
}
