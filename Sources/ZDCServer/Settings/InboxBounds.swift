internal import ZDCProtocol

/// The limits of one inbox.
package struct InboxBounds: Sendable {
  package struct Share: Sendable, Hashable {
    package var count: Int
    package var bytes: Int

    package init(count: Int = 0, bytes: Int = 0) {
      self.count = count
      self.bytes = bytes
    }
  }

  package var all = Share(count: Limits.inboxEnvelopes, bytes: 64 << 20)
  /// Messages of unknown senders together.
  package var requests = Share(count: 100, bytes: 8 << 20)
  /// Messages of one sender.
  package var sender = Share(count: 100, bytes: 16 << 20)
}
