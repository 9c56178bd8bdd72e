/// A writer's rights, by the access list in force before the commit (PROTOCOL 3.7, 3.9).
///
/// The operations decide, and for the rights that narrow `w`, the state before them. Whether a record has content is
/// only known with the record: see `RecordRules.check(_:permissions:)`.
struct ZoneRights {
  let permissions: ZoneACL.Permissions
  let isOwner: Bool
  private let list: ZoneACL
  private let writer: UserID
  private let zone: ZoneID
  /// The root that only the owner may put, unless the commit rotates the zone's key.
  private let ownersRoot: NodeID?

  init(before: ZoneACL, after: ZoneACL, writer: UserID) {
    (list, self.writer) = (before, writer)
    zone = before.fields.zone
    isOwner = writer == before.fields.owner
    permissions = before.fields.entry(for: writer)?.permissions ?? []
    let isRotation = after.fields.zoneKeyGen != before.fields.zoneKeyGen
    ownersRoot = zone == ZoneID(trunkOf: zone.tree) && !(isRotation && permissions.contains(.share)) ? zone.root : nil
  }

  func check(_ operation: ZoneOperation, in state: some ZoneState) throws {
    if case .retireKey(let user, _) = operation { return try demand(mayRetireKey(of: user)) }
    guard !isOwner else { return }
    switch operation {
    case .put(let put): try demand(mayPut(put, in: state), node: put.node)
    case .delete(let node, _, let count): try demand(mayDelete(node, descendants: count, in: state), node: node)
    case .split, .genesisState: throw ZDCSecurityError(.splitNeedsOwner, user: writer)
    // ACLReplay decides about lists: a member without `s` may still remove themselves.
    case .acl, .retireKey: break
    }
  }

  /// Readers of the log fetch the chains of members only, so they could not verify the retirement of another user's key.
  private func mayRetireKey(of user: UserID) -> Bool {
    (isOwner || user == writer) && list.fields.entry(for: user) != nil
  }

  private func demand(_ isAllowed: Bool, node: NodeID? = nil) throws(ZDCSecurityError) {
    guard isAllowed else { throw ZDCSecurityError(.writerNotAuthorized, node: node, user: writer) }
  }

  private func mayPut(_ put: ZoneOperation.Put, in state: some ZoneState) throws -> Bool {
    guard permissions.contains(.write), put.node != ownersRoot else { return false }
    guard permissions.isNarrowed else { return true }
    let old = try state.leaf(put.node)
    if permissions.contains(.writeOnce), old != nil { return false }
    if permissions.contains(.leafsOnly), put.parent != zone.root || old.map({ $0.parent != zone.root }) ?? false {
      return false
    }
    return !permissions.contains(.userOnly) || put.node == ownChild && put.parent == zone.root
  }

  /// A narrowed right deletes only what it could have put, and nothing that others put below it.
  private func mayDelete(_ node: NodeID, descendants: UInt64, in state: some ZoneState) throws -> Bool {
    guard permissions.contains(.write), node != zone.root else { return false }
    let limits: ZoneACL.Permissions = [.writeOnce, .leafsOnly, .userOnly]
    // Replay refuses the delete of a node that is not live.
    guard !permissions.isDisjoint(with: limits), let leaf = try state.leaf(node) else { return true }
    guard descendants == 0 else { return false }
    if permissions.contains(.writeOnce) {
      let isOwn = try permissions.contains(.burnIfSender) && state.writer(of: leaf) == writer
      guard isOwn else { return false }
    }
    if permissions.contains(.leafsOnly), leaf.parent != zone.root { return false }
    return !permissions.contains(.userOnly) || node == ownChild
  }

  private var ownChild: NodeID { NodeID.child(of: zone, for: writer) }
}

extension ZoneACL.Permissions {
  /// Whether `w` is narrowed.
  fileprivate var isNarrowed: Bool { !isDisjoint(with: Self.narrowing) }
}

extension NodeID {
  /// Returns the node below a zone's root that a member with the right `U` may put:
  /// `H("user-child", treeID ‖ zoneRoot ‖ userID)[0..16)`.
  package static func child(of zone: ZoneID, for user: UserID) -> NodeID {
    NodeID(prefixOf: Bytes32<NodeRole>(labelledHash: "user-child", zone.tree.bytes, zone.root.bytes, user.bytes))
  }
}
