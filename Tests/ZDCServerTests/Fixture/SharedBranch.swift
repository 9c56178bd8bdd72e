import Testing
import ZDCProtocol

/// A branch of the owner's home, shared with a member of each kind, and one that was removed.
struct SharedBranch {
  /// Named by their rights, as in the table of SECURITY.md.
  enum Role: String, CaseIterable, Sendable {
    case owner
    case sharer = "rws"
    case writer = "rw"
    case recordWriter = "rwR"
    case creator = "rwW"
    case burner = "rwWB"
    case leafWriter = "rwL"
    case childWriter = "rwU"
    case reader = "r"
    case former, stranger
    /// Sends no session token.
    case unauthenticated

    var permissions: ZoneACL.Permissions? {
      switch self {
      case .owner, .stranger, .unauthenticated: nil
      case .sharer: [.read, .write, .share]
      case .writer: [.read, .write]
      case .creator: [.read, .write, .writeOnce]
      case .burner: [.read, .write, .writeOnce, .burnIfSender]
      case .leafWriter: [.read, .write, .leafsOnly]
      case .childWriter: [.read, .write, .userOnly]
      case .recordWriter: [.read, .write, .recordsOnly]
      case .reader, .former: [.read]
      }
    }

    var mayWrite: Bool { self == .owner || permissions?.contains(.write) ?? false }
    var isMember: Bool { self == .owner || self != .former && permissions != nil }
  }

  /// Named as in the table of SECURITY.md.
  enum Change: String, CaseIterable, Sendable {
    case create = "put a new node below the root"
    case createBelow = "put a new node deeper"
    case createOwnChild = "put the own child node"
    case createContent = "put a new node with content"
    case modify = "put a node again"
    case move = "move a node"
    case delete = "delete a node"
    case deleteBranch = "delete a node with another one below"
    case deleteOwn = "delete the own child node"
    case modifyRoot = "put the root again"
    case addMember = "add a member"
    case raiseMember = "give another member more rights"
    case raiseSelf = "give themselves more rights"
    case removeMember = "remove another member"
    case leave = "leave"
    case lowerOwner = "lower the owner's rights"
    case removeOwner = "remove the owner"
    case rotate = "replace the branch's key"
    case split = "split off a branch"
    case retireOwnKey = "retire an own key"
    case retireOtherKey = "retire a key of another member"
    case end = "end the branch"

    var isOfList: Bool {
      [.addMember, .raiseMember, .raiseSelf, .removeMember, .leave, .lowerOwner, .removeOwner].contains(self)
    }
  }

  enum Variant: CaseIterable, Sendable {
    /// Made for the commit before the newest one.
    case oldHead
    /// Signed with the key of another user.
    case otherSignature
    /// Sent by another member.
    case otherSession
    case valid, repeated
  }

  struct Person {
    var account: TestAccount
    var token: [UInt8]
    /// The second signature key, if there is one.
    var newKey: SigningKey?

    var signKey: SigningKey { newKey ?? account.signKey }
    var generation: UInt32 { newKey == nil ? 1 : 2 }
  }

  let server: TestServer
  private(set) var people: [Role: Person]
  /// A reader whose entry the changes of the list concern.
  private(set) var extra: Person
  var zone: TestZone
  /// The owner's home, in which the branch has its pointer.
  let home: TestZone
  let content = TestZone.Content()
  let file = NodeID.random()
  /// The node that has the content.
  let document = NodeID.random()
  /// Without the newest commit.
  private let before: TestZone
  /// The number of the commit that removed the former member.
  let seqOfRemoval: UInt64
  private let folder = NodeID.random()
  private let inner = NodeID.random()
  private var last: [UInt8] = []

  init(_ server: TestServer) async throws {
    self.server = server
    var people: [Role: Person] = [:]
    for role in Role.allCases { people[role] = try await Self.person(server) }
    (self.people, extra) = (people, try await Self.person(server))
    guard let owner = people[.owner] else { throw Unexpected(status: 0, text: "no owner") }
    var home = owner.account.home
    let top = home.record(.random())
    try await server.put([top], in: &home, token: owner.token)
    var members = [(extra.account.userID, ZoneACL.Permissions.read)]
    for (role, person) in people {
      if let rights = role.permissions { members.append((person.account.userID, rights)) }
    }
    var zone = try await server.split(top.fields.node, of: &home, members: members, token: owner.token)
    if let former = people[.former] { try await server.remove(former.account.userID, from: &zone, token: owner.token) }
    seqOfRemoval = zone.seq
    let generation = zone.acl.fields.zoneKeyGen
    let nodes = [file, folder].map { node in zone.record(node) { $0.parentKeyGen = generation } }
    let written = zone.record(document, content: content.field()) { $0.parentKeyGen = generation }
    try await server.put([nodes[0], written], contents: [content], in: &zone, token: owner.token)
    before = zone
    try await server.put([nodes[1], zone.record(inner, parent: folder)], in: &zone, token: owner.token)
    (self.zone, self.home) = (zone, home)
  }

