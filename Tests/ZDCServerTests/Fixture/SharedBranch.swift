import ZDCProtocol

/// A branch of the owner's home, shared with a member of each kind, and one that was removed.
struct SharedBranch {
  enum Role: CaseIterable, Sendable {
    case owner, sharer, writer, creator, reader, former, stranger

    var permissions: ZoneACL.Permissions? {
      switch self {
      case .owner, .stranger: nil
      case .sharer: [.read, .write, .share]
      case .writer: [.read, .write]
      case .creator: [.read, .write, .writeOnce]
      case .reader, .former: [.read]
      }
    }
  }

  enum Change: CaseIterable, Sendable {
    case create, modify, move, delete, modifyRoot
    case addMember, removeMember, leave, lowerOwner
    case end

    var isOfList: Bool { [.addMember, .removeMember, .leave, .lowerOwner].contains(self) }
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
  }

  let server: TestServer
  let people: [Role: Person]
  /// Is removed from the list by ``Change/removeMember``.
  let extra: Person
  var zone: TestZone
  /// Without the newest commit.
  private let before: TestZone
  private let file = NodeID.random()
  private let folder = NodeID.random()
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
    let generation = zone.acl.fields.zoneKeyGen
    let nodes = [file, folder].map { node in zone.record(node) { $0.parentKeyGen = generation } }
    try await server.put([nodes[0]], in: &zone, token: owner.token)
    before = zone
    try await server.put([nodes[1]], in: &zone, token: owner.token)
    self.zone = zone
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

  mutating func attempt(_ change: Change, by role: Role, _ variant: Variant) async throws -> Answer {
    guard let person = people[role], let stranger = people[.stranger] else { return try await nothing() }
    var sender = person
    switch variant {
    case .oldHead: last = try body(change, by: person.account, in: before)
    case .otherSignature:
      last = try body(
        change, by: person.account, in: zone, signer: role == .stranger ? extra.account : stranger.account)
    case .otherSession:
      last = try body(change, by: person.account, in: zone)
      if role != .former, role != .stranger { sender = people[role == .writer ? .sharer : .writer] ?? person }
    case .valid: last = try body(change, by: person.account, in: zone)
    case .repeated: break
    }
    return try await server.commit(last, token: sender.token)
  }

  private func nothing() async throws -> Answer { throw Unexpected(status: 0, text: "no such person") }

  private func body(
    _ change: Change, by writer: TestAccount, in zone: TestZone, signer: TestAccount? = nil
  ) throws -> [UInt8] {
    let signer = signer ?? writer
    if let (list, grants) = try list(change, by: writer, signer) {
      let operation = ZoneOperation.acl(version: list.fields.version, hash: list.hash)
      let commit = try commit([operation], by: writer, signer, list: list, in: zone)
      var bundle = Bundle.Writer()
      bundle.append(acl: list.bytes)
      for grant in grants { bundle.append(grant: grant.bytes) }
      bundle.append(commit: commit.bytes)
      return bundle.bytes
    }
    let (operations, records) = operations(change, by: writer)
    return TestZone.body(
      try commit(operations, by: writer, signer, list: zone.acl, in: zone), records: records)
  }

  private func commit(
    _ operations: [ZoneOperation], by writer: TestAccount, _ signer: TestAccount, list: ZoneACL, in zone: TestZone
  ) throws -> ZoneCommit {
    let fields = ZoneCommit.Fields(
      zone: zone.zone, seq: zone.seq + 1, prev: zone.headHash, aclHash: list.hash, writer: writer.userID, writerGen: 1,
      timeMs: 3, operations: operations)
    return try ZoneCommit(fields) { try signer.signKey.sign("commit", $0) }
  }

  private func operations(_ change: Change, by writer: TestAccount) -> ([ZoneOperation], [NodeRecord]) {
    let generation = zone.acl.fields.zoneKeyGen
    func put(_ node: NodeID, parent: NodeID? = nil) -> ([ZoneOperation], [NodeRecord]) {
      let record = zone.record(node, parent: parent) { fields in
        fields.writer = writer.userID
        fields.parentKeyGen = parent == folder ? 1 : generation
      }
      return ([.put(.init(record))], [record])
    }
    switch change {
    case .create: return put(.random())
    case .modify: return put(file)
    case .move: return put(file, parent: folder)
    case .modifyRoot:
      let root = zone.record(zone.zone.root) { fields in
        (fields.writer, fields.keyGen, fields.parentKeyGen) = (writer.userID, generation, 0)
        (fields.parent, fields.nameTag, fields.parentWrap) = (.zero, .zero, [])
        fields.commitments = zone.acl.fields.commitments
      }
      return ([.put(.init(root))], [root])
    case .delete: return ([delete(file)], [])
    default: return ([delete(zone.zone.root)], [])
    }
  }

  private func delete(_ node: NodeID) -> ZoneOperation {
    .delete(node: node, record: zone.records[node]?.hash ?? .zero, liveDescendants: 0)
  }

  private func list(
    _ change: Change, by writer: TestAccount, _ signer: TestAccount
  ) throws -> (ZoneACL, [Grant])? {
    var fields = zone.acl.fields
    (fields.version, fields.prev) = (fields.version + 1, zone.acl.hash)
    (fields.writer, fields.writerGen) = (writer.userID, 1)
    var grants: [Grant] = []
    switch change {
    case .addMember:
      guard let stranger = people[.stranger] else { return nil }
      let grant = Grant(
        zone: zone.zone, zoneKeyGen: fields.zoneKeyGen, user: stranger.account.userID, wrap: randomBytes(1_168))
      grants = [grant]
      fields.entries.append(
        .init(user: grant.user, permissions: [.read], encGen: 1, wrapKind: .nodeKey, wrapHash: grant.wrapHash))
      fields.entries.sort { $0.user < $1.user }
    case .removeMember: fields.entries.removeAll { $0.user == extra.account.userID }
    case .leave: fields.entries.removeAll { $0.user == writer.userID }
    case .lowerOwner:
      for index in fields.entries.indices where fields.entries[index].user == fields.owner {
        fields.entries[index].permissions = [.read]
      }
    default: return nil
    }
    return (try ZoneACL(fields) { try signer.signKey.sign("acl", $0) }, grants)
  }
}
