import ZDCProtocol

// Access lists with a second member, and commits that carry them.
extension TestZone {
  /// A list after `acl` (or after `previous`) with more entries.
  func list(
    adding entries: [ZoneACL.Entry], after previous: ZoneACL? = nil, signer: SigningKey? = nil
  ) throws -> ZoneACL {
    let previous = previous ?? acl
    var fields = previous.fields
    fields.version += 1
    fields.prev = previous.hash
    let added = Set(entries.map(\.user))
    fields.entries = (fields.entries.filter { !added.contains($0.user) } + entries).sorted { $0.user < $1.user }
    return try ZoneACL(fields) { try (signer ?? signKey).sign("acl", $0) }
  }

  /// A list after `previous` (or after `acl`) without this user.
  func list(removing user: UserID, after previous: ZoneACL? = nil) throws -> ZoneACL {
    let previous = previous ?? acl
    var fields = previous.fields
    (fields.version, fields.prev) = (fields.version + 1, previous.hash)
    fields.entries.removeAll { $0.user == user }
    return try ZoneACL(fields) { try signKey.sign("acl", $0) }
  }

  /// A member, and the grant that gives them the zone's key.
  func member(_ user: UserID, _ permissions: ZoneACL.Permissions = [.read], encGen: UInt32 = 1) -> Member {
    let grant = Grant(zone: zone, zoneKeyGen: 1, user: user, wrap: randomBytes(1_168))
    let entry = ZoneACL.Entry(
      user: user, permissions: permissions, encGen: encGen, wrapKind: .nodeKey, wrapHash: grant.wrapHash)
    return Member(entry: entry, grant: grant)
  }

  struct Member {
    var entry: ZoneACL.Entry
    var grant: Grant
  }

  /// A commit that puts the list in force, and its body.
  func change(to list: ZoneACL, grants: [Grant] = []) throws -> (commit: ZoneCommit, body: [UInt8]) {
    let commit = try commit([.acl(version: list.fields.version, hash: list.hash)]) { $0.aclHash = list.hash }
    var writer = Bundle.Writer()
    writer.append(acl: list.bytes)
    for grant in grants { writer.append(grant: grant.bytes) }
    writer.append(commit: commit.bytes)
    return (commit, writer.bytes)
  }

  /// The zone's next key: a list with grants for the owner and these members, and the root's record under it. `others`
  /// stay as they are.
  func rotation(
    keeping others: [ZoneACL.Entry] = [], wrappingFor members: [ZoneACL.Entry] = []
  ) throws -> (list: ZoneACL, root: NodeRecord, commit: ZoneCommit, body: [UInt8]) {
    var fields = acl.fields
    (fields.version, fields.prev, fields.zoneKeyGen) = (fields.version + 1, acl.hash, fields.zoneKeyGen + 1)
    fields.commitments = NodeRecord.ZoneCommitments(
      node: KeyCommitment(randomBytes(32))!, content: KeyCommitment(randomBytes(32))!)
    fields.historyWrap = randomBytes(104)
    let grant = Grant(zone: zone, zoneKeyGen: fields.zoneKeyGen, user: owner, wrap: randomBytes(1_168))
    let own = ZoneACL.Entry(
      user: owner, permissions: [.read, .write, .share], encGen: 1, wrapKind: .nodeKey, wrapHash: grant.wrapHash)
    var grants = [grant]
    let wrapped = members.map { member in
      var entry = member
      grants.append(Grant(zone: zone, zoneKeyGen: fields.zoneKeyGen, user: member.user, wrap: randomBytes(1_168)))
      entry.wrapHash = grants.last?.wrapHash ?? entry.wrapHash
      return entry
    }
    fields.entries = ([own] + others + wrapped).sorted { $0.user < $1.user }
    let list = try ZoneACL(fields) { try signKey.sign("acl", $0) }
    let root = record(zone.root) {
      ($0.keyGen, $0.parentKeyGen, $0.parentWrap) = (fields.zoneKeyGen, 0, [])
      $0.commitments = fields.commitments
    }
    let commit = try commit([.acl(version: fields.version, hash: list.hash), .put(.init(root))]) {
      $0.aclHash = list.hash
    }
    var writer = Bundle.Writer()
    writer.append(acl: list.bytes)
    for grant in grants { writer.append(grant: grant.bytes) }
    return (list, root, commit, writer.bytes + Self.body(commit, records: [root]))
  }

  /// The body of a commit request with a list that its commit does not name.
  static func body(_ commit: ZoneCommit, records: [NodeRecord], smuggling list: ZoneACL) -> [UInt8] {
    var writer = Bundle.Writer()
    writer.append(acl: list.bytes)
    return writer.bytes + body(commit, records: records)
  }

  /// A commit of another member.
  func commit(
    by member: TestAccount, _ operations: [ZoneOperation], list: ZoneACL
  ) throws -> ZoneCommit {
    let fields = ZoneCommit.Fields(
      zone: zone, seq: seq + 1, prev: headHash, aclHash: list.hash, writer: member.userID, writerGen: 1, timeMs: 3,
      operations: operations)
    return try ZoneCommit(fields) { try member.signKey.sign("commit", $0) }
  }
}

extension ServerClient {
  /// The owner makes this user a member; returns the list that is now in force.
  @discardableResult
  func share(_ zone: inout TestZone, with member: TestZone.Member, token: [UInt8]) async throws -> ZoneACL {
    let list = try zone.list(adding: [member.entry])
    let (commit, body) = try zone.change(to: list, grants: [member.grant])
    _ = try await self.commit(body, token: token).expect(200)
    zone.accepted(commit)
    return list
  }

  /// The owner adds this member to those of the zone.
  func add(_ member: TestZone.Member, to zone: inout TestZone, token: [UInt8]) async throws {
    zone.acl = try await share(&zone, with: member, token: token)
  }

  /// The owner removes this user, without a new key.
  func remove(_ user: UserID, from zone: inout TestZone, token: [UInt8]) async throws {
    let list = try zone.list(removing: user)
    let (commit, body) = try zone.change(to: list)
    _ = try await self.commit(body, token: token).expect(200)
    zone.accepted(commit)
    zone.acl = list
  }

  func accept(_ zone: ZoneID, token: [UInt8]) async throws -> Answer {
    try await send(.PUT, Routes.path(Routes.membership, zone.tree.text, zone.root.text), token: token)
  }

  func forget(_ zone: ZoneID, token: [UInt8]) async throws -> Answer {
    try await send(.DELETE, Routes.path(Routes.membership, zone.tree.text, zone.root.text), token: token)
  }

  /// The owner raises the zone's key.
  func rotate(_ zone: inout TestZone, token: [UInt8]) async throws {
    let (list, root, commit, body) = try zone.rotation()
    _ = try await self.commit(body, token: token).expect(200)
    zone.accepted(commit, records: [root])
    zone.acl = list
  }

  func zones(_ query: String = "", token: [UInt8]) async throws -> ZoneList {
    try await send(.GET, Routes.zones + query, token: token).json()
  }
}
