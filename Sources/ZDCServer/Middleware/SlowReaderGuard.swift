internal import NIOCore

/// Closes a connection whose client does not read, and lets the writer of a response wait until the socket accepts
/// more.
///
/// It is the handler next to the socket, so it counts bytes on the wire, also under TLS. A timer runs only while bytes
/// wait to be sent.
final class SlowReaderGuard: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny
  typealias InboundOut = NIOAny
  typealias OutboundIn = IOData
  typealias OutboundOut = IOData

  private let window: TimeAmount
  private var context: ChannelHandlerContext?
  private var written: UInt64 = 0
  /// The number of bytes that the client had accepted when the window began.
  private var takenBefore: UInt64 = 0
  private var task: Scheduled<Void>?
  private var waiting: [EventLoopPromise<Void>] = []

  init(window: TimeAmount) {
    self.window = window
  }

  func handlerAdded(context: ChannelHandlerContext) { self.context = context }

  func handlerRemoved(context: ChannelHandlerContext) {
    end()
    self.context = nil
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    written &+= UInt64(unwrapOutboundIn(data).readableBytes)
    context.write(data, promise: promise)
  }

  func flush(context: ChannelHandlerContext) {
    context.flush()
    if task == nil { watch(context) }
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable { release() }
    context.fireChannelWritabilityChanged()
  }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  /// Succeeds when the socket accepts more, or when it is closed: then the next write fails.
  fileprivate func whenWritable(on loop: any EventLoop) -> EventLoopFuture<Void> {
    guard let channel = context?.channel, channel.isActive, !channel.isWritable else {
      return loop.makeSucceededVoidFuture()
    }
    let promise = loop.makePromise(of: Void.self)
    waiting.append(promise)
    return promise.futureResult
  }

  private func watch(_ context: ChannelHandlerContext) {
    let pending = pendingBytes(context)
    guard pending > 0 else { return }
    takenBefore = written &- pending
    task = context.eventLoop.assumeIsolated().scheduleTask(in: window) { self.windowHasEnded() }
  }

  private func windowHasEnded() {
    task = nil
    guard let context else { return }
    let pending = pendingBytes(context)
    guard pending == 0 || written &- pending != takenBefore else { return context.close(promise: nil) }
    watch(context)
  }

  /// Returns the bytes written but not yet in the system's buffer. A channel without this option is never closed here.
  private func pendingBytes(_ context: ChannelHandlerContext) -> UInt64 {
    let bytes = try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)
    return UInt64(max(0, bytes ?? 0))
  }

  private func release() {
    let all = waiting
    waiting = []
    for promise in all { promise.succeed() }
  }

  private func end() {
    task?.cancel()
    task = nil
    release()
  }
}

extension Channel {
  /// Waits until the socket accepts more.
  ///
  /// A write of the async channel reaches the event loop after the call has returned. This check runs on the event
  /// loop, after that write.
  func untilWritable() async throws {
    try await withTaskCancellationHandler {
      try await eventLoop.flatSubmit {
        do {
          let handler = try self.pipeline.syncOperations.handler(type: SlowReaderGuard.self)
          return handler.whenWritable(on: self.eventLoop)
        } catch { return self.eventLoop.makeFailedFuture(error) }
      }.get()
      try Task.checkCancellation()
    } onCancel: {
      close(promise: nil)
    }
  }
}
