import Testing
import ZDCProtocol

/// K-12: each right, against each kind of operation.
@Suite struct RightsTableTests {
  private let alice: TestUser
  private let bob: TestUser

  init() throws {
    alice = try TestUser(seed: 1)
    bob = try TestUser(seed: 2)
  }

  /// Bob's attempts. In the zone, `/1` is alice's, with `/1/2` below it; `/3` is bob's, and empty; `/own` is the node
  /// that is named after bob.
  enum Attempt: String, CaseIterable, Sendable {
    case putNewTop, putNewBelow, putOldTop, putOldBelow, moveUp, putOwnChild, putRoot
    case deleteForeignLeaf, deleteOwnLeaf, deleteFolder, deleteOwnChild, deleteRoot
    case split, retireOwn, retireOther
  }

  private static let read: ZoneACL.Permissions = [.read]
  private static let write: ZoneACL.Permissions = [.read, .write]
  private static let everything = Set(Attempt.allCases).subtracting([.deleteRoot, .split, .retireOther])

  /// The operations that each right allows.
  static let table: [(ZoneACL.Permissions, Set<Attempt>)] = [
    (read, [.retireOwn]),
    (write, everything),
    (write.union(.share), everything),
    (write.union(.recordsOnly), everything),
    (write.union(.writeOnce), [.putNewTop, .putNewBelow, .retireOwn]),
    (
      write.union([.writeOnce, .burnIfSender]), [.putNewTop, .putNewBelow, .deleteOwnLeaf, .retireOwn]
    ),
    (
      write.union(.leafsOnly),
      [.putNewTop, .putOldTop, .putOwnChild, .deleteOwnLeaf, .deleteForeignLeaf, .deleteOwnChild, .retireOwn]
    ),
    (write.union(.userOnly), [.putOwnChild, .deleteOwnChild, .retireOwn]),
    (write.union([.userOnly, .writeOnce]), [.retireOwn]),
    (write.union([.leafsOnly, .writeOnce, .burnIfSender]), [.putNewTop, .deleteOwnLeaf, .retireOwn]),
  ]

  @Test("right × operation", arguments: table.indices)
  func eachRight(row: Int) throws {
    let (permissions, allowed) = Self.table[row]
    var rotated = bob
    try rotated.rotateSignKey()
    var zone = try TestZone.born(owner: alice, members: [(bob, Self.write)], root: .n(100))
    zone.users = [alice, rotated]
    let own = NodeID.child(of: zone.zone, for: bob.id)
    try zone.apply([
      zone.put(.n(1)), zone.put(.n(2), below: .n(1), parentKeyGen: 1), zone.put(own), zone.put(.n(4)),
    ])
    try zone.apply([zone.put(.n(3))], by: bob)
    try give(permissions, in: &zone)
    for attempt in Attempt.allCases {
      var copy = zone
      let commit = try zone.commit([operation(attempt, own: own, in: zone)], by: bob)
      let code = refusal { try copy.apply(commit) }
      let isAllowed = allowed.contains(attempt)
      #expect((code == nil) == isAllowed, "\(permissions.rawValue) \(attempt): \(String(describing: code))")
      guard !isAllowed else { continue }
      #expect(code == (attempt == .split ? .splitNeedsOwner : .writerNotAuthorized))
    }
  }

  private func give(_ permissions: ZoneACL.Permissions, in zone: inout TestZone) throws {
    guard let head = zone.head else { return }
    var fields = zone.next(after: head.acl, by: alice)
    for index in fields.entries.indices where fields.entries[index].user == bob.id {
      fields.entries[index].permissions = permissions
    }
    let acl = try zone.signed(fields, by: alice)
    try zone.apply(zone.commit([.acl(version: fields.version, hash: acl.hash)], acl: acl), acl: acl)
  }

