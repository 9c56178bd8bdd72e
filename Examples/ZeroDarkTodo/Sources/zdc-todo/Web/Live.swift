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
      // Only events that are sent are made: each is the difference from the one before.
      let update: Next = { try await current.update(account) }
      let (readings, start) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
      let readLater: @Sendable () async -> Void = { if await current.needsReading() { start.yield() } }
      try await withThrowingDiscardingTaskGroup { group in
        group.addTask {
          let screens = account.screens(
            list: page.place.listID, withActivity: page.place == .activity, withProgress: false)
          for try await screen in screens {
            if await current.set(screen) { send(update) }
          }
        }
        group.addTask { for try await _ in account.commits() { await readLater() } }
        group.addTask {
          for try await sync in account.session.syncManager.syncStates(forLocalUserID: page.user) {
            await current.set(sync)
            await readLater()
          }
        }
        group.addTask {
          while true {
            await current.set(try await unknownSenders(account))
            await readLater()
            try await _Concurrency.Task.sleep(for: pauseBetweenRequests)
          }
        }
        group.addTask {
          for await _ in readings {
            try await _Concurrency.Task.sleep(for: pauseForProgress)
            try await current.read(account)
            send(update)
          }
        }
      }
    }
  }

  /// While a change is sent or received, its progress changes several times within milliseconds. The browser is shown the
  /// change first.
  private static let pauseForProgress = Duration.milliseconds(100)

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
    private var rows: HTML.RowVersions = [:]
    /// The number of screens that were set.
    private var screens = 0
    private var isReadingDue = false

    init(_ page: Page, seen: String?) { (self.page, self.seen) = (page, seen) }

    /// - Returns: Whether a reading must be started. One that has not begun covers this change too.
    func needsReading() -> Bool {
      defer { isReadingDue = true }
      return !isReadingDue
    }

    /// Reads the screen, unless it is set in the meantime.
    func read(_ account: Account) async throws {
      isReadingDue = false
      let number = screens
      let screen = try await account.screen(list: page.place.listID, withActivity: page.place == .activity)
      if number == screens { page.screen = screen }
    }

    /// - Returns: Whether the page must be sent now.
    func set(_ screen: Screen) -> Bool {
      defer { page.screen = screen }
      screens += 1
      return screen.hasNews(since: page.screen)
    }

    func set(_ sync: ZDCSyncState) { page.sync = sync }

    func set(_ senders: [UnknownSender]?) { page.senders = senders }

    /// Returns what has changed in the content, or nil if the browser has it.
    func update(_ account: Account) throws -> Event? {
      page.person = try page.place.userID(own: page.user).map(account.people.person)
      let content = page.content
      let (known, isSeen) = (rows, content.version == seen)
      if isSeen && !known.isEmpty { return nil }
      (seen, rows) = (content.version, content.rowVersions)
      return isSeen ? nil : Event(id: content.version, data: content.text(without: known))
    }
  }

  /// A server-sent event.
  private struct Event: Sendable {
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
  private typealias Next = @Sendable () async throws -> Event?

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
