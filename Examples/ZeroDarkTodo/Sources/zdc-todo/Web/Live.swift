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
  static func response(of page: Page, _ manager: ZDCManager, _ request: Request) -> Response {
    stream(request) { send in
      let account = try manager.account(page.user)
      let lastEvent = HTTPField.Name("Last-Event-ID").flatMap { request.headers[$0] }
      let seen = lastEvent ?? request.uri.queryParameters["seen"].map(String.init)
      let current = Current(page, seen: seen)
      // One tick causes several commits and sync states. The page is rendered once for those that arrive together.
      let (changes, change) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
      try await withThrowingDiscardingTaskGroup { group in
        group.addTask {
          let place = page.place
          for try await screen in account.screens(list: place.listID, withActivity: place == .activity) {
            await current.set(screen)
            change.yield()
          }
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
            if let event = try await current.update(account) { send(event) }
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
  private actor Current {
    private var page: Page
    private var seen: String?

    init(_ page: Page, seen: String?) { (self.page, self.seen) = (page, seen) }

    func set(_ screen: Screen) { page.screen = screen }

    func set(_ sync: ZDCSyncState) { page.sync = sync }

    func set(_ senders: [UnknownSender]?) { page.senders = senders }

    /// Returns the new content, or nil if the browser has it.
    func update(_ account: Account) throws -> Event? {
      page.person = try page.place.userID.map(account.people.person)
      let content = page.content
      defer { seen = content.version }
      return content.version == seen ? nil : Event(id: content.version, data: content.text)
    }
  }

  /// A server-sent event.
  private struct Event: Sendable {
    var id: String?
    var data: String

    var frame: [UInt8] {
      var bytes = Array("\(id.map { "id: \($0)\n" } ?? "")data: ".utf8)
      bytes.reserveCapacity(data.utf8.count * 5 / 4)
      for byte in data.utf8 {
        bytes.append(byte)
        if byte == UInt8(ascii: "\n") { bytes += "data: ".utf8 }
      }
      return bytes + "\n\n".utf8
    }
  }

  /// Downloads a photo and sends the downloaded fraction, from 0 to 1.
  static func photo(of task: String, _ account: Account, _ request: Request) -> Response {
    stream(request) { send in
      async let hasPhoto = account.photos.download(of: task)
      let reports = _Concurrency.Task {
        while !_Concurrency.Task.isCancelled {
          if let done = try await account.photos.progress(of: task) { send(Event(data: "\(min(done, 0.99))")) }
          try await _Concurrency.Task.sleep(for: .milliseconds(50))
        }
      }
      defer { reports.cancel() }
      send(Event(data: try await hasPhoto ? "1" : "none"))
    }
  }

  /// Streams the events of `body` until it ends, the browser disconnects or the server stops. A slow browser gets the
  /// newest event.
  private static func stream(
    _ request: Request, _ body: @escaping @Sendable (@escaping @Sendable (Event) -> Void) async throws -> Void
  ) -> Response {
    let (events, continuation) = AsyncStream<Event>.makeStream(bufferingPolicy: .bufferingNewest(1))
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
    _ events: AsyncStream<Event>, to writer: inout any ResponseBodyWriter, of request: Request,
    onClosed: @escaping @Sendable () -> Void
  ) async throws {
    try await request.body.consumeWithInboundCloseHandler { _ in
      for await event in events { try await writer.write(ByteBuffer(bytes: event.frame)) }
    } onInboundClosed: {
      onClosed()
    }
  }
}
