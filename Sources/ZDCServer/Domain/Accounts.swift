internal import ZDCProtocol

/// Accounts: their identity chains, keyrings and login keys (PROTOCOL 3.1, 3.2, 3.4).
enum Accounts {
  /// A registration that is valid in itself. The store may still reject it.
  struct Registration: Sendable {
    let genesis: IdentityLink
    let identity: VerifiedIdentity
    let keyring: [UInt8]
    let lookup: LookupID
    let loginKey: [UInt8]
    let invite: String?
    let births: [TrunkGenesis]

    init(_ request: RegisterRequest) throws {
      genesis = try IdentityLink(request.genesis.bytes)
      identity = try IdentityReplay.begin(genesis)
      keyring = request.keyring.bytes
      lookup = request.lookupID
      loginKey = request.loginKey.bytes
      invite = request.invite
      births = try TrunkGenesis.all(request.tree.trunks.map(\.bytes))
      try Accounts.check(keyring: keyring, against: genesis)
      try require(!Signatures.isWeak(loginKey), .weakPublicKey)
      try checkTree(request.tree.appTreeID)
    }

    /// The genesis link claims exactly these four genesis commits, so a server cannot swap the tree for an empty one.
    private func checkTree(_ appTreeID: String) throws {
      guard AppTreeID.isValid(appTreeID) else { throw ServerError(.invalidRequest, "not the name of an app's tree") }
      let claim = IdentityLink.Claim.tree(appTreeID: appTreeID, genesisCommits: births.map(\.commit.hash))
      try require(genesis.claims == [claim], .identityChainInvalid)
      for (trunk, birth) in zip(Trunk.allCases, births) {
        try birth.verify(
          trunk: trunk, appTreeID: appTreeID, owner: identity.userID,
          identities: SingleIdentity(identity: identity))
        try require(birth.commit.fields.writerGen == genesis.signGen, .writerNotAuthorized)
      }
    }
  }

  static func check(keyring: [UInt8], against link: IdentityLink) throws(ZDCSecurityError) {
    try require(keyring.count <= Limits.keyringBytes, .limitExceeded)
    try require(KeyringHash(labelledHash: "keyring-blob", keyring) == link.keyringHash, .keyringMismatch)
  }

  /// Stores a registration, whole or not at all.
  ///
  /// - Returns: true if the account is new, false if exactly this account existed already.
  static func register(
    _ registration: Registration, mode: Configuration.Registration, invites: Set<String>, now: UInt64,
    in tx: any MetadataTransaction
  ) throws -> Bool {
    let user = registration.identity.userID
    if let known = try tx.user(user) {
      guard known.genesis == registration.genesis.hash, known.lookup == registration.lookup else {
        throw ServerError(.conflict, "the account exists with different data")
      }
      return false
    }
    guard try tx.user(lookup: registration.lookup) == nil else {
      throw ServerError(.conflict, "the access key belongs to another account")
    }
    try admit(registration, mode: mode, invites: invites, now: now, in: tx)
    try tx.insertUser(
      UserRow(
        id: user, lookup: registration.lookup, loginKey: registration.loginKey, genesis: registration.genesis.hash,
        linkSeq: 0, linkHead: registration.genesis.hash, signGen: registration.genesis.signGen,
        encGen: registration.genesis.encGen, createdMs: now))
    try tx.appendLink(registration.genesis, to: user)
    try tx.setKeyring(registration.keyring, of: user)
    _ = try tx.apply(CommitDelta(zones: registration.births.map { $0.delta(owner: user, now: now) }))
    return true
  }

  static let closed = ServerError(.registrationClosed, "this server accepts no new accounts")

  private static func admit(
    _ registration: Registration, mode: Configuration.Registration, invites: Set<String>, now: UInt64,
    in tx: any MetadataTransaction
  ) throws {
    switch mode {
    case .open: return
    case .closed: throw closed
    case .invite:
      let refusal = ServerError(.inviteRequired, "this server accepts new accounts by invitation only")
      guard let code = registration.invite, invites.contains(code) else { throw refusal }
      let hash = inviteHash(code)
      guard try !tx.isInviteUsed(hash) else { throw refusal }
      try tx.useInvite(hash, user: registration.identity.userID, now: now)
    }
  }

  static func inviteHash(_ code: String) -> [UInt8] {
    Bytes32<LookupRole>(labelledHash: "invite", Array(code.utf8)).bytes
  }

  /// A link that continues the chain as it was when the link was verified. The store checks whether it still does.
  struct Extension: Sendable {
    let link: IdentityLink
    fileprivate let request: AppendLinkRequest
    fileprivate let before: VerifiedIdentity
    let isClosed: Bool

    var isNewRoot: Bool { link.kind == .rotateRoot }
  }

