import Foundation
import HTTPTypes
import Hummingbird
import ServiceLifecycle
import TodoKit
import ZeroDarkCloud

/// Streams of server-sent events: updates of a page, and the progress of a download.
enum Live {
  /// Sends the page's content again after each change of the database or of the sync state.
  ///
  /// The browser names the content that it has: in the address that the document gave it, or after a lost connection the
  /// last event.
  ///
  /// - Parameter page: The page without its screen, which is read here.
  static func response(of page: Page, _ manager: ZDCManager, _ request: Request) -> Response {
    stream(request) { send in
      let account = try manager.account(page.user)
      let lastEvent = HTTPField.Name("Last-Event-ID").flatMap { request.headers[$0] }
      let seen = lastEvent ?? request.uri.queryParameters["seen"].map(String.init)
      try await PageUpdates(of: page, account, seen: seen, send).run()
    }
  }

  /// Returns the users who are unknown and have sent messages, or nil if the server cannot be asked.
  static func unknownSenders(_ account: Account) async throws -> [UnknownSender]? {
    do { return try await account.people.unknownSenders() } catch is ZDCTransportError {
      return nil
    } catch is ZDCServerError {
      return nil
    }
  }

  /// A server-sent event.
  struct Event: Sendable {
    var id: String?
    var data: String

    var frame: ByteBuffer {
      var buffer = ByteBuffer()
      if let id { buffer.writeString("id: \(id)\n") }
      for line in data.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false) {
        buffer.writeString("data: ")
        buffer.writeBytes(line)
        buffer.writeString("\n")
      }
      buffer.writeString("\n")
      return buffer
    }
  }

  /// Downloads a photo and sends the downloaded fraction, from 0 to 1.
  static func photo(of task: String, _ account: Account, _ request: Request) -> Response {
    stream(request) { send in
      async let hasPhoto = account.photos.download(of: task)
      let reports = _Concurrency.Task {
        while !_Concurrency.Task.isCancelled {
          if let done = try await account.photos.progress(of: task) { send { Event(data: "\(min(done, 0.99))") } }
          try await _Concurrency.Task.sleep(for: .milliseconds(50))
        }
      }
      defer { reports.cancel() }
      let result = Event(data: try await hasPhoto ? "1" : "none")
      send { result }
    }
  }

  /// Makes an event when it can be sent, or nil if there is nothing to send.
  typealias Next = @Sendable () async throws -> Event?

  /// Streams the events of `body` until it ends, the browser disconnects or the server stops. A slow browser gets the
  /// newest event.
  private static func stream(
    _ request: Request, _ body: @escaping @Sendable (@escaping @Sendable (@escaping Next) -> Void) async throws -> Void
  ) -> Response {
    let (events, continuation) = AsyncStream<Next>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let headers: HTTPFields = [
      .contentType: "text/event-stream", .cacheControl: "no-store, no-transform", .connection: "close",
    ]
    return Response(
      status: .ok, headers: headers,
      body: ResponseBody { writer in
        let producer = _Concurrency.Task {
          defer { continuation.finish() }
          do { try await body { continuation.yield($0) } } catch is CancellationError {} catch {
            Output.note("zdc-todo: live updates of \(request.uri.path) ended: \(Failure(error).message)")
          }
        }
        defer { producer.cancel() }
        try await withGracefulShutdownHandler {
          try await forward(events, to: &writer, of: request) { continuation.finish() }
        } onGracefulShutdown: {
          continuation.finish()
        }
        try await writer.finish(nil)
      })
  }

  private static func forward(
    _ events: AsyncStream<Next>, to writer: inout any ResponseBodyWriter, of request: Request,
    onClosed: @escaping @Sendable () -> Void
  ) async throws {
    try await request.body.consumeWithInboundCloseHandler { _ in
      for await next in events {
        if let event = try await next() { try await writer.write(event.frame) }
      }
    } onInboundClosed: {
      onClosed()
    }
  }
}
