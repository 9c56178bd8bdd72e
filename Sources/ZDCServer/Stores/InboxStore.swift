package import ZDCProtocol

/// The state of a sender in an inbox; empty for a user whom the inbox does not know.
package struct SenderState: OptionSet, Sendable, Hashable {
  package let rawValue: Int

  package init(rawValue: Int) { self.rawValue = rawValue }

  /// Has delivered a message. Only a delivery sets it.
  package static let hasWritten = SenderState(rawValue: 1)
  /// The owner accepts their messages.
  package static let accepted = SenderState(rawValue: 2)
  /// The owner has blocked them.
  package static let blocked = SenderState(rawValue: 4)
}

/// Sums over the envelopes of an inbox.
package struct InboxUsage: Sendable, Hashable {
  package typealias Share = InboxBounds.Share

  package var all = Share()
  package var requests = Share()
  /// Those of one sender.
  package var sender = Share()

  package init() {}
}

/// Inboxes as a store reads them; part of ``MetadataReader``. An inbox is the zone of a trunk of kind `inbox`.
package protocol InboxReader: AnyObject {
  /// Returns envelopes in the order of their cursors, at most `limit`.
  func envelopes(in inbox: ZoneKey, after cursor: UInt64, limit: Int) throws -> [WaitingMessage]
  func envelope(_ id: MessageID, from sender: UserID, in inbox: ZoneKey) throws -> [UInt8]?
  /// Returns the lengths of the envelopes that wait for these inbox nodes.
  func envelopeLengths(ofNodes nodes: [NodeID], in inbox: ZoneKey) throws -> [NodeID: Int]
  /// Returns the envelopes that wait for these inbox nodes. The caller knows that their lengths fit into memory.
  func envelopes(ofNodes nodes: [NodeID], in inbox: ZoneKey) throws -> [NodeID: [UInt8]]
  /// Returns the sums of an inbox, in which a sender's share is separate.
  func inboxUsage(of inbox: ZoneKey, sender: UserID) throws -> InboxUsage
  /// Returns the cursor of the newest envelope in this user's inboxes; nil if none waits.
  func newestEnvelope(of user: UserID) throws -> UInt64?
  func sender(_ user: UserID, of inbox: ZoneKey) throws -> SenderState
  /// Counts the waiting envelopes, their bytes, and the senders in this user's inboxes, for the audit.
  func inboxCounts(of user: UserID) throws -> (envelopes: Int, bytes: UInt64, senders: Int)
  /// Returns whether the user owns, or has accepted, a zone that names the other user.
  func shares(_ user: UserID, aZoneWith other: UserID) throws -> Bool
}

/// Inboxes as a store changes them; part of ``MetadataTransaction``. Their subject is the inbox's zone.
package protocol InboxTransaction: InboxReader {
  /// Stores an envelope, and gives it a cursor that is greater than those before. The caller has checked that the inbox
  /// has none with its id from this sender.
  func insertEnvelope(_ envelope: MessageEnvelope, row: WaitingMessage, in inbox: ZoneKey) throws
  /// Removes the envelopes of these inbox nodes. Does nothing for nodes without one.
  func removeEnvelopes(ofNodes nodes: [NodeID], in inbox: ZoneKey) throws
  /// An empty state removes the user. With ``SenderState/accepted``, their envelopes are no longer requests.
  func setSender(_ user: UserID, to state: SenderState, of inbox: ZoneKey) throws
  /// Removes requests that were received earlier, at most `limit`; their subject is `upkeep`.
  ///
  /// - Returns: whether there may be more.
  func removeRequests(receivedBefore: UInt64, limit: Int) throws -> Bool
}
