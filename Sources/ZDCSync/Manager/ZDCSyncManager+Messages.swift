public import Foundation
internal import ZDCAccounts
internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

/// A pending message that waits for the user's decision: its sender is unknown, or has declared the key that signed it
/// compromised.
///
/// All fields but ``isKeyCompromised`` are unverified claims of the server. The content is verified after the user accepts
/// the sender.
///
/// ```swift
/// for request in try await session.syncManager.messageRequests(forLocalUserID: user.uuid) {
///   show([request.senderID, request.isKeyCompromised ? "may be forged" : "unknown sender"])
/// }
/// ```
public struct ZDCMessageRequest: Sendable, Hashable, Identifiable {
  /// Identifies the request.
  public let id: String
  /// The text of the sender's user ID.
  public let senderID: String
  /// When the server received it.
  public let date: Date
  /// The length of the sealed message.
  public let byteCount: Int
  /// Whether this device has verified that a key of the sender signed the message, and that the sender has declared this
  /// key compromised since. Anyone who has the key may have written the message.
  ///
  /// Always false for an unknown sender, whose messages are not opened.
  public let isKeyCompromised: Bool

  init(_ message: WaitingMessage, isKeyCompromised: Bool) {
    self.isKeyCompromised = isKeyCompromised
    id = NodeID(message: message.messageID, from: message.sender).text
    senderID = message.sender.text
    date = Date(ms: message.receivedMs)
    byteCount = message.length
  }
}

extension ZDCSyncManager {
  /// Asks the server for the messages that wait for the user's decision.
  ///
  /// A user is known if the local user has written to them or accepted their messages, on this device or in a message
  /// that this device has read from another one, or if they are a member of one of the user's own or accepted trees.
  /// Messages of known users come into the inbox with the next pull. Anyone else can write too: show such a request as the
  /// sender's ID and nothing else, and let the user decide. Requests of blocked users are left out. The server deletes a
  /// request of an unknown user after 30 days.
  ///
  /// A message of a known user is a request too if this device has found that the user has declared the key that signed
  /// it compromised: ``ZDCMessageRequest/isKeyCompromised``. Messages that were in the inbox before stay there.
  ///
  /// ```swift
  /// let requests = try await session.syncManager.messageRequests(forLocalUserID: user.uuid)
  /// let senders = Set(requests.map(\.senderID))
  /// ```
  ///
  /// - Returns: The requests, oldest first.
  /// - Throws: `ZDCServerError`, `ZDCTransportError`.
  public func messageRequests(forLocalUserID localUserID: String) async throws -> [ZDCMessageRequest] {
    do {
      let engine = try await engine(for: localUserID)
      let session = engine.session
      guard let inbox = try await engine.inbox() else { return [] }
      let waiting = try await session.waitingMessages(in: inbox.zone.tree)
      return try await session.database.asyncRead { transaction in
        let known = try session.knownSenders(among: Set(waiting.map(\.sender)), transaction)
        let held = try HeldMessageStore(transaction, inbox: inbox.id).all()
        return try waiting.filter { message in
          try (!known.contains(message.sender) || held[message.name] == false)
            && !transaction.contacts.contact(of: message.sender).isBlocked
        }.map { ZDCMessageRequest($0, isKeyCompromised: held[$0.name] != nil) }
      }
    } catch { throw publicError(error) }
  }

  /// Accepts the messages of a user: pending and later ones come into the inbox. Unblock a blocked contact first.
  ///
  /// The user's identity is fetched, verified and pinned first. The messages are announced before the call returns.
  /// Messages under a compromised key (``ZDCMessageRequest/isKeyCompromised``) are accepted as well if they are listed as
  /// such on this device; later ones are requests again.
  ///
  /// ```swift
  /// try await session.syncManager.acceptMessages(fromUserID: senderID, forLocalUserID: user.uuid)
  /// ```
  ///
  /// - Throws: ``ZDCCloudError`` with `unknownUser` if the server shows no valid identity; ``ZDCError`` with
  ///   `syncedElsewhere` if another process syncs; `ZDCServerError`, `ZDCTransportError`, or your delegate's error.
  public func acceptMessages(fromUserID senderID: String, forLocalUserID localUserID: String) async throws {
    try await asEngine {
      let engine = try await self.engine(for: localUserID)
      let session = engine.session
      guard let sender = UserID(text: senderID), sender != session.user,
        try await session.identities.recipients([sender], own: session.keys).keys[sender] != nil
      else { throw ZDCCloudError(.unknownUser) }
      guard let inbox = try await engine.inbox() else { return }
      try await session.api.setSender(sender, to: .accepted, in: inbox.zone.tree)
      try await session.database.asyncReadWrite { transaction in
        try transaction.messages.setKnown(true, sender, localUser: session.localUser, tree: session.appTreeID)
        try HeldMessageStore(transaction, inbox: inbox.id).accept(from: sender)
      }
      _ = try await engine.messageRound().get()
    }
  }

  /// Deletes the pending messages of a user. Messages already in the inbox stay.
  ///
  /// Later messages of the user are requests again. Once they are accepted, devices may report the declined ones as
  /// missing (`messageGap`). To decline messages of a known user under a compromised key changes nothing about later
  /// ones.
  ///
  /// ```swift
  /// try await session.syncManager.declineMessages(fromUserID: senderID, forLocalUserID: user.uuid)
  /// ```
  ///
  /// - Parameters:
  ///   - senderID: The text of the sender's user ID.
  ///   - isBlocking: Whether the server also refuses all later messages of the user.
  ///   - localUserID: The local user who gets the messages.
  /// - Throws: ``ZDCCloudError`` with `unknownUser` for a text that is no user ID; `ZDCServerError`, `ZDCTransportError`.
  public func declineMessages(
    fromUserID senderID: String, isBlocking: Bool = false, forLocalUserID localUserID: String
  ) async throws {
    do {
      let engine = try await engine(for: localUserID)
      let session = engine.session
      guard let sender = UserID(text: senderID) else { throw ZDCCloudError(.unknownUser) }
      guard let inbox = try await engine.inbox() else { return }
      if isBlocking { try await session.api.setSender(sender, to: .blocked, in: inbox.zone.tree) }
      try await session.database.asyncReadWrite { transaction in
        // To decline what a thief may have written is no decision about the sender.
        let isHeld = try HeldMessageStore(transaction, inbox: inbox.id).all().keys.contains { $0.sender == sender }
        guard isBlocking || !isHeld else { return }
        try transaction.messages.setKnown(false, sender, localUser: session.localUser, tree: session.appTreeID)
        try MemberHeadStore.removeAll(of: sender, localUser: session.localUser, transaction)
      }
      for message in try await session.waitingMessages(in: inbox.zone.tree) where message.sender == sender {
        try await session.api.deleteMessage(message.name, in: inbox.zone.tree)
      }
    } catch { throw publicError(error) }
  }
}
