internal import NIOCore

/// The minimum rate at which a server must accept the bytes of requests. Pure logic without I/O.
package struct SendingPace: Sendable {
  enum Verdict {
    /// The socket has accepted everything.
    case idle
    case moving
    case tooSlow
  }

  private var accepted = 0
  private var goal = 0

  /// Ends a window in which bytes waited. In it, the socket must have accepted ``TransferPace/windowBytes``, or
  /// everything that was waiting when the window began.
  ///
  /// - Parameters:
  ///   - written: The total number of bytes that the connection was given.
  ///   - waiting: The number of those bytes that the socket has not accepted.
  mutating func endWindow(written: Int, waiting: Int) -> Verdict {
    let moved = written - waiting - accepted
    let isTooSlow = moved < goal
    accepted += moved
    goal = min(waiting, TransferPace.windowBytes)
    if waiting == 0 { return .idle }
    return isTooSlow ? .tooSlow : .moving
  }
}

/// Closes a connection whose server accepts the bytes of a request too slowly, or stops reading.
///
/// AsyncHTTPClient has no such limit: its write timeout only runs while the socket accepts more.
final class SendingGuard: ChannelOutboundHandler {
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  struct TooSlow: Error {}

  private let window: TimeAmount
  private var pace = SendingPace()
  private var written = 0
  private var timer: Scheduled<Void>?

  init(window: TimeAmount) {
    self.window = window
  }

  /// Adds a guard next to the socket, where the bytes are those that go over the network.
  static func add(to channel: any Channel, window: TimeAmount) throws {
    try channel.pipeline.syncOperations.addHandler(SendingGuard(window: window), position: .first)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    written += unwrapOutboundIn(data).readableBytes
    if timer == nil { startTimer(context) }
    context.write(data, promise: promise)
  }

  /// Closes in the next turn of the event loop, so that a request fails with what was wrong.
  ///
  /// AsyncHTTPClient closes a connection before it fails the request. If the end of the request waits in the
  /// connection, the close fails that write, and the request with it, for being on a closed channel.
  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    context.eventLoop.assumeIsolated().execute { context.close(mode: mode, promise: promise) }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    timer?.cancel()
    timer = nil
  }

  private func startTimer(_ context: ChannelHandlerContext) {
    timer = context.eventLoop.assumeIsolated().scheduleTask(in: window) { self.endWindow(context) }
  }

  private func endWindow(_ context: ChannelHandlerContext) {
    timer = nil
    switch pace.endWindow(written: written, waiting: waitingBytes(context)) {
    case .idle: break
    case .moving: startTimer(context)
    case .tooSlow:
      context.fireErrorCaught(TooSlow())
      context.close(promise: nil)
    }
  }

  /// Returns the number of bytes that the socket has not accepted; zero if the channel is closed.
  private func waitingBytes(_ context: ChannelHandlerContext) -> Int {
    do { return try context.channel.syncOptions?.getOption(.bufferedWritableBytes) ?? 0 } catch { return 0 }
  }
}
