import Testing
import ZDCProtocol

/// Rules for members of a zone other than its owner: lists, retired keys, the zone's root, generations.
@Suite struct MemberRuleTests {
  private let alice: TestUser
  private let bob: TestUser
  private let carol: TestUser
  private let dave: TestUser

  /// Alice is the owner; Bob may share, Carol may write, Dave may read. All except Alice have rotated their sign key
  /// once.
  init() throws {
    alice = try TestUser(seed: 1)
    (bob, carol, dave) = (try Self.rotated(2), try Self.rotated(3), try Self.rotated(4))
  }

  private static func rotated(_ seed: UInt64) throws -> TestUser {
    var user = try TestUser(seed: seed)
    try user.rotateSignKey()
    return user
  }

  private func trunk() throws -> TestZone { try TestZone.born(owner: alice, members: members) }

  /// A zone that is not a trunk, as sharing creates it.
  private func branch() throws -> TestZone { try TestZone.born(owner: alice, members: members, root: .n(77)) }

  private var members: [(TestUser, ZoneACL.Permissions)] {
    [(bob, [.read, .write, .share]), (carol, [.read, .write]), (dave, [.read])]
  }

  private func refusalOf(
    _ operations: [ZoneOperation], by user: TestUser, acl: ZoneACL? = nil, in zone: TestZone
  ) throws -> ZDCSecurityError.Code? {
    var copy = zone
    let commit = try copy.commit(operations, acl: acl, by: user)
    return refusal { try copy.apply(commit, acl: acl) }
  }

  // MARK: Lists

  @Test("S1: a list without an acl operation is refused")
  func strayList() throws {
    let zone = try trunk()
    let current = try #require(zone.head?.acl)
    for list in [current, try zone.signed(zone.next(after: current, by: alice), by: alice)] {
      var copy = zone
      let commit = try copy.commit([copy.put(.n(1))])
      #expect(refusal { try copy.apply(commit, acl: list) } == .nonCanonicalEncoding)
      #expect(copy.head?.acl == current)
    }
  }

  @Test("B13: a list with another hash than the named one is not at hand")
  func otherList() throws {
    let zone = try trunk()
    let current = try #require(zone.head?.acl)
    let named = try zone.signed(zone.next(after: current, by: alice), by: alice)
    var fields = named.fields
    fields.timeMs += 1
    let other = try zone.signed(fields, by: alice)
    let commit = try zone.commit([.acl(version: named.fields.version, hash: named.hash)], acl: named)
    var copy = zone
    #expect(refusal { try copy.apply(commit, acl: other) } == .nonCanonicalEncoding)
    #expect(refusal { try copy.apply(commit, acl: named) } == nil)
  }

  @Test("B20: a list is signed under the generation of its commit")
  func listOfARetiredKey() throws {
    var zone = try trunk()
    try zone.apply([.retireKey(user: bob.id, gen: 2)], by: bob)
    let current = try #require(zone.head?.acl)
    var fields = zone.next(after: current, by: bob)
    fields.writerGen = 1
    let old = try TestUser(sharing: bob, generation: 1)
    let list = try zone.signed(fields, by: old)
    let acl = ZoneOperation.acl(version: fields.version, hash: list.hash)
    #expect(try refusalOf([acl], by: bob, acl: list, in: zone) == .aclSignatureInvalid)
  }

  // MARK: Retired keys

