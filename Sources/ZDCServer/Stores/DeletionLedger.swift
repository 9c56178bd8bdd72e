package import ZDCProtocol

/// What users have deleted for good, noted outside of the stores, so that a restored backup does not bring it back.
package enum Deletion: Sendable, Hashable {
  package typealias Content = BlobID

  /// An account that its owner closed, with its whole public chain, which ends with the link that closes it.
  case account(UserID, ms: UInt64, links: [[UInt8]])
  /// Large content that was removed.
  case content(BlobID)
}

/// A list that only grows.
package protocol DeletionLedger: Sendable {
  /// Notes deletions durably. The server calls this before it deletes: if it is stopped in between, restoring deletes
  /// what the user has asked to delete, or what nothing named any more. It calls this inside the write that closes an
  /// account, which can then only fail with the store.
  func note(_ deletions: [Deletion]) throws
}

/// Repeats deletions in a store that was restored from an older copy.
package struct DeletionReplay: Sendable {
  private let store: any MetadataStore

  package init(in store: any MetadataStore) { self.store = store }

  /// Closes an account that is open here. Its data is removed after the usual time, counted from when it was closed.
  ///
  /// - Returns: whether the account was open here. One that the copy does not know is not created.
  package func closeAccount(_ user: UserID, ms: UInt64, links: [[UInt8]]) async throws -> Bool {
    let chain = try links.map { try IdentityLink($0) }
    let identity = try IdentityReplay.verify(chain, expected: user)
    guard identity.isClosed else { return false }
    return try await store.write([.account(user)]) { tx in
      guard var row = try tx.user(user), !row.isClosed else { return false }
      let known = try tx.links(of: user)
      // Another chain of this user can only be a forged one: the ledger is not signed.
      guard links.starts(with: known) else { return false }
      for link in chain.dropFirst(known.count) { try tx.appendLink(link, to: user) }
      (row.linkSeq, row.linkHead) = (identity.seq, identity.head)
      (row.signGen, row.encGen, row.closedMs) = (identity.signGen, identity.encGen, ms)
      try tx.updateUser(row)
      for session in try tx.sessions(of: user) { try tx.removeSession(tokenHash: session.tokenHash) }
      return true
    }
  }
}
