import ZDCProtocol

@testable import ZDCCrypto

extension VectorCases {
  /// Home, in which carol has put `/3`, and the owner `/1/2`; then carol's right to write was narrowed.
  private func narrowed(_ narrowing: ZoneACL.Permissions) throws -> FrozenMembers {
    var zone = try membersOfHome()
    let root = world.home.zone.root
    try zone.append([zone.put(node(1), root, 1), zone.put(node(2), node(1), 2)])
    try zone.append([zone.put(node(3), root, 3)], by: zone.carol)
    let carol = zone.carol.user
    let list = try zone.nextList { fields in
      for index in fields.entries.indices where fields.entries[index].user == carol {
        fields.entries[index].permissions = [.read, .write, narrowing]
      }
    }
    try zone.append([.acl(version: 3, hash: list.hash)], list: list)
    return zone
  }

  private func node(_ number: UInt64) -> NodeID { NodeID(high: number, low: number) }

  private func delete(_ number: UInt64, _ count: UInt64 = 0) -> ZoneOperation {
    .delete(node: node(number), record: RecordHash(number, 0, 0, 0), liveDescendants: count)
  }

  mutating func addRights() throws {
    let root = world.home.zone.root
    let create = try narrowed(.writeOnce)
    try allow("create", "create only: a new node", create, create.put(node(4), node(2), 4))
    try forbid("create-put", "create only: another version", create, create.put(node(3), root, 4))
    try forbid("create-delete", "create only: a delete of an own node", create, delete(3))
    let burn = try narrowed([.writeOnce, .burnIfSender])
    try allow("burn", "burn if sender: a delete of an own node", burn, delete(3))
    try forbid("burn-other", "burn if sender: a node of another member", burn, delete(2))
    let top = try narrowed(.leafsOnly)
    try allow("top", "only below the root: a node there", top, top.put(node(4), root, 4))
    try forbid("top-deep", "only below the root: a node further down", top, top.put(node(4), node(1), 4))
    try forbid("top-up", "only below the root: a node that comes from further down", top, top.put(node(2), root, 4))
    try forbid("top-folder", "only below the root: a delete of what others have put below", top, delete(1, 1))
    let own = try narrowed(.userOnly)
    let child = NodeID.child(of: world.home.zone, for: own.carol.user)
    try allow("own", "only the member's own child", own, own.put(child, root, 4))
    try forbid("own-other", "only the member's own child: another node", own, own.put(node(4), root, 4))
    try forbid("own-deep", "only the member's own child: at another place", own, own.put(child, node(1), 4))
    let records = try narrowed(.recordsOnly)
    try allow("records", "records only: an operation does not show content", records, records.put(node(3), root, 4))
  }

  private mutating func allow(
    _ name: String, _ about: String, _ zone: FrozenMembers, _ operation: ZoneOperation
  ) throws {
    var zone = zone
    try zone.append([operation], by: zone.carol)
    // The state is compared by the other reader: each node by the last put in the log.
    var state = MemoryZoneState()
    var head: ZoneHead?
    var directory = ChainDirectory(identity: try IdentityReplay.verify(zone.links))
    directory.others = try [zone.bob, zone.carol, zone.dave].map { try IdentityReplay.verify([$0.link]) }
    for step in zone.steps {
      let list = try step.acl.map { try ZoneACL($0) }
      head = try ZoneReplay(identities: directory).apply(
        try ZoneCommit(step.commit), acl: list, after: head, to: &state)
    }
    let root = Self.stateRoot(Array(state.leaves.values))
    add(
      "log-right-\(name)", "log", about,
      zone.members().merging(
        ["head": VectorValue(zone.head.hash.bytes), "stateRoot": VectorValue(root.bytes)]) { $1 })
  }

  private mutating func forbid(
    _ name: String, _ about: String, _ zone: FrozenMembers, _ operation: ZoneOperation
  ) throws {
    refuse(
      "right-\(name)", about, .writerNotAuthorized, zone, try zone.commit([operation], by: zone.carol))
  }

  // MARK: Edits of lists

  private func members(_ old: ZoneACL, _ edit: [UInt8]) -> [String: VectorValue] {
    ["acl": VectorValue(old.bytes), "edit": VectorValue(edit)]
  }

  mutating func addListEdits() throws {
    let zone = try membersOfHome()
    let old = zone.list
    let (carol, dave) = (zone.carol.user, zone.dave.user)
    let new = try zone.nextList { fields in
      fields.entries.removeAll { $0.user == dave }
      for index in fields.entries.indices where fields.entries[index].user == carol {
        fields.entries[index].permissions = [.read]
      }
      fields.entries.append(
        ZoneACL.Entry(
          user: UserID(w: 0xFFFF_FFFF_0000_0002), permissions: .read, encGen: 1, wrapKind: .nodeKey,
          wrapHash: GrantHash(4, 4, 4, 4)))
      fields.entries.sort { $0.user < $1.user }
    }
    let edit = ZoneACLEdit(from: old, to: new)
    add(
      "list-edit", "list-edit", "a member is removed, one changed, one added",
      members(old, edit.bytes).merging(["aclHash": VectorValue(new.hash.bytes)]) { $1 })
    add("list-edit-other", "list-edit", "against another list", expect: .aclRollback, members(new, try again(new)))
    add(
      "list-edit-more", "list-edit", "a removed user who is not in the list", expect: .nonCanonicalEncoding,
      members(world.home.acl, edit.bytes))
    add(
      "list-edit-trailing", "list-edit", "a byte too many", expect: .nonCanonicalEncoding,
      members(old, edit.bytes + [0]))
  }

  /// Returns the edit of a list that follows another one with the same entries.
  private func again(_ list: ZoneACL) throws -> [UInt8] {
    var fields = list.fields
    fields.prev = .zero
    return ZoneACLEdit(from: list, to: try ZoneACL(fields, sign: world.sign("acl"))).bytes
  }

  // MARK: Attached content

  mutating func addAttached() throws {
    let item = AttachedContent(
      tree: world.home.zone.tree, node: node(5), blob: BlobID(high: 6, low: 7))
    var writer = Bundle.Writer()
    writer.append(attach: item)
    add(
      "attach", "attach", "content of another node",
      [
        "bundle": VectorValue(writer.bytes), "treeID": VectorValue(item.tree.bytes),
        "nodeID": VectorValue(item.node.bytes), "blobID": VectorValue(item.blob.bytes),
      ])
    var short = writer.bytes
    short.removeLast()
    short[4] -= 1
    add(
      "attach-short", "attach", "a byte too few", expect: .nonCanonicalEncoding, ["bundle": VectorValue(short)])
  }
}