  @Test("P1: a user retires their own keys, the owner those of each member, and no member the owner's")
  func membersRetireOnlyTheirOwnKeys() throws {
    let zone = try trunk()
    func refusalOf(_ user: TestUser, by writer: TestUser) throws -> ZDCSecurityError.Code? {
      try self.refusalOf([.retireKey(user: user.id, gen: 2)], by: writer, in: zone)
    }
    for user in [bob, carol, dave] {
      #expect(try refusalOf(user, by: user) == nil)
      #expect(try refusalOf(user, by: alice) == nil)
    }
    for user in [alice, carol, dave] { #expect(try refusalOf(user, by: bob) == .writerNotAuthorized) }
  }

  @Test("P1: a generation that the user's chain does not have cannot be retired")
  func futureGenerations() throws {
    let zone = try trunk()
    for gen in [3, .max] as [UInt32] {
      #expect(try refusalOf([.retireKey(user: bob.id, gen: gen)], by: bob, in: zone) == .writerUnknown)
      #expect(try refusalOf([.retireKey(user: bob.id, gen: gen)], by: alice, in: zone) == .writerUnknown)
    }
    #expect(try refusalOf([.retireKey(user: alice.id, gen: .max)], by: alice, in: zone) == .writerUnknown)
  }

  @Test("P2: a retirement changes something, and only members write one")
  func emptyRetirements() throws {
    var zone = try trunk()
    #expect(try refusalOf([.retireKey(user: dave.id, gen: 1)], by: dave, in: zone) == .writerNotAuthorized)
    let twice: [ZoneOperation] = [.retireKey(user: dave.id, gen: 2), .retireKey(user: dave.id, gen: 2)]
    #expect(try refusalOf(twice, by: dave, in: zone) == .writerNotAuthorized)
    try zone.apply([.retireKey(user: dave.id, gen: 2)], by: dave)
    #expect(try refusalOf([.retireKey(user: dave.id, gen: 2)], by: dave, in: zone) == .writerNotAuthorized)
    let stranger = try Self.rotated(9)
    zone.users.append(stranger)
    #expect(try refusalOf([.retireKey(user: stranger.id, gen: 2)], by: stranger, in: zone) == .writerNotAuthorized)
  }

  /// A device that reads the log may not know the chain of a user whom no list names.
  @Test func theOwnerRetiresNoKeyOfAUserWhoIsNoMember() throws {
    var zone = try trunk()
    let stranger = try Self.rotated(9)
    zone.users.append(stranger)
    #expect(try refusalOf([.retireKey(user: stranger.id, gen: 2)], by: alice, in: zone) == .writerNotAuthorized)
    let current = try #require(zone.head?.acl)
    var fields = zone.next(after: current, by: alice)
    let daveID = dave.id
    fields.entries.removeAll { $0.user == daveID }
    let list = try zone.signed(fields, by: alice)
    let removal = ZoneOperation.acl(version: fields.version, hash: list.hash)
    let retirement = ZoneOperation.retireKey(user: dave.id, gen: 2)
    // The list before the commit decides.
    #expect(try refusalOf([removal, retirement], by: alice, acl: list, in: zone) == nil)
    try zone.apply(zone.commit([removal], acl: list, by: alice), acl: list)
    #expect(try refusalOf([retirement], by: alice, in: zone) == .writerNotAuthorized)
  }

  // MARK: The root

  private func rootPut(_ zone: TestZone, keyGen: UInt32 = 1) -> ZoneOperation {
    zone.put(zone.zone.root, below: .zero, keyGen: keyGen, parentKeyGen: 0, version: 2)
  }

  /// Returns the next list with the zone's next key.
  private func rotation(
    of zone: TestZone, by user: TestUser, _ change: (inout ZoneACL.Fields) -> Void = { _ in }
  ) throws -> ZoneACL {
    var fields = zone.next(after: try #require(zone.head?.acl), by: user)
    fields.zoneKeyGen += 1
    fields.commitments = .init(node: .init(3, 3, 3, 3), content: .init(4, 4, 4, 4))
    change(&fields)
    return try zone.signed(fields, by: user)
  }

  @Test("P3: a trunk's root is put by its owner, or in a rotation by a member who may share")
  func rootOfATrunk() throws {
    let zone = try trunk()
    #expect(try refusalOf([rootPut(zone)], by: alice, in: zone) == nil)
    for user in [bob, carol] {
      #expect(try refusalOf([rootPut(zone)], by: user, in: zone) == .writerNotAuthorized)
    }
    let list = try rotation(of: zone, by: bob)
    let acl = ZoneOperation.acl(version: list.fields.version, hash: list.hash)
    #expect(try refusalOf([acl, rootPut(zone, keyGen: 2)], by: bob, acl: list, in: zone) == nil)
    let same = try zone.signed(zone.next(after: try #require(zone.head?.acl), by: bob), by: bob)
    let unchanged = ZoneOperation.acl(version: same.fields.version, hash: same.hash)
    #expect(try refusalOf([unchanged, rootPut(zone)], by: bob, acl: same, in: zone) == .writerNotAuthorized)
  }

  @Test("K-0: a member who may write puts the root of a shared zone, and does not raise its generation")
  func rootOfABranch() throws {
    let zone = try branch()
    for user in [alice, bob, carol] {
      #expect(try refusalOf([rootPut(zone)], by: user, in: zone) == nil)
      #expect(try refusalOf([rootPut(zone, keyGen: 2)], by: user, in: zone) == .keyCommitmentMismatch)
    }
    #expect(try refusalOf([rootPut(zone)], by: dave, in: zone) == .writerNotAuthorized)
  }

  // MARK: The owner's entry

  @Test("P4: only the owner changes the owner's wrap, but in a rotation")
  func wrapOfTheOwner() throws {
    let zone = try trunk()
    let owner = alice.id
    func refusalOfList(
      by user: TestUser, rotating: Bool, _ change: (inout ZoneACL.Entry) -> Void
    ) throws
      -> ZDCSecurityError.Code?
    {
      let previous = try #require(zone.head?.acl)
      var fields = zone.next(after: previous, by: user)
      if rotating { fields.zoneKeyGen += 1 }
      for index in fields.entries.indices where fields.entries[index].user == owner { change(&fields.entries[index]) }
      let list = try zone.signed(fields, by: user)
      let directory = try TestDirectory(zone.users)
      return refusal { try ACLReplay.verify(list, after: previous, identities: directory) }
    }
    #expect(try refusalOfList(by: bob, rotating: false) { $0.wrapHash = .init(1, 1, 1, 1) } == .aclOwnerImmutable)
    #expect(try refusalOfList(by: bob, rotating: false) { $0.encGen += 1 } == .aclOwnerImmutable)
    #expect(try refusalOfList(by: bob, rotating: true) { $0.wrapHash = .init(1, 1, 1, 1) } == nil)
    #expect(try refusalOfList(by: bob, rotating: true) { $0.encGen += 1 } == nil)
    #expect(try refusalOfList(by: bob, rotating: true) { $0.encGen = 0 } == .aclOwnerImmutable)
    #expect(try refusalOfList(by: bob, rotating: true) { $0.permissions = [.read] } == .aclOwnerImmutable)
    #expect(try refusalOfList(by: alice, rotating: false) { $0.wrapHash = .init(1, 1, 1, 1) } == nil)
    #expect(try refusalOfList(by: alice, rotating: false) { $0.encGen += 1 } == nil)
  }

  // MARK: Generations

  @Test("K-4: a node's generation rises exactly if the node is stale")
  func generationsOfNodes() throws {
    var zone = try trunk()
    try zone.apply([zone.put(.n(1)), zone.put(.n(2))])
    for user in [alice, carol] {
      #expect(try refusalOf([zone.put(.n(1), keyGen: 2)], by: user, in: zone) == .staleKeyGeneration)
      #expect(try refusalOf([zone.put(.n(1), keyGen: 1)], by: user, in: zone) == nil)
    }
    let list = try rotation(of: zone, by: alice)
    let acl = ZoneOperation.acl(version: list.fields.version, hash: list.hash)
    try zone.apply(zone.commit([acl, rootPut(zone, keyGen: 2)], acl: list), acl: list)
    #expect(try refusalOf([zone.put(.n(1), keyGen: 1)], by: carol, in: zone) == .staleKeyGeneration)
    try zone.apply([zone.put(.n(1), keyGen: 2)], by: carol)
    #expect(try refusalOf([zone.put(.n(1), keyGen: 3)], by: carol, in: zone) == .staleKeyGeneration)
  }

  @Test("P4: a new node's generation is at most the zone's")
  func generationsOfNewNodes() throws {
    var zone = try trunk()
    for gen in [0, 2, .max] as [UInt32] {
      #expect(try refusalOf([zone.put(.n(1), keyGen: gen)], by: carol, in: zone) == .staleKeyGeneration)
    }
    let list = try rotation(of: zone, by: alice)
    let acl = ZoneOperation.acl(version: list.fields.version, hash: list.hash)
    try zone.apply(zone.commit([acl, rootPut(zone, keyGen: 2)], acl: list), acl: list)
    #expect(try refusalOf([zone.put(.n(1), keyGen: 2)], by: carol, in: zone) == nil)
    #expect(try refusalOf([zone.put(.n(1), keyGen: 3)], by: carol, in: zone) == .staleKeyGeneration)
  }

  // MARK: Chains

  @Test("B19: a raised generation has another key than the one before")
  func rotatedKeys() throws {
    let user = try TestUser()
    var fields = user.nextFields(.rotateKeys)
    fields.signGen += 1
    #expect(refusal { _ = try IdentityReplay.verify(user.chain + [try user.sign(fields)]) } == .identityChainInvalid)
    fields = user.nextFields(.rotateKeys)
    fields.encGen += 1
    #expect(refusal { _ = try IdentityReplay.verify(user.chain + [try user.sign(fields)]) } == .identityChainInvalid)
  }

  @Test("B19: a key that was replaced may return as a later generation")
  func anOlderKeyReturns() throws {
    var user = try TestUser()
    let first = user.nextFields(.rotateKeys).encPub
    let other = first.map { $0 ^ 1 }
    for key in [other, first] {
      var fields = user.nextFields(.rotateKeys)
      (fields.encGen, fields.encPub) = (fields.encGen + 1, key)
      try user.append(fields)
    }
    #expect(try IdentityReplay.verify(user.chain).encKeys == [1: first, 2: other, 3: first])
  }

  @Test("B18: a deleted node may be put again, as a new one")
  func nodePutAgain() throws {
    var zone = try trunk()
    try zone.apply([zone.put(.n(1))])
    let record = try #require(zone.state.leaf(.n(1))?.record)
    try zone.apply([.delete(node: .n(1), record: record, liveDescendants: 0)])
    try zone.apply([zone.put(.n(1))])
    #expect(zone.state.leaf(.n(1))?.putSeq == 4)
  }
}
