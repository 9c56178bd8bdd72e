package import ZDCProtocol

/// An event of the event stream.
package enum ServerEvent: Sendable, Hashable {
  /// The first event: the user's zones that have changed.
  case zones(ZoneList)
  /// A zone has a new commit.
  case head(HeadEvent)
  /// A message waits in the mailbox.
  case message
}

extension ServerAPI {
  /// Returns the event stream: one connection, until the stream ends or the reader stops reading. The reader is
  /// responsible for reconnecting, with `since`.
  ///
  /// Events are read on demand. The stream finishes without an error if the server closes it cleanly.
  package func events(since position: FeedPosition?) -> AsyncThrowingStream<ServerEvent, any Error> {
    let reader = EventReader(api: self, position: position)
    return AsyncThrowingStream { try await reader.next() }
  }
}

private actor EventReader {
  private let api: ServerAPI
  private let position: FeedPosition?
  private var body: TransportBody?
  private var parser = EventStreamParser()
  private var pending: ArraySlice<ServerEvent> = []

  init(api: ServerAPI, position: FeedPosition?) {
    self.api = api
    self.position = position
  }

  func next() async throws -> ServerEvent? {
    while pending.isEmpty {
      guard let slice = try await openBody().next() else { return nil }
      pending = ArraySlice(try parser.push(slice).compactMap(decode))
    }
    return pending.popFirst()
  }

  private func openBody() async throws -> TransportBody {
    if let body { return body }
    var request = TransportRequest.get(Routes.events, query: [("since", position?.text)])
    request.headers["accept"] = TransportRequest.eventsType
    let response = try await api.open(request)
    guard response.headers["content-type"]?.hasPrefix(TransportRequest.eventsType) == true else {
      throw TransportError(.badAnswer, origin: api.connection.origin)
    }
    body = response.body
    return response.body
  }

  /// Decodes an event. Events that this version does not know are skipped.
  private func decode(_ event: EventStreamParser.Event) throws -> ServerEvent? {
    switch event.name {
    case "zones": .zones(try api.connection.decode(event.data))
    case "head": .head(try api.connection.decode(event.data))
    case "message": .message
    default: nil
    }
  }
}
