package import ZDCProtocol

/// A user's identity chain as bytes: the bundle that the server gives and that is pinned here (PROTOCOL 3.2).
package enum IdentityChain {
  package enum Comparison: Sendable {
    case same
    /// It continues what is pinned. What is new has still to be verified.
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

  /// Compares byte by byte: only links that are new cost a signature check.
  ///
  /// - Throws: `accountStateMissing` for no link at all, `identityChainRollback` for fewer links than are pinned,
  ///   `identityChainInvalid` for others, and what else is wrong with them.
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
