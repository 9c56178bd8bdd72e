import ZDCProtocol

/// A trunk's zone with its log, replayed in memory.
struct TestZone {
  static let appTreeID = "com.example.app"

  let owner: TestUser
  let zone: ZoneID
  var users: [TestUser]
  private(set) var head: ZoneHead?
  private(set) var state = MemoryZoneState()
  /// The branch that the newest commit split off.
  private(set) var split: ZoneSplit?

  /// Creates an empty zone: its log has no commits yet.
  ///
  /// - Parameter root: nil for the trunk's own zone.
  init(owner: TestUser, members: [TestUser] = [], root: NodeID? = nil) {
    self.owner = owner
    users = [owner] + members
    let trunk = ZoneID(trunkOf: TreeID.derive(owner: owner.id, trunk: .home, appTreeID: Self.appTreeID))
    zone = ZoneID(tree: trunk.tree, root: root ?? trunk.root)
  }

  /// Returns a zone with its genesis commit, and a second commit that adds the members with these permissions.
  static func born(
    owner: TestUser, members: [(TestUser, ZoneACL.Permissions)] = [], root: NodeID? = nil
  ) throws -> TestZone {
    var zone = TestZone(owner: owner, members: members.map(\.0), root: root)
    try zone.apply(zone.genesis(acl: zone.firstACL()), acl: zone.firstACL())
    guard !members.isEmpty, let head = zone.head else { return zone }
    let acl = try zone.signed(zone.adding(members, to: head.acl), by: owner)
    try zone.apply(zone.commit([.acl(version: 2, hash: acl.hash)], acl: acl), acl: acl)
    return zone
  }

  // MARK: Access lists

  var firstFields: ZoneACL.Fields {
    ZoneACL.Fields(
      zone: zone, owner: owner.id, trunk: .home, appTreeID: Self.appTreeID, version: 1, prev: .zero,
      parentLinked: false, zoneKeyGen: 1, commitments: .init(node: .init(1, 1, 1, 1), content: .init(2, 2, 2, 2)),
      entries: [entry(owner, [.read, .write, .share])], writer: owner.id, writerGen: owner.signGen, timeMs: 1)
  }

  func firstACL() throws -> ZoneACL { try signed(firstFields, by: owner) }

  func entry(_ user: TestUser, _ permissions: ZoneACL.Permissions) -> ZoneACL.Entry {
    ZoneACL.Entry(user: user.id, permissions: permissions, encGen: 1, wrapKind: .nodeKey, wrapHash: .zero)
  }

  func signed(_ fields: ZoneACL.Fields, by user: TestUser) throws -> ZoneACL {
    try ZoneACL(fields, sign: { try user.signature("acl", $0) })
  }

  /// Returns the fields of the next list, equal except for version and writer.
  func next(after acl: ZoneACL, by user: TestUser) -> ZoneACL.Fields {
    var fields = acl.fields
    fields.version += 1
    fields.prev = acl.hash
    fields.writer = user.id
    fields.writerGen = user.signGen
    return fields
  }

  func adding(
    _ members: [(TestUser, ZoneACL.Permissions)], to acl: ZoneACL, by user: TestUser? = nil
  ) -> ZoneACL.Fields {
    var fields = next(after: acl, by: user ?? owner)
    fields.entries = (fields.entries + members.map { entry($0.0, $0.1) }).sorted { $0.user < $1.user }
    return fields
  }

  // MARK: Commits

  var rootPut: ZoneOperation {
    .put(.init(node: zone.root, parent: .zero, record: .init(9, 9, 9, 9), keyGen: 1, parentKeyGen: 0))
  }

  func genesis(acl: ZoneACL, operations: [ZoneOperation]? = nil) throws -> ZoneCommit {
    let operations = operations ?? [.acl(version: acl.fields.version, hash: acl.hash), rootPut]
    return try commit(operations, acl: acl)
  }

  /// Returns the fields of the next commit.
  func nextFields(_ operations: [ZoneOperation], acl: ZoneACL? = nil, by user: TestUser? = nil) -> ZoneCommit.Fields {
    let writer = user ?? owner
    return ZoneCommit.Fields(
      zone: zone, seq: head.map { $0.seq + 1 } ?? 0, prev: head?.hash ?? ZoneCommit.genesisPrev(zone: zone),
      aclHash: acl?.hash ?? head?.acl.hash ?? .zero, writer: writer.id, writerGen: writer.signGen, timeMs: 3,
      operations: operations)
  }

  func commit(_ operations: [ZoneOperation], acl: ZoneACL? = nil, by user: TestUser? = nil) throws -> ZoneCommit {
    try signed(nextFields(operations, acl: acl, by: user), by: user ?? owner)
  }

  func signed(_ fields: ZoneCommit.Fields, by user: TestUser) throws -> ZoneCommit {
    try ZoneCommit(fields, sign: { try user.signature("commit", $0) })
  }

  // MARK: Replay

  /// Applies a commit as a receiver does: from its bytes, and without any change if it throws.
  mutating func apply(_ commit: ZoneCommit, acl: ZoneACL? = nil, list: StateList? = nil) throws {
    let replay = ZoneReplay(identities: try TestDirectory(users))
    var next = state
    let received = try ZoneCommit(commit.bytes)
    let step = try replay.advance(
      received, acl: acl.map { try ZoneACL($0.bytes) }, list: list.map { try StateList($0.bytes) }, after: head,
      to: &next)
    (head, split) = (step.head, step.split)
    state = next
  }

  /// Gives the zone its next key.
  mutating func rotate() throws {
    guard let head else { return }
    var fields = next(after: head.acl, by: owner)
    fields.zoneKeyGen += 1
    let acl = try signed(fields, by: owner)
    let root = put(zone.root, below: .zero, keyGen: fields.zoneKeyGen, parentKeyGen: 0, version: 7)
    try apply(commit([.acl(version: fields.version, hash: acl.hash), root], acl: acl), acl: acl)
  }

  mutating func apply(_ operations: [ZoneOperation], by user: TestUser? = nil) throws {
    try apply(commit(operations, by: user))
  }

  /// Puts a node below `parent` as the log has it now; an existing node keeps its generation unless `keyGen` is given.
  func put(
    _ node: NodeID, below parent: NodeID? = nil, keyGen: UInt32? = nil, parentKeyGen: UInt32? = nil, version: UInt64 = 1
  ) -> ZoneOperation {
    let parent = parent ?? zone.root
    return .put(
      .init(
        node: node, parent: parent, record: RecordHash(version, 0, 0, 1),
        keyGen: keyGen ?? state.leaf(node)?.keyGen ?? 1,
        parentKeyGen: parentKeyGen ?? state.leaf(parent)?.keyGen ?? 1))
  }
}

extension NodeID {
  /// Returns a node ID for tests, from a small number.
  static func n(_ number: UInt64) -> NodeID { NodeID(high: 0xa, low: number) }
}
