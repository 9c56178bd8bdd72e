import Foundation
import HTTPTypes
import Hummingbird
import ServiceLifecycle
import TodoKit
import ZeroDarkCloud

/// Streams of server-sent events: a page that changes, and a download that advances.
enum Live {
  /// Sends the page's content again whenever it changes: after a commit, or because of the network.
  static func response(of page: Page, _ manager: ZDCManager, _ request: Request) -> Response {
    stream(request) { send in
      let account = try manager.account(page.user)
      let current = Current(page)
      try await withThrowingDiscardingTaskGroup { group in
        group.addTask {
          for try await _ in account.screens(list: page.place.listID) {
            if let content = try await current.update(account, sync: nil) { send(content) }
          }
        }
        group.addTask {
          for try await sync in account.session.syncManager.syncStates(forLocalUserID: page.user) {
            if let content = try await current.update(account, sync: sync) { send(content) }
          }
        }
      }
    }
  }

  /// The page as the browser has it.
  ///
  /// The two observations are not ordered. Each reads the database again, one after the other, so that the page never
  /// goes back to what it was.
  private actor Current {
    private var page: Page
    private var sent = ""

    init(_ page: Page) { self.page = page }

    /// Returns the new content, or nil if the browser has it already.
    func update(_ account: Account, sync: ZDCSyncState?) throws -> String? {
      page.sync = sync ?? page.sync
      page.screen = try account.screenNow(list: page.place.listID)
      let content = page.content.text
      defer { sent = content }
      return content == sent ? nil : content
    }
  }

  /// Downloads a photo and sends how much of it is here, as a number from 0 to 1.
  static func photo(of task: String, _ account: Account, _ request: Request) -> Response {
    stream(request) { send in
      async let photo = account.photo(of: task)
      let reports = _Concurrency.Task {
        while !_Concurrency.Task.isCancelled {
          if let done = try await account.photoProgress(of: task) { send("\(min(done, 0.99))") }
          try await _Concurrency.Task.sleep(for: .milliseconds(50))
        }
      }
      defer { reports.cancel() }
      send(try await photo == nil ? "none" : "1")
    }
  }

  /// Sends what `body` sends until it ends, the browser goes away or the server stops. A slow browser gets the newest.
  private static func stream(
    _ request: Request, _ body: @escaping @Sendable (@escaping @Sendable (String) -> Void) async throws -> Void
  ) -> Response {
    let (events, continuation) = AsyncStream<String>.makeStream(bufferingPolicy: .bufferingNewest(1))
    let headers: HTTPFields = [
      .contentType: "text/event-stream", .cacheControl: "no-store, no-transform", .connection: "close",
    ]
    return Response(
      status: .ok, headers: headers,
      body: ResponseBody { writer in
        let producer = _Concurrency.Task {
          defer { continuation.finish() }
          try await body { continuation.yield($0) }
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
    _ events: AsyncStream<String>, to writer: inout any ResponseBodyWriter, of request: Request,
    onClosed: @escaping @Sendable () -> Void
  ) async throws {
    try await request.body.consumeWithInboundCloseHandler { _ in
      for await event in events { try await writer.write(ByteBuffer(string: frame(event))) }
    } onInboundClosed: {
      onClosed()
    }
  }

  private static func frame(_ event: String) -> String {
    event.split(separator: "\n", omittingEmptySubsequences: false).map { "data: \($0)\n" }.joined() + "\n"
  }
}
