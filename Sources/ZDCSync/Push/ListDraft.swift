internal import ZDCAccounts
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// Changes of a zone's access list that may go into its next commit.
package struct ListChoice: Sendable {
  package var zone: ZoneRow
  package var head: ZoneHead
  package var changes: [OperationRow]
  /// The earliest time at which the pause of another change ends.
  package var nextMs: UInt64?
}

/// The next version of an access list, signed, with the grants that it names. Sealing a thousand grants takes long, so
/// it is done outside of the transaction that stores them.
struct ListDraft: Sendable {
  let acl: ZoneACL
  let grants: [Grant]
  /// The zone's fresh key, if the version rotates it.
  let key: NodeKey?

  /// - Parameters:
  ///   - keys: The keys of all recipients.
  ///   - used: The generations of the zone's key that live children still use.
  /// - Throws: `grantMissing` without the zone's key, `limitExceeded` if too many old generations are in use.
  init(
    _ wanted: WantedList, _ choice: ListChoice, keys: [UserID: RecipientKey], used: Set<UInt32>, session: SyncSession
  ) throws {
    let old = choice.head.acl
    var fields = old.fields
    fields.version += 1
    (fields.prev, fields.writer, fields.writerGen) = (old.hash, session.user, session.keys.signGen)
    fields.timeMs = session.now()
    let zoneKey = choice.zone.key
    // A member who leaves seals nothing, and need not have the key.
    guard zoneKey != nil || wanted.isSelfRemoval else {
      throw ZDCSecurityError(.grantMissing, zone: choice.zone.zone, user: session.user)
    }
    key = wanted.isRotation ? .random() : nil
    if let key, let zoneKey { try Self.rotate(&fields, from: zoneKey, to: key, used: used) }
    let sealer = (key ?? zoneKey).map {
      GrantSealer(zone: choice.zone.zone, zoneKeyGen: fields.zoneKeyGen, key: $0)
    }
    (fields.entries, grants) = try Self.entries(wanted, old.fields, keys, sealer)
    acl = try ZoneACL(fields) { try session.keys.signingKey.sign(label: "acl", message: $0) }
  }

  private static func rotate(
    _ fields: inout ZoneACL.Fields, from old: NodeKey, to key: NodeKey, used: Set<UInt32>
  ) throws {
    let history = try openHistory(fields, key: old)
      .adding(KeyHistory.Entry(keyGen: fields.zoneKeyGen, key: old), keeping: used)
    try require(fields.zoneKeyGen < .max, .limitExceeded)
    fields.zoneKeyGen += 1
    fields.commitments = key.commitments
    fields.historyWrap = try history.seal(
      tree: fields.zone.tree, node: fields.zone.root, key: key, keyGen: fields.zoneKeyGen)
  }

  /// A history that the last writer sealed incorrectly opens for no member, so nothing is lost with it.
  private static func openHistory(_ fields: ZoneACL.Fields, key: NodeKey) throws -> KeyHistory {
    do throws(ZDCSecurityError) { return try KeyHistory(of: fields, key: key) } catch { return KeyHistory() }
  }

  private static func entries(
    _ wanted: WantedList, _ old: ZoneACL.Fields, _ keys: [UserID: RecipientKey], _ sealer: GrantSealer?
  ) throws -> ([ZoneACL.Entry], [Grant]) {
    var (entries, grants): ([ZoneACL.Entry], [Grant]) = ([], [])
    for (user, permissions) in wanted.permissions.sorted(by: { $0.key < $1.key }) {
      if !wanted.isRotation, var entry = old.entry(for: user) {
        entry.permissions = permissions
        entries.append(entry)
        continue
      }
      guard let key = keys[user], let sealer else { throw ZDCSecurityError(.accountStateMissing, user: user) }
      let grant = try sealer.seal(for: user, encGen: key.encGen, encPub: key.encPub)
      grants.append(grant)
      entries.append(
        ZoneACL.Entry(
          user: user, permissions: permissions, encGen: key.encGen, wrapKind: .nodeKey, wrapHash: grant.wrapHash))
    }
    return (entries, grants)
  }
}
