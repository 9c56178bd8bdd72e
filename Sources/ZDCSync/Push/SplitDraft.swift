internal import ZDCAccounts
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport

/// A node that is to get an access list of its own, with the changes of the list with which its zone begins.
package struct SplitChoice: Sendable {
  /// The parent zone.
  package var zone: ZoneRow
  package var head: ZoneHead
  package var top: NodeRow
  package var leaf: LogNode
  /// The generations of the node's key that live children still use.
  package var used: Set<UInt32>
  package var changes: [OperationRow]

  var branch: ZoneID { ZoneID(tree: zone.zone.tree, root: top.nodeID) }
}

/// The first access list of a zone that is split off, signed, with the grants that it names. Sealing a thousand grants takes
/// long, so it is done outside of the transaction that stores them.
struct SplitDraft: Sendable {
  let acl: ZoneACL
  let grants: [Grant]
  /// The fresh key of the new zone's root. A former member of the parent zone may have the old one (S-1).
  let key: NodeKey

  /// - Throws: `limitExceeded` if there is no next generation, or if too many old ones are in use.
  init(_ wanted: WantedList, _ choice: SplitChoice, keys: [UserID: RecipientKey], session: SyncSession) throws {
    try require(choice.leaf.keyGen < .max, .limitExceeded, node: choice.top.nodeID)
    key = .random()
    var fields = choice.head.acl.fields
    (fields.zone, fields.version, fields.prev) = (choice.branch, 1, .zero)
    (fields.writer, fields.writerGen, fields.timeMs) = (session.user, session.keys.signGen, session.now())
    (fields.zoneKeyGen, fields.commitments) = (choice.leaf.keyGen + 1, key.commitments)
    fields.historyWrap = try Self.history(of: choice).seal(
      tree: fields.zone.tree, node: fields.zone.root, key: key, keyGen: fields.zoneKeyGen)
    let sealer = GrantSealer(zone: fields.zone, zoneKeyGen: fields.zoneKeyGen, key: key)
    (fields.entries, grants) = try Self.entries(wanted, keys, sealer)
    acl = try ZoneACL(fields) { try session.keys.signingKey.sign(label: "acl", message: $0) }
  }

  private static func history(of choice: SplitChoice) throws -> KeyHistory {
    let top = choice.top
    let entry = KeyHistory.Entry(keyGen: top.keyGen, key: top.key)
    let old: KeyHistory
    // Older keys that were sealed incorrectly open nothing for any device.
    do throws(ZDCSecurityError) {
      old = try KeyHistory(
        opening: top.historyWrap, tree: choice.branch.tree, node: top.nodeID, key: top.key, keyGen: top.keyGen)
    } catch { old = KeyHistory() }
    return try old.adding(entry, keeping: choice.used)
  }

  private static func entries(
    _ wanted: WantedList, _ keys: [UserID: RecipientKey], _ sealer: GrantSealer
  ) throws -> ([ZoneACL.Entry], [Grant]) {
    var (entries, grants): ([ZoneACL.Entry], [Grant]) = ([], [])
    for (user, permissions) in wanted.permissions.sorted(by: { $0.key < $1.key }) {
      guard let key = keys[user] else { throw ZDCSecurityError(.accountStateMissing, user: user) }
      let grant = try sealer.seal(for: user, encGen: key.encGen, encPub: key.encPub)
      grants.append(grant)
      entries.append(
        ZoneACL.Entry(
          user: user, permissions: permissions, encGen: key.encGen, wrapKind: .nodeKey, wrapHash: grant.wrapHash))
    }
    return (entries, grants)
  }
}