  private static func person(_ server: TestServer) async throws -> Person {
    let (account, token) = try await server.newAccount()
    return Person(account: account, token: token)
  }

  /// Everything that the owner can read of the log.
  func log() async throws -> [UInt8] {
    guard let owner = people[.owner] else { return [] }
    return try await server.page(zone.zone, token: owner.token).expect(200).bytes
  }

  // MARK: Requests

  func person(_ role: Role) throws -> Person {
    guard let person = people[role] else { throw Unexpected(status: 0, text: "no such person") }
    return person
  }

  /// The precondition of a change: a node that the member has put, or keys that can be retired.
  mutating func prepare(_ change: Change, by role: Role) async throws {
    switch change {
    case .deleteOwn where role.mayWrite:
      let person = try person(role)
      let draft = put(ownChild(of: person), by: person)
      let commit = try commit(draft, by: person, in: zone)
      _ = try await server.commit(TestZone.body(commit, records: draft.records), token: person.token).expect(200)
      zone.accepted(commit, records: draft.records)
    case .retireOwnKey: people[role] = try await withNewKey(try person(role))
    case .retireOtherKey: extra = try await withNewKey(extra)
    default: break
    }
  }

  private func withNewKey(_ person: Person) async throws -> Person {
    var person = person
    let key = SigningKey()
    let append = AppendLinkRequest(link: WireBytes(try person.account.rotation(to: key).bytes))
    _ = try await server.sendJSON(.POST, Routes.links, append, token: person.token).expect(201)
    person.newKey = key
    return person
  }

  mutating func attempt(_ change: Change, by role: Role, _ variant: Variant) async throws -> Answer {
    let person = try person(role)
    var sender = person
    switch variant {
    case .oldHead: last = try body(change, by: person, in: before)
    case .otherSignature:
      last = try body(change, by: person, in: zone, signer: role == .stranger ? extra : try self.person(.stranger))
    case .otherSession:
      last = try body(change, by: person, in: zone)
      if role.isMember { sender = try self.person(role == .writer ? .sharer : .writer) }
    case .valid: last = try body(change, by: person, in: zone)
    case .repeated: break
    }
    return try await server.send(
      .POST, Routes.commits, token: role == .unauthenticated ? nil : sender.token, body: last)
  }

  /// The parts of a change that do not depend on the head.
  private struct Draft {
    var operations: [ZoneOperation] = []
    var records: [NodeRecord] = []
    var contents: [TestZone.Content] = []
    var list: ZoneACL?
    var grants: [Grant] = []
    /// The first commit of a zone that is split off.
    var genesis: [UInt8] = []
  }

  private func body(
    _ change: Change, by person: Person, in zone: TestZone, signer: Person? = nil
  ) throws -> [UInt8] {
    let draft = try draft(change, by: person, in: zone, signer ?? person)
    let commit = try commit(draft, by: person, in: zone, signer: signer)
    var bundle = Bundle.Writer()
    if let list = draft.list { bundle.append(acl: list.bytes) }
    for grant in draft.grants { bundle.append(grant: grant.bytes) }
    return bundle.bytes + TestZone.body(commit, records: draft.records, contents: draft.contents) + draft.genesis
  }

  private func commit(
    _ draft: Draft, by person: Person, in zone: TestZone, signer: Person? = nil
  ) throws -> ZoneCommit {
    let fields = ZoneCommit.Fields(
      zone: zone.zone, seq: zone.seq + 1, prev: zone.headHash, aclHash: (draft.list ?? zone.acl).hash,
      writer: person.account.userID, writerGen: person.generation, timeMs: 3, operations: draft.operations)
    return try ZoneCommit(fields) { try (signer ?? person).signKey.sign("commit", $0) }
  }

  private func draft(
    _ change: Change, by person: Person, in zone: TestZone, _ signer: Person
  ) throws -> Draft {
    switch change {
    case .create: return put(.random(), by: person)
    case .createBelow: return put(.random(), by: person, parent: folder)
    case .createOwnChild: return put(ownChild(of: person), by: person)
    case .createContent:
      let content = TestZone.Content()
      return put(.random(), by: person, content: content)
    case .modify: return put(file, by: person)
    case .move: return put(file, by: person, parent: folder)
    case .delete: return delete(file)
    case .deleteBranch: return delete(folder, descendants: 1)
    case .deleteOwn: return delete(ownChild(of: person))
    case .modifyRoot: return root(by: person, list: zone.acl)
    case .split: return try split(by: person, in: zone)
    case .rotate: return try rotation(by: person, signer)
    case .retireOwnKey: return Draft(operations: [.retireKey(user: person.account.userID, gen: 2)])
    case .retireOtherKey: return Draft(operations: [.retireKey(user: extra.account.userID, gen: 2)])
    case .end: return delete(zone.zone.root)
    case .addMember, .raiseMember, .raiseSelf, .removeMember, .leave, .lowerOwner, .removeOwner:
      return try list(by: person, signer) { try edit(&$0, change, by: person) }
    }
  }

  private func ownChild(of person: Person) -> NodeID { NodeID.child(of: zone.zone, for: person.account.userID) }

