import Foundation
import HTTPTypes
import Hummingbird
import ServiceLifecycle
import TodoKit
import ZeroDarkCloud

/// Streams of server-sent events: updates of a page, and the progress of a download.
enum Live {
  /// Sends the page's content again after each change of the database or of the sync state.
  static func response(of page: Page, _ manager: ZDCManager, _ request: Request) -> Response {
    stream(request) { send in
      let account = try manager.account(page.user)
      let current = Current(page)
      // One tick causes several commits and sync states. Those that arrive during a reading need only one more.
      let (changes, change) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
      try await withThrowingDiscardingTaskGroup { group in
        group.addTask {
          for try await _ in account.screens(list: page.place.listID) { change.yield() }
        }
        group.addTask {
          for try await sync in account.session.syncManager.syncStates(forLocalUserID: page.user) {
            await current.set(sync)
            change.yield()
          }
        }
        group.addTask {
          while true {
            await current.set(try await unknownSenders(account))
            change.yield()
            try await _Concurrency.Task.sleep(for: pauseBetweenRequests)
          }
        }
        group.addTask {
          for await _ in changes {
            if let content = try await current.update(account) { send(content) }
          }
        }
      }
    }
  }

  /// The messages of unknown senders are not part of the database: the server is asked for them.
  private static let pauseBetweenRequests = Duration.seconds(5)

  /// Returns the users who are unknown and have sent messages, or nil if the server cannot be asked.
  static func unknownSenders(_ account: Account) async throws -> [UnknownSender]? {
    do { return try await account.people.unknownSenders() } catch is ZDCTransportError {
      return nil
    } catch is ZDCServerError {
      return nil
    }
  }

  /// The content that the browser has.
  ///
  /// The observations are not ordered. The database is read again after each, so that the page never returns to an
  /// earlier state.
  private actor Current {
    private var page: Page
    private var sent = ""

    init(_ page: Page) { self.page = page }

    func set(_ sync: ZDCSyncState) { page.sync = sync }

    func set(_ senders: [UnknownSender]?) { page.senders = senders }

    /// Returns the new content, or nil if it has not changed.
    func update(_ account: Account) throws -> String? {
      page.person = try page.place.userID.map(account.people.person)
      page.screen = try account.screenNow(list: page.place.listID)
      let content = page.content.text
      defer { sent = content }
      return content == sent ? nil : content
    }
  }

  /// Downloads a photo and sends the downloaded fraction, from 0 to 1.
  static func photo(of task: String, _ account: Account, _ request: Request) -> Response {
    stream(request) { send in
      async let hasPhoto = account.photos.download(of: task)
      let reports = _Concurrency.Task {
        while !_Concurrency.Task.isCancelled {
          if let done = try await account.photos.progress(of: task) { send("\(min(done, 0.99))") }
          try await _Concurrency.Task.sleep(for: .milliseconds(50))
        }
      }
      defer { reports.cancel() }
      send(try await hasPhoto ? "1" : "none")
    }
  }

  /// Streams the events of `body` until it ends, the browser disconnects or the server stops. A slow browser gets the
  /// newest event.
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
