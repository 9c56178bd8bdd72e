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