  private func put(
    _ node: NodeID, by person: Person, parent: NodeID? = nil, content: TestZone.Content? = nil
  ) -> Draft {
    let record = zone.record(node, parent: parent, content: content?.field()) { fields in
      (fields.writer, fields.writerGen) = (person.account.userID, person.generation)
      fields.parentKeyGen = parent == folder ? 1 : zone.acl.fields.zoneKeyGen
    }
    return Draft(operations: [.put(.init(record))], records: [record], contents: content.map { [$0] } ?? [])
  }

  private func root(by person: Person, list: ZoneACL) -> Draft {
    let root = zone.record(zone.zone.root) { fields in
      (fields.writer, fields.keyGen, fields.parentKeyGen) = (person.account.userID, list.fields.zoneKeyGen, 0)
      (fields.parent, fields.nameTag, fields.parentWrap) = (.zero, .zero, [])
      fields.commitments = list.fields.commitments
    }
    return Draft(operations: [.put(.init(root))], records: [root])
  }

  private func delete(_ node: NodeID, descendants: UInt64 = 0) -> Draft {
    Draft(operations: [.delete(node: node, record: zone.records[node]?.hash ?? .zero, liveDescendants: descendants)])
  }

  /// Only the owner can sign the genesis that goes with a split.
  private func split(by person: Person, in zone: TestZone) throws -> Draft {
    let generation = zone.acl.fields.zoneKeyGen
    let split = try zone.split(file, TestZone.SplitChange(mount: { $0.parentKeyGen = generation }))
    let mount = person.account.userID == zone.owner ? split.mount : put(.random(), by: person).records[0]
    let operations = [split.commit.fields.operations[0], .put(.init(mount))]
    return Draft(
      operations: operations, records: [mount], genesis: person.account.userID == zone.owner ? split.genesisPart : [])
  }

  // MARK: Lists

  private func list(
    by person: Person, _ signer: Person, _ change: (inout ZoneACL.Fields) throws -> [Grant]
  ) throws -> Draft {
    var fields = zone.acl.fields
    (fields.version, fields.prev) = (fields.version + 1, zone.acl.hash)
    (fields.writer, fields.writerGen) = (person.account.userID, person.generation)
    let grants = try change(&fields)
    let list = try ZoneACL(fields) { try signer.signKey.sign("acl", $0) }
    return Draft(
      operations: [.acl(version: list.fields.version, hash: list.hash)], list: list, grants: grants)
  }

  private func edit(_ fields: inout ZoneACL.Fields, _ change: Change, by person: Person) throws -> [Grant] {
    let (writer, extra, owner) = (person.account.userID, extra.account.userID, fields.owner)
    switch change {
    case .addMember: return [add(try self.person(.stranger).account.userID, [.read], to: &fields)]
    case .raiseMember: set(extra, [.read, .write], in: &fields)
    case .raiseSelf where fields.entry(for: writer) == nil: return [add(writer, [.read], to: &fields)]
    case .raiseSelf: set(writer, [.read, .write, .share], in: &fields)
    case .removeMember: fields.entries.removeAll { $0.user == extra }
    case .leave: fields.entries.removeAll { $0.user == writer }
    case .lowerOwner: set(owner, [.read], in: &fields)
    default: fields.entries.removeAll { $0.user == owner }
    }
    return []
  }

  private func set(_ user: UserID, _ permissions: ZoneACL.Permissions, in fields: inout ZoneACL.Fields) {
    for index in fields.entries.indices where fields.entries[index].user == user {
      fields.entries[index].permissions = permissions
    }
  }

  private func add(_ user: UserID, _ permissions: ZoneACL.Permissions, to fields: inout ZoneACL.Fields) -> Grant {
    let grant = Grant(zone: zone.zone, zoneKeyGen: fields.zoneKeyGen, user: user, wrap: randomBytes(1_168))
    fields.entries.append(
      .init(user: user, permissions: permissions, encGen: 1, wrapKind: .nodeKey, wrapHash: grant.wrapHash))
    fields.entries.sort { $0.user < $1.user }
    return grant
  }

  /// The zone's next key for all members, and the root under it.
  private func rotation(by person: Person, _ signer: Person) throws -> Draft {
    let commitments = try NodeRecord.ZoneCommitments(
      node: #require(KeyCommitment(randomBytes(32))), content: #require(KeyCommitment(randomBytes(32))))
    var draft = try list(by: person, signer) { fields in
      (fields.zoneKeyGen, fields.commitments) = (fields.zoneKeyGen + 1, commitments)
      fields.historyWrap = randomBytes(144)
      var grants: [Grant] = []
      for index in fields.entries.indices {
        let user = fields.entries[index].user
        let grant = Grant(zone: zone.zone, zoneKeyGen: fields.zoneKeyGen, user: user, wrap: randomBytes(1_168))
        fields.entries[index].wrapHash = grant.wrapHash
        grants.append(grant)
      }
      return grants
    }
    let root = root(by: person, list: draft.list ?? zone.acl)
    draft.operations += root.operations
    draft.records = root.records
    return draft
  }
}