  /// Verifies the next link of a chain against the newest one alone; every earlier link was verified when it was
  /// stored.
  ///
  /// - Returns: nil if exactly this link is already in the chain.
  static func verify(
    _ request: AppendLinkRequest, user id: UserID, in reader: any MetadataReader
  ) throws -> (@Sendable () throws -> Extension)? {
    let link = try IdentityLink(request.link.bytes)
    guard let user = try reader.user(id), let newest = try reader.link(user.linkSeq, of: id) else {
      throw ServerError(.unauthorized, "no such session")
    }
    if try reader.link(link.seq, of: id) == link.bytes { return nil }
    guard !user.isClosed else { throw ServerError(.accountClosed, "the account is closed") }
    try checkOrder(link, after: user)
    try checkHandle(link)
    let byteCount = try reader.chainBytes(of: id)
    return {
      let before = IdentityReplay.resume(after: try IdentityLink(newest), byteCount: byteCount)
      var after = before
      try IdentityReplay.extend(&after, with: link)
      return Extension(link: link, request: request, before: before, isClosed: after.isClosed)
    }
  }

  private static func checkHandle(_ link: IdentityLink) throws {
    let count = link.claims.filter { $0.claimedHandle != nil }.count
    guard count <= 1, link.claims.allSatisfy(\.isHandleValid) else {
      throw ServerError(.invalidRequest, "not a handle")
    }
  }

  private static func checkOrder(_ link: IdentityLink, after user: UserRow) throws {
    guard link.seq == user.linkSeq &+ 1, link.prev == user.linkHead else {
      throw ServerError(.conflict, "the identity chain has changed: fetch it again")
    }
  }

  /// `POST /v1/account/links`: compare-and-swap on the chain's last link.
  ///
  /// A new root may mean that others know the words of the old one, so it ends the logins of all other devices.
  ///
  /// - Returns: whether the link is new here.
  static func append(
    _ next: Extension, user id: UserID, device: DeviceID, now: UInt64, in tx: any MetadataTransaction
  ) throws -> Bool {
    guard var user = try tx.user(id) else { throw ServerError(.unauthorized, "no such session") }
    let link = next.link
    // The same request may have been sent twice concurrently.
    if try tx.link(link.seq, of: id) == link.bytes { return false }
    try checkOrder(link, after: user)
    try updateKeyring(
      next.request.keyring?.bytes, link: link, before: next.before.keyringHash, user: id, in: tx)
    try updateLogin(next.request, link: link, user: &user)
    user.linkSeq = link.seq
    user.linkHead = link.hash
    user.signGen = link.signGen
    user.encGen = link.encGen
    if next.isClosed { user.closedMs = now }
    try updateHandle(link, user: id, now: now, in: tx)
    try tx.appendLink(link, to: id)
    try tx.updateUser(user)
    guard link.kind == .rotateRoot else { return true }
    for other in try tx.devices(of: id) where other.id != device { try tx.removeDevice(other.id, of: id) }
    return true
  }

  /// A handle that was given up stays reserved for the user for 30 days. Otherwise another user could take it at once, and
  /// get what people send to the handle that they know.
  private static let handleHoldMs: UInt64 = 30 * 86_400_000

  private static func updateHandle(
    _ link: IdentityLink, user: UserID, now: UInt64, in tx: any MetadataTransaction
  ) throws {
    guard let handle = link.claimedHandle else { return }
    let isOwn = try tx.setHandle(handle, of: user, now: now, freeBefore: now - min(now, handleHoldMs))
    guard isOwn else { throw ServerError(.handleTaken, "another user has the handle") }
  }

  private static func updateKeyring(
    _ keyring: [UInt8]?, link: IdentityLink, before: KeyringHash, user: UserID, in tx: any MetadataTransaction
  ) throws {
    guard let keyring else { return try require(link.keyringHash == before, .keyringMismatch) }
    try check(keyring: keyring, against: link)
    try tx.setKeyring(keyring, of: user)
  }

  /// Changes the login. A new root comes from a new access key, and with it a new lookup id and login key. No other
  /// link changes the login.
  private static func updateLogin(_ request: AppendLinkRequest, link: IdentityLink, user: inout UserRow) throws {
    guard link.kind == .rotateRoot else {
      guard request.lookupID == nil, request.loginKey == nil else {
        throw ServerError(.invalidRequest, "only a new root changes the login")
      }
      return
    }
    guard let lookup = request.lookupID, let key = request.loginKey?.bytes else {
      throw ServerError(.invalidRequest, "a new root needs a new lookup id and login key")
    }
    try require(!Signatures.isWeak(key), .weakPublicKey)
    user.lookup = lookup
    user.loginKey = key
  }

  static func chain(of user: UserID, in reader: any MetadataReader) throws -> [UInt8] {
    let links = try reader.links(of: user)
    guard !links.isEmpty else { throw ServerError(.notFound, "no such user") }
    return bundle(links)
  }

  /// Returns the links after these positions, user after user, without those of unknown users.
  static func chains(after positions: [ChainPosition], in reader: any MetadataReader) throws -> [UInt8] {
    bundle(try reader.links(after: positions, limit: Limits.pageBytes))
  }

  /// Returns the handles that begin with this text, which has the form of a handle's beginning.
  ///
  /// The answer has the same length and status whether there are any.
  static func handles(beginning text: String, in reader: any MetadataReader) throws -> [UInt8] {
    HandleList.bytes(try reader.handles(beginning: text, limit: HandleList.entries))
  }

  private static func bundle(_ links: [[UInt8]]) -> [UInt8] {
    var writer = Bundle.Writer()
    for link in links { writer.append(link: link) }
    return writer.bytes
  }
}
