package import ZDCClientStore
package import ZDCProtocol

/// A user's identity chain as bytes: the bundle that the server sends and that this device pins (PROTOCOL 3.2).
package enum IdentityChain {
  package enum Comparison: Sendable {
    case same
    /// The fetched chain extends the pinned one. The new links still have to be verified.
    case longer
  }

  package static func links(_ chain: [UInt8], of user: UserID) throws(ZDCSecurityError) -> [IdentityLink] {
    var reader = Bundle.Reader(chain)
    var links: [IdentityLink] = []
    while let item = try reader.next() {
      guard case .link(let link) = item else { throw ZDCSecurityError(.nonCanonicalEncoding, user: user) }
      links.append(link)
    }
    return links
  }

  /// Groups links by the user that each of them names. Nothing is verified.
  static func byUser(_ bundle: [UInt8]) throws(ZDCSecurityError) -> [UserID: [IdentityLink]] {
    var reader = Bundle.Reader(bundle)
    var links: [UserID: [IdentityLink]] = [:]
    while let item = try reader.next() {
      guard case .link(let link) = item else { throw ZDCSecurityError(.nonCanonicalEncoding) }
      links[link.userID, default: []].append(link)
    }
    return links
  }

  /// Compares the chains byte by byte, so only new links cost a signature check.
  ///
  /// - Throws: `accountStateMissing` if there are no links, `identityChainRollback` if there are fewer links than are
  ///   pinned, `identityChainInvalid` if the links differ, and the errors of verifying them.
  package static func compare(
    pinned: [UInt8], with fetched: [UInt8], of user: UserID
  ) throws(ZDCSecurityError) -> Comparison {
    if fetched == pinned { return .same }
    guard !fetched.isEmpty else { throw ZDCSecurityError(.accountStateMissing, user: user) }
    if fetched.starts(with: pinned) { return .longer }
    let links = try links(fetched, of: user)
    _ = try IdentityReplay.verify(links, expected: user)
    let isShorter = links.count < (try self.links(pinned, of: user).count)
    throw ZDCSecurityError(isShorter ? .identityChainRollback : .identityChainInvalid, user: user)
  }
}

extension Sequence<IdentityLink> {
  /// The generation below which the user has declared decryption keys compromised; 0 if they never did.
  var trustedEncGen: UInt32 { filter { $0.compromise & 2 == 2 }.map(\.encGen).max() ?? 0 }
}

extension ZDCReadTransaction {
  /// Whether a grant of the list is sealed for a key that its member has declared compromised since, as far as this device
  /// knows the member's chain.
  package func isSealedForCompromisedKey(_ list: ZoneACL.Fields) throws -> Bool {
    try list.entries.contains { try $0.encGen < trustedEncGen(of: $0.user) }
  }

  fileprivate func trustedEncGen(of user: UserID) throws -> UInt32 {
    guard let chain = try localUsers.user(user)?.chain ?? users.chain(of: user) else { return 0 }
    return try IdentityChain.links(chain, of: user).trustedEncGen
  }
}

extension ZDCReadWriteTransaction {
  /// Queues a fresh key for each zone whose key is sealed for a compromised key of a user, where a local user may replace
  /// it (PROTOCOL 3.10). Call it in the transaction that stores the longer chain.
  ///
  /// - Parameter random: In 0..<1.
  func replaceKeys(
    sealedFor user: UserID, atMs now: UInt64, random: () -> Double = { .random(in: 0..<1) }
  ) throws {
    let trusted = try trustedEncGen(of: user)
    guard trusted > 0 else { return }
    for localUser in try localUsers.all() {
      for zone in try zones.zones(localUser: localUser.id) {
        guard let entry = zone.head?.acl.fields.entry(for: user), entry.encGen < trusted else { continue }
        try queueRotation(of: zone, by: localUser.userID, atMs: now, random: random)
      }
    }
  }
}
