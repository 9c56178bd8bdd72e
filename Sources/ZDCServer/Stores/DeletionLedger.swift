package import ZDCProtocol

/// A change that a restored backup must not undo, noted outside of the stores: content and accounts that were deleted for
/// good, and what ended the access of a device, of old words or of an account.
package enum Deletion: Sendable, Hashable {
  package typealias Content = BlobID

  /// An account that its owner closed, with its whole public chain, which ends with the link that closes it.
  case account(UserID, ms: UInt64, links: [[UInt8]])
  /// Large content that was removed.
  case content(BlobID)
  /// A link that a device appended to its account's chain, with what it replaced: the keyring, and the login of a new
  /// root. Devices that have seen the link refuse a server without it.
  case link(AppendLinkRequest, of: UserID, by: DeviceID, ms: UInt64)
  /// A device that the user removed.
  case device(DeviceID, of: UserID, ms: UInt64)
  /// The operator suspended an account, or resumed it.
  case suspension(UserID, ms: UInt64, isSuspended: Bool)
}

/// A list that only grows.
package protocol DeletionLedger: Sendable {
  /// Notes deletions durably. The server calls this before it deletes: if it is stopped in between, restoring deletes
  /// what the user has asked to delete, or what nothing named any more. It calls this last inside a write, which can then
  /// only fail with the store.
  func note(_ deletions: [Deletion]) throws
}
