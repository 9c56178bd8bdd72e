package import ZDCProtocol

extension ServerAPI {
  /// Delivers envelopes, at most ``Limits/envelopesPerRequest``. The same bytes may be sent again at any time.
  ///
  /// - Returns: one result for each envelope, in their order.
  package func deliver(_ envelopes: [[UInt8]]) async throws -> [DeliveryResult] {
    var body = Bundle.Writer(capacity: envelopes.reduce(0) { $0 + $1.count + 5 })
    for envelope in envelopes { body.append(envelope: envelope) }
    let request = TransportRequest(
      .post, Routes.messages, headers: ["content-type": Bundle.mediaType], body: .bytes(body.bytes))
    let results = try await json(request, as: DeliveryResponse.self).results
    guard results.count == envelopes.count else { throw TransportError(.badAnswer, origin: connection.origin) }
    return results
  }

  /// Returns a page of the messages that wait in an own inbox. `MessageList.next` is the `cursor` of the next page.
  package func waitingMessages(in inbox: TreeID, after cursor: UInt64) async throws -> MessageList {
    try await json(.get(Routes.path(Routes.inbox, inbox.text), query: [("after", String(cursor))]))
  }

  /// Downloads envelopes as a bundle, in the order asked, without those that are gone. It may stop early.
  package func envelopes(_ names: [MessageName], in inbox: TreeID) async throws -> [UInt8] {
    let request = TransportRequest.bytes(
      .post, Routes.path(Routes.inboxEnvelopes, inbox.text), MessageName.bytes(of: names))
    return try requireBundle(try await answer(to: request, limit: Self.bundleBytes)).body
  }

  /// Deletes an envelope. Succeeds also if it is gone.
  package func deleteMessage(_ name: MessageName, in inbox: TreeID) async throws {
    let path = Routes.path(Routes.inboxMessage, inbox.text, name.sender.text, name.id.text)
    _ = try await answer(to: TransportRequest(.delete, path), limit: Limits.jsonBytes)
  }

  /// Says what a user is to the owner of an inbox; nil forgets them.
  package func setSender(_ user: UserID, to state: SenderRequest.State?, in inbox: TreeID) async throws {
    let path = Routes.path(Routes.sender, inbox.text, user.text)
    let request: TransportRequest =
      if let state { try .json(.put, path, SenderRequest(state: state)) } else { TransportRequest(.delete, path) }
    _ = try await answer(to: request, limit: Limits.jsonBytes)
  }
}
