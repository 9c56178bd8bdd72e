package import ZDCClientAPI
package import ZDCClientStore
package import ZDCProtocol
internal import ZDCSupport

/// The signature keys of the writers in a local user's zones. They are the user's own keys and those of other members,
/// which come from verified and pinned identity chains (PROTOCOL 3.2).
///
/// Replay looks up keys inside a transaction, where it cannot wait for the server. All keys that a page needs are
/// therefore collected before it is applied.
package struct IdentityStore: Sendable {
  private let database: ZDCDatabaseConnection
  private let api: ServerAPI
  private let now: @Sendable () -> UInt64
  /// In 0..<1.
  private let random: @Sendable () -> Double
  private let cache = Locked<[Signer: [UInt8]]>([:])

  /// Until when ``meet(_:)`` leaves out a user, in milliseconds; `.max` for one whose chain is pinned.
  private let met = Locked<[UserID: UInt64]>([:])

  /// Maximum number of keys kept in memory. Beyond it, the cache is emptied; the keys remain in the database.
  private static let cachedKeys = 10_000
  /// How long a user whom the server did not show is not asked for again.
  private static let strangerPauseMs: UInt64 = 600_000

  package init(
    database: ZDCDatabaseConnection, api: ServerAPI, now: @escaping @Sendable () -> UInt64,
    random: @escaping @Sendable () -> Double = { .random(in: 0..<1) }
  ) {
    (self.database, self.api, self.now, self.random) = (database, api, now, random)
  }

  /// - Returns: nil if one of the keys is not in memory.
  package func cachedKeys(of signers: Set<Signer>, own: UserKeys) -> WriterKeys? {
    var keys = WriterKeys(own: own)
    cache.withLock { cache in for signer in signers { keys.add(cache[signer], of: signer) } }
    return keys.missing(of: signers).isEmpty ? keys : nil
  }

  /// Finds the keys in memory, in the pinned chains, or in chains that it fetches, verifies and pins.
  ///
  /// - Returns: The keys, without those that no verified chain has, and the errors of chains that were refused.
  /// - Throws: `ZDCServerError`, `ZDCTransportError`, and the database's errors.
  package func keys(
    of signers: Set<Signer>, own: UserKeys
  ) async throws -> (keys: WriterKeys, refused: [ZDCSecurityError]) {
    if let keys = cachedKeys(of: signers, own: own) { return (keys, []) }
    var keys = WriterKeys(own: own)
    keys.add(try await pinned(signers))
    // No access list has more members than this, regardless of what the server sends.
    let unknown = Set(keys.missing(of: signers).map(\.user)).sorted().prefix(Limits.aclEntries)
    let (fetched, _, refused) = try await fetch(Array(unknown))
    keys.add(fetched.filter { signers.contains($0.key) })
    remember(keys.others)
    return (keys, refused)
  }

  /// Finds the keys in the pinned chains only.
  package func pinnedKeys(of signers: Set<Signer>, own: UserKeys) async throws -> WriterKeys {
    var keys = WriterKeys(own: own)
    keys.add(try await pinned(signers))
    return keys
  }

  /// Fetches, verifies and pins the new links of users.
  ///
  /// - Returns: The errors of chains that were refused.
  package func refresh(_ users: [UserID]) async throws -> [ZDCSecurityError] { try await fetch(users).refused }

  /// Returns those of the users for whom ``meet(_:)`` looks: they are not known to be pinned, and were not asked for lately.
  package func strangers(among users: Set<UserID>) -> Set<UserID> {
    let time = now()
    return met.withLock { met in users.filter { met[$0, default: 0] <= time } }
  }

  /// Fetches, verifies and pins the chains of users whom this device has not met: one request for up to
  /// ``Limits/aclEntries`` of them. After any answer of the server, they are left out for a while.
  ///
  /// - Returns: The errors of chains that were refused.
  /// - Throws: `ZDCServerError`, `ZDCTransportError`, and the database's errors.
  package func meet(_ users: Set<UserID>) async throws -> [ZDCSecurityError] {
    let strangers = strangers(among: users)
    guard !strangers.isEmpty else { return [] }
    let pinned = Set(try await pinnedChains(of: Array(strangers)).keys)
    leaveOut(Array(pinned), until: .max)
    let unknown = Array(strangers.subtracting(pinned).sorted().prefix(Limits.aclEntries))
    guard !unknown.isEmpty else { return [] }
    do {
      let refused = try await refresh(unknown)
      leaveOut(unknown, until: now() + Self.strangerPauseMs)
      return refused
    } catch let error where error is ServerError || error is ZDCSecurityError {
      leaveOut(unknown, until: now() + Self.strangerPauseMs)
      throw error
    }
  }

  private func leaveOut(_ users: [UserID], until time: UInt64) {
    met.withLock { met in
      if met.count + users.count > Self.cachedKeys { met.removeAll() }
      for user in users { met[user] = time }
    }
  }

  /// Returns those of the signers whose users have declared the key compromised, as far as the pinned chains say so. A
  /// link with that declaration distrusts all sign keys before its own.
  package func compromised(among signers: Set<Signer>) async throws -> Set<Signer> {
    try await database.asyncRead { transaction in
      var found: Set<Signer> = []
      for user in Set(signers.map(\.user)) {
        guard let chain = try transaction.users.chain(of: user) else { continue }
        let declarations = try IdentityChain.links(chain, of: user).filter { $0.compromise & 1 == 1 }
        guard let trusted = declarations.map(\.signGen).max() else { continue }
        found.formUnion(signers.filter { $0.user == user && $0.generation < trusted })
      }
      return found
    }
  }

  /// Returns the newest encryption keys of users, after it has asked the server for new links of their chains. A
  /// server that withholds or forges links changes nothing: the pinned chain counts.
  ///
  /// - Returns: The keys, without those of users whose chain is unknown, and the errors of chains that were refused. A
  ///   closed account keeps its key: a member who closed theirs must not prevent another's removal.
  /// - Throws: `ZDCServerError`, `ZDCTransportError`, and the database's errors.
  package func recipients(
    _ users: [UserID], own: UserKeys
  ) async throws -> (keys: [UserID: RecipientKey], refused: [ZDCSecurityError]) {
    let others = users.filter { $0 != own.userID }
    let refused = others.isEmpty ? [] : try await refusedLinks(of: others)
    var keys = try await database.asyncRead { transaction in
      var keys: [UserID: RecipientKey] = [:]
      for user in others {
        guard let chain = try transaction.users.chain(of: user),
          let last = try IdentityChain.links(chain, of: user).last
        else { continue }
        keys[user] = RecipientKey(encGen: last.encGen, encPub: last.encPub)
      }
      return keys
    }
    if users.contains(own.userID), let encPub = own.identity.encKeys[own.identity.encGen] {
      keys[own.userID] = RecipientKey(encGen: own.identity.encGen, encPub: encPub)
    }
    return (keys, refused)
  }

  /// Fetches and pins new links, like ``refresh(_:)``. A server that finds none withholds them.
  private func refusedLinks(of users: [UserID]) async throws -> [ZDCSecurityError] {
    do { return try await refresh(users) } catch let error as ServerError where error.code == .notFound { return [] }
  }

  /// Fetches and verifies the newest links of users, and returns the handles that their chains claim. Nothing is pinned:
  /// a search finds strangers.
  ///
  /// - Returns: The handles, for users whom the server does not show that of the pinned chain, and the errors of chains
  ///   that were refused.
  /// - Throws: `ZDCServerError`, `ZDCTransportError`, and the database's errors.
  package func handles(
    of users: [UserID]
  ) async throws -> (handles: [UserID: Handle], refused: [ZDCSecurityError]) {
    let (_, chains, refused) = try await fetch(users, isPinning: false)
    let known = try await pinnedChains(of: users)
    return (chains.merging(known) { fetched, _ in fetched }.compactMapValues(\.handle), refused)
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

  /// Fetches chains until all users are answered. An answer may be incomplete: the users that it omits are asked for
  /// again, until an answer has none of them.
  private func fetch(
    _ users: [UserID], isPinning: Bool = true
  ) async throws -> (keys: [Signer: [UInt8]], chains: [UserID: PinnedChain], refused: [ZDCSecurityError]) {
    var keys: [Signer: [UInt8]] = [:]
    var chains: [UserID: PinnedChain] = [:]
    var refused: [ZDCSecurityError] = []
    var rest = users
    while !rest.isEmpty {
      let pinned = try await pinnedChains(of: rest)
      let positions = rest.map { ChainPosition(user: $0, count: UInt32(clamping: pinned[$0]?.count ?? 0)) }
      let answer = try IdentityChain.byUser(try await api.chains(after: positions))
      let answered = rest.filter { answer[$0] != nil }
      guard !answered.isEmpty else { break }
      var verified: [UserID: PinnedChain] = [:]
      for user in answered {
        do throws(ZDCSecurityError) {
          let links = answer[user] ?? []
          verified[user] = try PinnedChain(links, of: user, after: pinned[user])
          for link in links { keys[Signer(user: user, generation: link.signGen)] = link.signPub }
        } catch { refused.append(error.with(user: user)) }
      }
      chains.merge(verified) { _, new in new }
      if isPinning { try await pin(verified, after: pinned) }
      rest.removeAll { answer[$0] != nil }
    }
    return (keys, chains, refused)
  }

  private func pinnedChains(of users: [UserID]) async throws -> [UserID: PinnedChain] {
    try await database.asyncRead { transaction in
      var chains: [UserID: PinnedChain] = [:]
      for user in users {
        chains[user] = try transaction.users.chain(of: user).map { try PinnedChain(bytes: $0, of: user) }
      }
      return chains
    }
  }

  private func pin(_ chains: [UserID: PinnedChain], after pinned: [UserID: PinnedChain]) async throws {
    try await database.asyncReadWrite { [now, random] transaction in
      for (user, chain) in chains {
        // The pull of another zone, or another process, may have pinned a longer chain.
        guard try transaction.users.chain(of: user) == pinned[user]?.bytes else { continue }
        try transaction.users.pin(chain.bytes, handle: chain.handle, of: user, atMs: now())
        guard chain.trustedEncGen > pinned[user]?.trustedEncGen ?? 0 else { continue }
        try transaction.replaceKeys(sealedFor: user, atMs: now(), random: random)
      }
    }
  }
}

/// The key under which grants are sealed for a user.
package struct RecipientKey: Sendable, Hashable {
  package let encGen: UInt32
  package let encPub: [UInt8]
}

/// A verified chain of another user.
private struct PinnedChain: Sendable {
  let bytes: [UInt8]
  let count: Int
  let handle: Handle?
  let trustedEncGen: UInt32

  init(bytes: [UInt8], of user: UserID) throws {
    let links = try IdentityChain.links(bytes, of: user)
    (self.bytes, count, handle, trustedEncGen) = (bytes, links.count, links.handle, links.trustedEncGen)
  }

  /// Verifies links that either extend a pinned chain or are a whole chain. Only new links cost a signature check.
  init(_ links: [IdentityLink], of user: UserID, after pinned: PinnedChain?) throws(ZDCSecurityError) {
    var chain = Bundle.Writer()
    var known: [IdentityLink] = []
    if let pinned {
      known = try IdentityChain.links(pinned.bytes, of: user)
      guard let last = known.last else { throw ZDCSecurityError(.accountStateMissing, user: user) }
      var identity = IdentityReplay.resume(after: last, byteCount: known.reduce(0) { $0 + $1.bytes.count })
      for link in links { try IdentityReplay.extend(&identity, with: link) }
    } else {
      _ = try IdentityReplay.verify(links, expected: user)
    }
    let all = known + links
    for link in all { chain.append(link: link.bytes) }
    (bytes, count, handle, trustedEncGen) = (chain.bytes, all.count, all.handle, all.trustedEncGen)
  }
}

/// The keys that replaying a set of commits needs.
package struct WriterKeys: Sendable, IdentityDirectory {
  private let own: UserKeys
  fileprivate(set) var others: [Signer: [UInt8]]

  /// Creates the keys for commits that the local user wrote.
  package init(own: UserKeys) { (self.own, others) = (own, [:]) }

  package func signKey(user: UserID, generation: UInt32) throws -> [UInt8]? {
    try own.signKey(user: user, generation: generation) ?? others[Signer(user: user, generation: generation)]
  }

  package mutating func add(_ keys: WriterKeys) { add(keys.others) }

  fileprivate mutating func add(_ key: [UInt8]?, of signer: Signer) { if let key { others[signer] = key } }

  fileprivate mutating func add(_ keys: [Signer: [UInt8]]) { others.merge(keys) { _, new in new } }

  /// Returns the signers without a key. The local user's own keys come from their own chain, which ``IdentityRefresh``
  /// reads.
  package func missing(of signers: Set<Signer>) -> Set<Signer> {
    signers.filter { $0.user != own.userID && others[$0] == nil }
  }
}
