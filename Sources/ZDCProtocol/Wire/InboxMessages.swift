/// The answer for one envelope of a delivery.
package enum DeliveryResult: String, Codable, Sendable, Hashable {
  /// The envelope waits for its recipient.
  case delivered
  /// The recipient has a message with this id from this sender.
  case exists
  /// The recipient's mailbox, or the sender's share of it, has no room.
  case mailboxFull
  /// The recipient has a newer key than the one that the envelope is sealed for.
  case recipientKeyStale
  /// The recipient wants no message from the sender.
  case blocked
  /// The sender's outbox does not have the content that the envelope names.
  case attachmentMissing
  case accountClosed
  case notFound

  /// Whether the recipient has the message, or will find it in the mailbox.
  package var isStored: Bool { self == .delivered || self == .exists }
}

/// The answer to `POST /v1/messages`, in the order of the envelopes.
package struct DeliveryResponse: Codable, Sendable, Hashable {
  package var receivedMs: UInt64
  package var results: [DeliveryResult]

  package init(receivedMs: UInt64, results: [DeliveryResult]) {
    self.receivedMs = receivedMs
    self.results = results
  }
}

/// A message that waits in the caller's mailbox. All of it is the server's word until the envelope is opened.
package struct WaitingMessage: Codable, Sendable, Hashable {
  /// Grows with each message that the server stores.
  package var cursor: UInt64
  package var sender: UserID
  package var messageID: MessageID
  /// The length of the envelope, in bytes.
  package var length: Int
  package var receivedMs: UInt64
  /// Whether the recipient does not know the sender.
  package var isRequest: Bool

  package init(
    cursor: UInt64, sender: UserID, messageID: MessageID, length: Int, receivedMs: UInt64, isRequest: Bool
  ) {
    self.cursor = cursor
    self.sender = sender
    self.messageID = messageID
    self.length = length
    self.receivedMs = receivedMs
    self.isRequest = isRequest
  }

  package var name: MessageName { MessageName(sender: sender, id: messageID) }
}

package struct MessageList: Codable, Sendable, Hashable {
  package var messages: [WaitingMessage]
  /// The `after` of the next page; nil if this is the last one.
  package var next: UInt64?

  package init(messages: [WaitingMessage], next: UInt64?) {
    self.messages = messages
    self.next = next
  }
}

/// `PUT /v1/trees/{treeID}/senders/{userID}`
package struct SenderRequest: Codable, Sendable, Hashable {
  package enum State: String, Codable, Sendable {
    case accepted, blocked
  }

  package var state: State

  package init(state: State) {
    self.state = state
  }
}

/// The sender and the id of a message.
package struct MessageName: Sendable, Hashable {
  package var sender: UserID
  package var id: MessageID

  package static let byteCount = 48

  package init(sender: UserID, id: MessageID) {
    self.sender = sender
    self.id = id
  }

  /// Decodes names that follow one another: n × (`b[32] sender ‖ b[16] msgID`).
  package static func all(_ bytes: [UInt8]) throws -> [MessageName] {
    guard bytes.count % byteCount == 0 else {
      throw ServerError(.invalidRequest, "expected a list of user ids and message ids")
    }
    var reader = ByteReader(bytes)
    var names: [MessageName] = []
    while reader.remaining > 0 { names.append(MessageName(sender: try reader.read32(), id: try reader.read16())) }
    return names
  }

  package static func bytes(of names: [MessageName]) -> [UInt8] {
    names.flatMap { $0.sender.bytes + $0.id.bytes }
  }
}