  private func operation(_ attempt: Attempt, own: NodeID, in zone: TestZone) -> ZoneOperation {
    switch attempt {
    case .putNewTop: zone.put(.n(9))
    case .putNewBelow: zone.put(.n(9), below: .n(1))
    case .putOldTop: zone.put(.n(4), version: 2)
    case .putOldBelow: zone.put(.n(2), below: .n(1), version: 2)
    case .moveUp: zone.put(.n(2))
    case .putOwnChild: zone.put(own, version: 2)
    case .putRoot: zone.put(zone.zone.root, below: .zero, parentKeyGen: 0, version: 2)
    case .deleteForeignLeaf: delete(.n(4), 0, in: zone)
    case .deleteOwnLeaf: delete(.n(3), 0, in: zone)
    case .deleteFolder: delete(.n(1), 1, in: zone)
    case .deleteOwnChild: delete(own, 0, in: zone)
    case .deleteRoot: delete(zone.zone.root, 0, in: zone)
    case .split: .split(node: .n(1), genesis: .zero, count: 2)
    case .retireOwn: .retireKey(user: bob.id, gen: 2)
    case .retireOther: .retireKey(user: alice.id, gen: 2)
    }
  }

  private func delete(_ node: NodeID, _ count: UInt64, in zone: TestZone) -> ZoneOperation {
    .delete(node: node, record: zone.state.leaf(node)?.record ?? .zero, liveDescendants: count)
  }

  @Test("U: the node named after the user may be created by that user only")
  func theUsersChild() throws {
    var zone = try TestZone.born(owner: alice, members: [(bob, [.read, .write, .userOnly])], root: .n(100))
    let (own, other) = (NodeID.child(of: zone.zone, for: bob.id), NodeID.child(of: zone.zone, for: alice.id))
    #expect(refusal { try zone.apply([zone.put(other)], by: bob) } == .writerNotAuthorized)
    #expect(refusal { try zone.apply([zone.put(own)], by: bob) } == nil)
    #expect(refusal { try zone.apply([zone.put(.n(1), below: own)], by: bob) } == .writerNotAuthorized)
  }

  @Test("B: a node that another member put since is no longer the sender's, nor one with children")
  func burnIfSender() throws {
    var zone = try TestZone.born(
      owner: alice, members: [(bob, [.read, .write, .writeOnce, .burnIfSender])], root: .n(100))
    try zone.apply([zone.put(.n(1)), zone.put(.n(2)), zone.put(.n(3))], by: bob)
    try zone.apply([zone.put(.n(2), version: 2), zone.put(.n(4), below: .n(3), parentKeyGen: 1)])
    for (node, count, isAllowed) in [(NodeID.n(1), UInt64(0), true), (.n(2), 0, false), (.n(3), 1, false)] {
      var copy = zone
      let code = refusal { try copy.apply([delete(node, count, in: zone)], by: bob) }
      #expect(code == (isAllowed ? nil : .writerNotAuthorized), "\(node)")
    }
  }

  @Test("B: nodes of a zone that was split off are the owner's")
  func burnAfterASplit() throws {
    var parent = try TestZone.born(owner: alice, members: [(bob, [.read, .write])])
    try parent.apply([parent.put(.n(1)), parent.put(.n(2), below: .n(1), parentKeyGen: 1)], by: bob)
    var child = try TestSplit.split(.n(1), of: &parent)
    let head = try #require(child.head)
    let acl = try child.signed(
      child.adding([(bob, [.read, .write, .writeOnce, .burnIfSender])], to: head.acl), by: alice)
    try child.apply(child.commit([.acl(version: 2, hash: acl.hash)], acl: acl), acl: acl)
    let delete = delete(.n(2), 0, in: child)
    #expect(refusal { try child.apply([delete], by: bob) } == .writerNotAuthorized)
  }

  @Test("R: the record decides, because an operation does not show content")
  func recordsOnly() {
    var generator = SeededGenerator(seed: 1)
    var fields = Samples.record(&generator, allFields: true)
    let rights: ZoneACL.Permissions = [.read, .write, .recordsOnly]
    let with = NodeRecord(fields)
    (fields.content, fields.dataAuthor) = (nil, nil)
    let without = NodeRecord(fields)
    #expect(refusal { try RecordRules.check(with, permissions: rights) } == .writerNotAuthorized)
    #expect(refusal { try RecordRules.check(without, permissions: rights) } == nil)
    #expect(refusal { try RecordRules.check(with, permissions: [.read, .write]) } == nil)
  }
}
