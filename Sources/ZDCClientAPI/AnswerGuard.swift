internal import NIOCore
internal import NIOHTTP1

/// Passes on only what an HTTP server may answer: for each request one final head, its body, and its end.
///
/// Some other sequences, such as a status below 100, crash the process in AsyncHTTPClient. A server can send anything,
/// and so can the network on a connection without TLS.
final class AnswerGuard: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias InboundOut = HTTPClientResponsePart
  typealias OutboundIn = HTTPClientRequestPart
  typealias OutboundOut = HTTPClientRequestPart

  /// The server answered with something that is not HTTP.
  struct MalformedAnswer: Error {}

  /// Maximum number of informational heads per answer. Servers send one or two.
  static let informationalHeads = 32

  private enum State {
    case idle
    case waitingForHead(informational: Int)
    case receivingBody
    case refused
  }

  private var state = State.idle

  /// Adds a guard between the decoder and the client's own handler.
  static func add(to channel: any Channel) throws {
    let pipeline = channel.pipeline.syncOperations
    let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
    try pipeline.addHandler(AnswerGuard(), position: .after(decoder))
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    if case .head = unwrapOutboundIn(data), case .idle = state { state = .waitingForHead(informational: 0) }
    context.write(data, promise: promise)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch (state, unwrapInboundIn(data)) {
    case (.waitingForHead(let count), .head(let head))
    where 100..<200 ~= head.status.code && head.status != .switchingProtocols && count < Self.informationalHeads:
      state = .waitingForHead(informational: count + 1)
    case (.waitingForHead, .head(let head)) where head.status.code >= 200:
      state = .receivingBody
      context.fireChannelRead(data)
    case (.receivingBody, .body): context.fireChannelRead(data)
    case (.receivingBody, .end):
      state = .idle
      context.fireChannelRead(data)
    case (.refused, _): break
    default:
      state = .refused
      context.fireErrorCaught(MalformedAnswer())
      context.close(promise: nil)
    }
  }
}
