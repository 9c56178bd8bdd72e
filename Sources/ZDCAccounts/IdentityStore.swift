package import ZDCClientAPI
package import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// The signature keys of the writers in a local user's zones: their own, and those of other members from identity chains
/// that are verified and pinned (PROTOCOL 3.2).
///
/// Replay looks keys up inside a transaction, where it cannot wait for the server. So all keys that a page needs are
/// collected before it is applied.
package struct IdentityStore: Sendable {
  private let database: ZDCDatabaseConnection
  private let api: ServerAPI
  private let now: @Sendable () -> UInt64
  private let cache = Locked<[Signer: [UInt8]]>([:])

  /// How many keys are kept in memory. When there are more, all are forgotten: the database has them.
  private static let cachedKeys = 10_000
  /// How many chains are fetched at the same time.
  private static let requests = 8

  package init(database: ZDCDatabaseConnection, api: ServerAPI, now: @escaping @Sendable () -> UInt64) {
    (self.database, self.api, self.now) = (database, api, now)
  }

  /// - Returns: nil if one of the keys is not in memory.
  package func cachedKeys(of signers: Set<Signer>, own: UserKeys) -> WriterKeys? {
    let keys = WriterKeys(own: own, others: cache.withLock { cache in cache.filter { signers.contains($0.key) } })
    return keys.missing(of: signers).isEmpty ? keys : nil
  }

  /// Finds the keys in memory, in the pinned chains, or in chains that it fetches, verifies and pins.
  ///
  /// - Returns: the keys, without those that no verified chain has; and what was wrong with chains that came.
  /// - Throws: `ServerError`, `TransportError`, and the database's errors.
  package func keys(
    of signers: Set<Signer>, own: UserKeys
  ) async throws -> (keys: WriterKeys, refused: [ZDCSecurityError]) {
    if let keys = cachedKeys(of: signers, own: own) { return (keys, []) }
    var keys = WriterKeys(own: own, others: [:])
    keys.add(try await pinned(signers))
    // No list has more members than this, whatever the server shows.
    let unknown = Set(keys.missing(of: signers).map(\.user)).sorted().prefix(Limits.aclEntries)
    let (fetched, refused) = try await fetch(unknown)
    keys.add(fetched.filter { signers.contains($0.key) })
    remember(keys.others)
    return (keys, refused)
  }

  private func remember(_ keys: [Signer: [UInt8]]) {
    cache.withLock { cache in
      if cache.count + keys.count > Self.cachedKeys { cache.removeAll() }
      cache.merge(keys) { _, new in new }
    }
  }

  private func pinned(_ signers: Set<Signer>) async throws -> [Signer: [UInt8]] {
    try await database.asyncRead { transaction in
      var found: [Signer: [UInt8]] = [:]
      for user in Set(signers.map(\.user)) {
        guard let chain = try transaction.users.chain(of: user) else { continue }
        for link in try IdentityChain.links(chain, of: user) {
          let signer = Signer(user: user, generation: link.signGen)
          if signers.contains(signer) { found[signer] = link.signPub }
        }
      }
      return found
    }
  }

  private func fetch(_ users: ArraySlice<UserID>) async throws -> (keys: [Signer: [UInt8]], refused: [ZDCSecurityError])
  {
    var keys: [Signer: [UInt8]] = [:]
    var refused: [ZDCSecurityError] = []
    try await withThrowingTaskGroup(of: Result<[Signer: [UInt8]], ZDCSecurityError>.self) { group in
      var rest = users
      for user in rest.prefix(Self.requests) { group.addTask { try await fetch(user) } }
      rest = rest.dropFirst(Self.requests)
      while let result = try await group.next() {
        switch result {
        case .success(let found): keys.merge(found) { _, new in new }
        case .failure(let error): refused.append(error)
        }
        if let user = rest.popFirst() { group.addTask { try await fetch(user) } }
      }
    }
    return (keys, refused)
  }

  private func fetch(_ user: UserID) async throws -> Result<[Signer: [UInt8]], ZDCSecurityError> {
    do {
      let chain = try await api.chain(of: user)
      let identity = try await pin(chain, of: user)
      return .success(
        Dictionary(
          uniqueKeysWithValues: identity.signKeys.map { (Signer(user: user, generation: $0), $1) }))
    } catch let error as ZDCSecurityError {
      return .failure(error.with(user: user))
    } catch let error as ServerError where error.code == .notFound {
      // The server knows no such user: what they signed is by an unknown writer.
      return .success([:])
    }
  }

  /// Verifies a chain that continues what is pinned, and pins it.
  private func pin(_ chain: [UInt8], of user: UserID) async throws -> VerifiedIdentity {
    let pinned = try await database.asyncRead { try $0.users.chain(of: user) }
    if let pinned { _ = try IdentityChain.compare(pinned: pinned, with: chain, of: user) }
    let identity = try IdentityReplay.verify(try IdentityChain.links(chain, of: user), expected: user)
    try await database.asyncReadWrite { [now] transaction in
      // Another zone's pull, or another process, may have pinned a longer one.
      guard try transaction.users.chain(of: user) == pinned else { return }
      try transaction.users.pin(chain, of: user, atMs: now())
    }
    return identity
  }
}

/// The keys that the replay of some commits needs.
package struct WriterKeys: Sendable, IdentityDirectory {
  private let own: UserKeys
  fileprivate(set) var others: [Signer: [UInt8]]

  /// For commits that the local user has written.
  package init(own: UserKeys) { self.init(own: own, others: [:]) }

  init(own: UserKeys, others: [Signer: [UInt8]]) { (self.own, self.others) = (own, others) }

  package func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    try own.signKey(user: user, generation: generation) ?? others[Signer(user: user, generation: generation)]
  }

  package mutating func add(_ keys: WriterKeys) { add(keys.others) }

  fileprivate mutating func add(_ keys: [Signer: [UInt8]]) { others.merge(keys) { _, new in new } }

  /// The local user's own keys come with their own chain, which ``IdentityRefresh`` reads.
  package func missing(of signers: Set<Signer>) -> Set<Signer> {
    signers.filter { $0.user != own.userID && others[$0] == nil }
  }
}
