package import ZDCProtocol

/// Wraps a zone's key for a member (PROTOCOL 3.9).
///
/// Use it only for entries whose identity this client verified, and that it created itself or whose addition it
/// verified by replay. The server must never be able to cause a wrap.
package struct GrantSealer: Sendable {
  package var zone: ZoneID
  package var zoneKeyGen: UInt32
  package var key: NodeKey

  package init(zone: ZoneID, zoneKeyGen: UInt32, key: NodeKey) {
    self.zone = zone
    self.zoneKeyGen = zoneKeyGen
    self.key = key
  }

  /// Wraps the zone's key for a member.
  ///
  /// - Throws: `weakPublicKey` if the member's key is malformed.
  package func seal(for user: UserID, encGen: UInt32, encPub: [UInt8]) throws(ZDCSecurityError) -> Grant {
    let context = grantContext(
      zone: zone, zoneKeyGen: zoneKeyGen, user: user, encGen: encGen, kind: .nodeKey, commitments: key.commitments)
    let wrap = try Wrap.wrap(to: encPub, label: "grant", context: context, plaintext: key.exportBytes())
    return Grant(zone: zone, zoneKeyGen: zoneKeyGen, user: user, wrap: wrap)
  }
}

/// Opens a member's own grant (PROTOCOL 3.9).
package enum GrantOpener {
  /// Opens a grant and checks the key in it.
  ///
  /// - Parameters:
  ///   - acl: The zone's verified access list in force.
  ///   - key: The user's decryption key of the generation that their entry names.
  /// - Throws: `grantMissing` if the list has no entry for the user, `grantHashMismatch` if the list names a different
  ///   grant, `keyCommitmentMismatch` if the key in the grant is not the zone's. That one names the signer of the list.
  package static func open(
    _ grant: Grant, acl: ZoneACL, user: UserID, key: DecryptionKey
  ) throws(ZDCSecurityError) -> NodeKey {
    let fields = acl.fields
    guard let entry = fields.entry(for: user) else {
      throw ZDCSecurityError(.grantMissing, zone: fields.zone, user: user)
    }
    do throws(ZDCSecurityError) {
      let isNamed =
        grant.zone == fields.zone && grant.user == user && grant.zoneKeyGen == fields.zoneKeyGen
        && grant.wrapHash == entry.wrapHash
      try require(isNamed, .grantHashMismatch)
      return try open(grant, fields: fields, entry: entry, key: key)
    } catch { throw error.with(zone: fields.zone, user: user) }
  }

  private static func open(
    _ grant: Grant, fields: ZoneACL.Fields, entry: ZoneACL.Entry, key: DecryptionKey
  ) throws(ZDCSecurityError) -> NodeKey {
    let context = grantContext(
      zone: fields.zone, zoneKeyGen: fields.zoneKeyGen, user: entry.user, encGen: entry.encGen, kind: entry.wrapKind,
      commitments: fields.commitments)
    // A named wrap that does not open holds no key of the zone, just like a wrap that holds a different key.
    guard let bytes = try? key.unwrap(label: "grant", context: context, grant.wrap) else {
      throw ZDCSecurityError(.keyCommitmentMismatch, user: fields.writer)
    }
    guard let granted = NodeKey(bytes), granted.commitments == fields.commitments else {
      throw ZDCSecurityError(.keyCommitmentMismatch, user: fields.writer)
    }
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
