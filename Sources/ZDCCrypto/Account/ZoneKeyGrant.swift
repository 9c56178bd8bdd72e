public import ZDCProtocol

/// The key that a grant gives: to the node and all below it, or to the one node.
public enum GrantedKey: Sendable, Equatable {
  case node(NodeKey)
  case content(ContentCapability)
}

/// Wraps a zone's key for a member (PROTOCOL 3.9).
///
/// Call it only for entries that this client made itself or whose addition it verified by replay, and whose identity it
/// verified: the server can never cause a wrap.
public struct GrantSealer: Sendable {
  public var zone: ZoneID
  public var zoneKeyGen: UInt32
  public var key: NodeKey

  public init(zone: ZoneID, zoneKeyGen: UInt32, key: NodeKey) {
    self.zone = zone
    self.zoneKeyGen = zoneKeyGen
    self.key = key
  }

  /// - Throws: `weakPublicKey` if the member's key is malformed.
  public func seal(
    for user: UserID, encGen: UInt32, encPub: [UInt8], kind: ZoneACL.WrapKind = .nodeKey
  ) throws(ZDCSecurityError) -> Grant {
    let plaintext = kind == .contentKey ? key.contentCapability.exportBytes() : key.exportBytes()
    let context = grantContext(
      zone: zone, zoneKeyGen: zoneKeyGen, user: user, encGen: encGen, kind: kind, commitments: key.commitments)
    let wrap = try Wrap.wrap(to: encPub, label: "grant", context: context, plaintext: plaintext)
    return Grant(zone: zone, zoneKeyGen: zoneKeyGen, user: user, wrap: wrap)
  }
}

/// Opens a member's own grant (PROTOCOL 3.9).
public enum GrantOpener {
  /// - Parameters:
  ///   - acl: the zone's verified access list in force.
  ///   - key: the user's decryption key of the generation that his entry names.
  /// - Throws: `grantMissing` if the list has no wrap for the user, `recordBindingMismatch` for a grant of another zone
  ///   or user, `staleKeyGeneration` for one of another generation, `grantHashMismatch` if it is not the one that the
  ///   list names, `keyCommitmentMismatch` if the key in it is not the zone's.
  public static func open(
    _ grant: Grant, acl: ZoneACL, user: UserID, key: DecryptionKey
  ) throws(ZDCSecurityError) -> GrantedKey {
    let fields = acl.fields
    guard let entry = fields.entry(for: user), entry.wrapKind != .parentWrap else {
      throw ZDCSecurityError(.grantMissing, zone: fields.zone, user: user)
    }
    do throws(ZDCSecurityError) {
      try require(grant.zone == fields.zone && grant.user == user, .recordBindingMismatch)
      try require(grant.zoneKeyGen == fields.zoneKeyGen, .staleKeyGeneration)
      try require(grant.wrapHash == entry.wrapHash, .grantHashMismatch)
      return try open(grant, fields: fields, entry: entry, key: key)
    } catch { throw error.with(zone: fields.zone, user: user) }
  }

  private static func open(
    _ grant: Grant, fields: ZoneACL.Fields, entry: ZoneACL.Entry, key: DecryptionKey
  ) throws(ZDCSecurityError) -> GrantedKey {
    let context = grantContext(
      zone: fields.zone, zoneKeyGen: fields.zoneKeyGen, user: entry.user, encGen: entry.encGen, kind: entry.wrapKind,
      commitments: fields.commitments)
    // A wrap that the list names and that does not open holds no key of the zone, just like one with another key.
    guard let bytes = try? key.unwrap(label: "grant", context: context, grant.wrap) else {
      throw ZDCSecurityError(.keyCommitmentMismatch)
    }
    let granted: GrantedKey?
    if entry.wrapKind == .contentKey {
      granted = ContentCapability(bytes).flatMap {
        $0.commitment == fields.commitments.content ? .content($0) : nil
      }
    } else {
      granted = NodeKey(bytes).flatMap { $0.commitments == fields.commitments ? .node($0) : nil }
    }
    guard let granted else { throw ZDCSecurityError(.keyCommitmentMismatch) }
    return granted
  }
}

private func grantContext(
  zone: ZoneID, zoneKeyGen: UInt32, user: UserID, encGen: UInt32, kind: ZoneACL.WrapKind,
  commitments: NodeRecord.ZoneCommitments
) -> [UInt8] {
  var context = ByteWriter(capacity: 153)
  context.append(zone.tree)
  context.append(zone.root)
  context.append(zoneKeyGen)
  context.append(user)
  context.append(encGen)
  context.append(kind.rawValue)
  context.append(commitments.node)
  context.append(commitments.content)
  return context.bytes
}
