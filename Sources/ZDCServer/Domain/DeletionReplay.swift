package import ZDCProtocol

/// Repeats deletions in a store that was restored from an older copy.
package struct DeletionReplay: Sendable {
  package enum Outcome: Sendable, Hashable {
    case done
    /// The copy has the change, or not the account; or its chain continued otherwise.
    case needless
    /// The chain lacks an earlier link, or another user's chain still claims the handle.
    case early
  }

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

  /// Appends a link that the copy lacks. A new root ends the logins of the old words and of all other devices.
  package func append(
    _ request: AppendLinkRequest, to user: UserID, by device: DeviceID, ms: UInt64
  ) async throws -> Outcome {
    let link = try IdentityLink(request.link.bytes)
    guard let row = try await store.read({ try $0.user(user) }), !row.isClosed, link.seq > row.linkSeq else {
      return .needless
    }
    guard link.seq - 1 == row.linkSeq else { return .early }
    guard link.prev == row.linkHead else { return .needless }
    guard let verify = try await store.read({ try Accounts.verify(request, user: user, in: $0) }) else {
      return .needless
    }
    let next = try verify()
    do {
      let isNew = try await store.write([.account(user)]) { tx in
        try Accounts.append(next, user: user, device: device, now: ms, in: tx)
      }
      return isNew ? .done : .needless
    } catch let error as ServerError where error.code == .handleTaken { return .early }
  }

  /// Removes a device with its sessions, unless it has logged in with the words since it was removed.
  ///
  /// - Returns: whether the copy had it.
  package func removeDevice(_ device: DeviceID, of user: UserID, ms: UInt64) async throws -> Bool {
    try await store.write([.account(user)]) { tx in
      guard let row = try tx.device(device, of: user), row.createdMs <= ms else { return false }
      try tx.removeDevice(device, of: user)
      return true
    }
  }

  /// Suspends an account, or resumes it.
  ///
  /// - Returns: whether that changed the account.
  package func setSuspension(of user: UserID, ms: UInt64, isSuspended: Bool) async throws -> Bool {
    try await store.write([.account(user)]) { tx in
      guard try tx.user(user) != nil else { return false }
      return try isSuspended
        ? Administration.suspend(user, now: ms, in: tx) : Administration.resume(user, in: tx)
    }
  }
}
