internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Fetches a local user's own identity chain, and the keyring if the chain has grown. If nothing is new, this takes one
/// request (PROTOCOL 3.1, 3.2, 3.4).
///
/// It never generates anything: an account whose state is missing, shorter or different ends with an error.
struct IdentityRefresh {
  package let database: ZDCDatabaseConnection
  package let api: ServerAPI
  package let user: UserID
  /// The last link that the caller knows. Another process may have stored a longer chain.
  package let known: LinkHash?
  package let now: @Sendable () -> UInt64

  /// - Returns: The keys after the change; nil if the chain ends with the known link.
  /// - Throws: `accountStateMissing`, `identityChainRollback`, `identityChainInvalid`, `keyringRollback`,
  ///   `keyringMismatch`, `keyringAuthFailed` and the like; `ZDCServerError`; `ZDCTransportError`.
  package func run() async throws -> UserKeys? {
    do {
      return try await read()
    } catch let error as ZDCSecurityError where Self.mayBeHalfSeen(error.code) {
      // Another device may have added a link between the two requests. Chain and keyring then match on the second try.
      return try await read()
    } catch let error as ServerError where error.code == .notFound {
      throw ZDCSecurityError(.accountStateMissing, user: user)
    }
  }

  private static func mayBeHalfSeen(_ code: ZDCSecurityError.Code) -> Bool {
    code == .keyringMismatch || code == .keyringAuthFailed || code == .keyringRollback
  }

  private func read() async throws -> UserKeys? {
    let (row, pending) = try await stored()
    let chain = try await api.chain(of: user)
    // A change whose answer was lost may be in the chain, also if another request has pinned it already.
    let adopted = try pending.flatMap { try $0.isIn(chain, of: user) ? $0 : nil }
    let isLonger = try IdentityChain.compare(pinned: row.chain, with: chain, of: user) == .longer
    guard isLonger || adopted != nil else {
      let isKnown = try IdentityChain.links(row.chain, of: user).last?.hash == known
      return isKnown ? nil : try UserKeys(row)
    }
    var changed = row
    changed.chain = chain
    adopted?.apply(to: &changed)
    changed.secrets.keyringBlob = try await keyring(changed, chain)
    let keys = try UserKeys(
      chain: chain, keyringBlob: changed.secrets.keyringBlob, accessKey: changed.secrets.accessKey, expected: user,
      pinnedVersion: try UserKeys(row).keyringVersion, mayHaveNewRoot: true)
    guard try await store(changed, after: row, adopting: adopted) else {
      return try UserKeys(try await stored().row)
    }
    return keys
  }

  /// Fetches the keyring only if the chain names a new one and this device can open it. It is sealed under the access
  /// key.
  private func keyring(_ row: LocalUserRow, _ chain: [UInt8]) async throws -> [UInt8] {
    let known = row.secrets.keyringBlob
    guard let newest = try IdentityChain.links(chain, of: user).last,
      newest.rootPub == row.secrets.accessKey.rootKey.publicKey, newest.keyringHash != Keyring.hash(known)
    else { return known }
    return try await api.keyring()
  }

  private func stored() async throws -> (row: LocalUserRow, pending: PendingIdentityChange?) {
    try await database.asyncRead { [user] transaction in
      guard let row = try transaction.localUsers.user(user) else { throw ZDCError(.localUserNotFound) }
      return (row, try transaction.identityChanges.pending(of: user))
    }
  }

  /// Stores the row unless a login or another process has changed it in the meantime.
  ///
  /// - Returns: Whether it was stored.
  private func store(
    _ changed: LocalUserRow, after row: LocalUserRow, adopting change: PendingIdentityChange?
  ) async throws -> Bool {
    try await database.asyncReadWrite { [user, now] transaction in
      guard let current = try transaction.localUsers.user(user), current.chain == row.chain,
        current.secrets.accessKey == row.secrets.accessKey
      else { return false }
      guard let change else {
        try transaction.update(changed, atMs: now())
        return true
      }
      try transaction.adopt(change, as: changed, atMs: now())
      return true
    }
  }
}
