import Foundation
import NIOCore
import NIOPosix
import Synchronization

/// An HTTP server that answers each request with the next step of a script.
final class ScriptedStore: Sendable {
  enum Step: Sendable {
    case answer(Int, String)
    /// An answer to HEAD: the length of a body that does not follow.
    case head(UInt64)
    /// Closes the connection without an answer.
    case cut
    /// Announces a body of 100 bytes and closes the connection after one.
    case cutBody
    case silence
  }

  private struct State {
    var steps: [Step]
    var requests: [String] = []
  }

  let port: Int
  private let channel: any Channel
  private let state: Box

  private final class Box: Sendable {
    let state: Mutex<State>
    private let respond: (@Sendable (String) -> Step)?

    init(_ steps: [Step], _ respond: (@Sendable (String) -> Step)?) {
      state = Mutex(State(steps: steps))
      self.respond = respond
    }

    func next(_ request: String) -> Step {
      state.withLock { $0.requests.append(request) }
      if let respond { return respond(request) }
      return state.withLock { state in
        state.steps.isEmpty ? .answer(500, "the script is over") : state.steps.removeFirst()
      }
    }
  }

  private init(channel: any Channel, state: Box) throws {
    self.channel = channel
    self.state = state
    port = channel.localAddress?.port ?? 0
  }

  /// All requests so far, whole.
  var requests: [String] { state.state.withLock { $0.requests } }

  /// - Parameter respond: answers all requests in place of the steps.
  static func with(
    _ steps: [Step] = [], respond: (@Sendable (String) -> Step)? = nil, _ body: (ScriptedStore) async throws -> Void
  ) async throws {
    let box = Box(steps, respond)
    let channel = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(Handler(box))
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    let result: Result<Void, any Error>
    do { result = .success(try await body(ScriptedStore(channel: channel, state: box))) } catch {
      result = .failure(error)
    }
    try await channel.close()
    try result.get()
  }

  private final class Handler: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let box: Box
    private var received = ""

    init(_ box: Box) { self.box = box }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      received += String(buffer: unwrapInboundIn(data))
      guard let head = received.range(of: "\r\n\r\n") else { return }
      let length = received[..<head.lowerBound].lowercased().split(separator: "\r\n")
        .first { $0.hasPrefix("content-length:") }.flatMap { Int($0.dropFirst(15).drop { $0 == " " }) }
      guard received[head.upperBound...].utf8.count >= length ?? 0 else { return }
      let step = box.next(received)
      received = ""
      take(step, context)
    }

    private func take(_ step: Step, _ context: ChannelHandlerContext) {
      switch step {
      case .answer(let status, let body):
        send("HTTP/1.1 \(status) X\r\ncontent-length: \(body.utf8.count)\r\n\r\n\(body)", context)
      case .head(let length): send("HTTP/1.1 200 X\r\ncontent-length: \(length)\r\n\r\n", context)
      case .cut: context.close(promise: nil)
      case .cutBody:
        send("HTTP/1.1 200 X\r\ncontent-length: 100\r\n\r\n1", context)
        context.close(promise: nil)
      case .silence: break
      }
    }

    private func send(_ text: String, _ context: ChannelHandlerContext) {
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    }
  }
}
