package import ZDCProtocol

/// What the event stream tells.
package enum ServerEvent: Sendable, Hashable {
  /// First of all: my zones that have changed.
  case zones(ZoneList)
  /// A zone has a new commit.
  case head(HeadEvent)
}

extension ServerAPI {
  /// The event stream: one connection, until it ends or the reader lets go. Whoever reads it reconnects, with `since`.
  ///
  /// Events are read when they are asked for. Ends without an error when the server closes it in good order.
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

  /// Events that this version does not know are for newer ones.
  private func decode(_ event: EventStreamParser.Event) throws -> ServerEvent? {
    switch event.name {
    case "zones": .zones(try api.connection.decode(event.data))
    case "head": .head(try api.connection.decode(event.data))
    default: nil
    }
  }
}
