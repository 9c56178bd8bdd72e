internal import NIOCore

/// Counts its connection, and closes it if the address has too many.
final class ConnectionCounter: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = NIOAny
  typealias InboundOut = NIOAny

  private let table: ConnectionTable
  private var party: String?

  init(_ table: ConnectionTable) {
    self.table = table
  }

  func handlerAdded(context: ChannelHandlerContext) {
    party = table.open(context.remoteAddress?.ipAddress.flatMap { IPAddress($0) })
    guard party == nil else { return }
    let channel = context.channel
    // Not here: the rest of the pipeline is still being set up.
    context.eventLoop.execute { channel.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    release()
    context.fireChannelInactive()
  }

  func handlerRemoved(context: ChannelHandlerContext) { release() }

  private func release() {
    if let party { table.close(party) }
    party = nil
  }
}
