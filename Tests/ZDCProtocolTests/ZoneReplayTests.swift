import Testing
import ZDCProtocol

/// The rules of a zone's log: order, signatures, rights (PROTOCOL, "Zone log").
@Suite struct ZoneReplayTests {
  private let alice: TestUser
  private let bob: TestUser
  private let dave: TestUser

  init() throws {
    alice = try TestUser(seed: 1)
    bob = try TestUser(seed: 2)
    dave = try TestUser(seed: 4)
  }

  private func shared() throws -> TestZone {
    try TestZone.born(owner: alice, members: [(bob, [.read, .write]), (dave, [.read])])
  }

  private func refusalOf(
    _ commit: ZoneCommit, acl: ZoneACL? = nil, in zone: TestZone
  ) -> ZDCSecurityError.Code? {
    var zone = zone
    return refusal { try zone.apply(commit, acl: acl) }
  }

  @Test func aTrunkIsBornAndGrows() throws {
    var zone = try TestZone.born(owner: alice)
    #expect(zone.head?.seq == 0)
    #expect(zone.state.leaves.count == 1)
    let commit = try zone.commit([zone.put(.n(1)), zone.put(.n(2), below: .n(1), parentKeyGen: 1)])
    try zone.apply(commit)
    #expect(zone.head?.seq == 1)
    #expect(zone.head?.hash == commit.hash)
    #expect(zone.state.leaf(.n(2))?.parent == .n(1))
    #expect(zone.state.leaf(.n(2))?.putSeq == 1)
    #expect(zone.state.descendantCount(of: zone.zone.root) == 2)
  }

  // MARK: Genesis

  @Test func aGenesisNeedsItsListAndItsRoot() throws {
    let zone = TestZone(owner: alice)
    let acl = try zone.firstACL()
    let named = ZoneOperation.acl(version: 1, hash: acl.hash)
    #expect(refusalOf(try zone.genesis(acl: acl), acl: acl, in: zone) == nil)
    #expect(refusalOf(try zone.genesis(acl: acl), acl: nil, in: zone) == .nonCanonicalEncoding)
    #expect(refusalOf(try zone.genesis(acl: acl, operations: [named]), acl: acl, in: zone) == .keyCommitmentMismatch)
    let unnamed = try zone.genesis(acl: acl, operations: [zone.rootPut])
    #expect(refusalOf(unnamed, acl: acl, in: zone) == .nonCanonicalEncoding)
    #expect(refusalOf(unnamed, acl: nil, in: zone) == .aclRollback)
    let twice = try zone.genesis(acl: acl, operations: [named, named, zone.rootPut])
    #expect(refusalOf(twice, acl: acl, in: zone) == .nonCanonicalEncoding)
  }

  @Test func aGenesisBelongsToItsZoneAndBeginsAtZero() throws {
    let zone = TestZone(owner: alice)
    let acl = try zone.firstACL()
    let good = try zone.genesis(acl: acl).fields
    var late = good
    late.seq = 1
    #expect(refusalOf(try zone.signed(late, by: alice), acl: acl, in: zone) == .commitChainBroken)
    var unlinked = good
    unlinked.prev = .zero
    #expect(refusalOf(try zone.signed(unlinked, by: alice), acl: acl, in: zone) == .commitChainBroken)
    var moved = good
    moved.zone = ZoneID(tree: good.zone.tree, root: .n(1))
    moved.prev = ZoneCommit.genesisPrev(zone: moved.zone)
    #expect(refusalOf(try zone.signed(moved, by: alice), acl: acl, in: zone) == .aclSignatureInvalid)
  }

  @Test func onlyTheOwnerCreatesATrunk() throws {
    let zone = TestZone(owner: alice, members: [bob])
    let acl = try zone.firstACL()
    let fields = zone.nextFields([.acl(version: 1, hash: acl.hash), zone.rootPut], acl: acl, by: bob)
    #expect(refusalOf(try zone.signed(fields, by: bob), acl: acl, in: zone) == .aclSignatureInvalid)
  }

  @Test func aRootIsPutWithoutParentAndWithTheListsGeneration() throws {
    let zone = TestZone(owner: alice)
    let acl = try zone.firstACL()
    let named = ZoneOperation.acl(version: 1, hash: acl.hash)
    func root(parent: NodeID = .zero, keyGen: UInt32 = 1, parentKeyGen: UInt32 = 0) -> ZoneOperation {
      .put(
        .init(
          node: zone.zone.root, parent: parent, record: .init(9, 9, 9, 9), keyGen: keyGen, parentKeyGen: parentKeyGen))
    }
    let rows: [(ZoneOperation, ZDCSecurityError.Code)] = [
      (root(parent: .n(1)), .treeCycle), (root(parentKeyGen: 1), .treeCycle), (root(keyGen: 2), .keyCommitmentMismatch),
      (root(keyGen: 0), .staleKeyGeneration),
    ]
    for (operation, expected) in rows {
      #expect(refusalOf(try zone.genesis(acl: acl, operations: [named, operation]), acl: acl, in: zone) == expected)
    }
  }

  // MARK: Order

  @Test func aMissingRepeatedOrForeignCommitBreaksTheChain() throws {
    var zone = try TestZone.born(owner: alice)
    let genesis = try TestZone(owner: alice).genesis(acl: zone.firstACL())
    let first = try zone.commit([zone.put(.n(1))])
    var ahead = zone
    try ahead.apply(first)
    let second = try ahead.commit([ahead.put(.n(2))])
    #expect(refusalOf(second, in: zone) == .commitChainBroken)
    try zone.apply(first)
    #expect(refusalOf(first, in: zone) == .commitChainBroken)
    #expect(refusalOf(genesis, acl: try zone.firstACL(), in: zone) == .commitChainBroken)
    #expect(refusalOf(second, in: zone) == nil)
    let other = try TestZone.born(owner: bob)
    #expect(refusalOf(try other.commit([other.put(.n(1))]), in: zone) == .recordBindingMismatch)
  }

  @Test func aForkAtTheSameHeightDoesNotContinueThisLog() throws {
    var here = try TestZone.born(owner: alice)
    var there = here
    try here.apply([here.put(.n(1))])
    try there.apply([there.put(.n(2))])
    #expect(refusalOf(try there.commit([there.put(.n(3))]), in: here) == .commitChainBroken)
  }

  // MARK: Signatures

  @Test func aCommitOfTheServersMakingIsRefused() throws {
    let zone = try shared()
    let fields = zone.nextFields([zone.put(.n(1))])
    let mallory = try TestUser(seed: 9)
    #expect(refusalOf(try zone.signed(fields, by: mallory), in: zone) == .signatureInvalid)
    var foreign = fields
    foreign.writer = mallory.id
    #expect(refusalOf(try zone.signed(foreign, by: mallory), in: zone) == .writerUnknown)
    var future = fields
    future.writerGen = 9
    #expect(refusalOf(try zone.signed(future, by: alice), in: zone) == .writerUnknown)
    let unsigned = ZoneCommit(fields, sign: { _ in [UInt8](repeating: 0, count: 64) })
    #expect(refusalOf(unsigned, in: zone) == .signatureInvalid)
  }

  @Test func anyFlippedBitOfACommitIsRefused() throws {
    let zone = try shared()
    let bytes = try zone.commit([zone.put(.n(1))]).bytes
    for offset in bytes.indices {
      var changed = bytes
      changed[offset] ^= 1
      #expect(
        refusal {
          var copy = zone
          try copy.apply(try ZoneCommit(changed))
        } != nil, "offset \(offset)")
    }
  }

  @Test func aRetiredKeySignsNothingMore() throws {
    var rotated = bob
    try rotated.rotateSignKey()
    var zone = try shared()
    zone.users = [alice, rotated, dave]
    // Both generations are in the chain; the old one stays valid until it is retired in this zone.
    #expect(refusalOf(try zone.commit([zone.put(.n(1))], by: bob), in: zone) == nil)
    try zone.apply([.retireKey(user: bob.id, gen: 2)], by: rotated)
    #expect(zone.head?.retiredBelow == [bob.id: 2])
    #expect(refusalOf(try zone.commit([zone.put(.n(1))], by: bob), in: zone) == .writerNotAuthorized)
    #expect(refusalOf(try zone.commit([zone.put(.n(1))], by: rotated), in: zone) == nil)
  }

  // MARK: Permissions

  @Test func aReaderWritesNothing() throws {
    var zone = try shared()
    try zone.apply([zone.put(.n(1))])
    let record = try #require(zone.state.leaf(.n(1))?.record)
    let rows: [(ZoneOperation, ZDCSecurityError.Code)] = [
      (zone.put(.n(2)), .writerNotAuthorized),
      (.delete(node: .n(1), record: record, liveDescendants: 0), .writerNotAuthorized),
      (.split(node: .n(1), genesis: .zero, count: 0), .splitNeedsOwner),
      (.retireKey(user: bob.id, gen: 2), .writerNotAuthorized),
    ]
    for (operation, expected) in rows {
      #expect(refusalOf(try zone.commit([operation], by: dave), in: zone) == expected)
    }
  }

  @Test func aWriterWritesAndNothingElse() throws {
    let zone = try shared()
    #expect(refusalOf(try zone.commit([zone.put(.n(1))], by: bob), in: zone) == nil)
    #expect(refusalOf(try zone.commit([.retireKey(user: dave.id, gen: 2)], by: bob), in: zone) == .writerNotAuthorized)
  }

  @Test func aRemovedMembersLaterCommitsAreInvalid() throws {
    var zone = try shared()
    let head = try #require(zone.head)
    let bobsID = bob.id
    var fields = zone.next(after: head.acl, by: alice)
    fields.entries.removeAll { $0.user == bobsID }
    let acl = try zone.signed(fields, by: alice)
    try zone.apply(zone.commit([.acl(version: fields.version, hash: acl.hash)], acl: acl), acl: acl)
    #expect(refusalOf(try zone.commit([zone.put(.n(1))], by: bob), in: zone) == .writerNotAuthorized)
  }

  @Test func rightsAreThoseBeforeTheCommit() throws {
    let zone = try shared()
    let head = try #require(zone.head)
    var fields = zone.next(after: head.acl, by: bob)
    let bobsID = bob.id
    fields.entries.removeAll { $0.user == bobsID }
    let acl = try zone.signed(fields, by: bob)
    let leave = ZoneOperation.acl(version: fields.version, hash: acl.hash)
    // A member's last changes are in the commit with which they leave.
    #expect(refusalOf(try zone.commit([zone.put(.n(1)), leave], acl: acl, by: bob), acl: acl, in: zone) == nil)
  }

  @Test func aCommitNamesTheListInForce() throws {
    let zone = try shared()
    var fields = zone.nextFields([zone.put(.n(1))])
    fields.aclHash = try zone.firstACL().hash
    #expect(refusalOf(try zone.signed(fields, by: alice), in: zone) == .aclRollback)
  }

  @Test func aListIsTheOneThatTheCommitNames() throws {
    let zone = try shared()
    let head = try #require(zone.head)
    let acl = try zone.signed(zone.next(after: head.acl, by: alice), by: alice)
    let good = ZoneOperation.acl(version: 3, hash: acl.hash)
    #expect(refusalOf(try zone.commit([good], acl: acl), acl: acl, in: zone) == nil)
    let later = ZoneOperation.acl(version: 4, hash: acl.hash)
    #expect(refusalOf(try zone.commit([later], acl: acl), acl: acl, in: zone) == .aclSignatureInvalid)
    #expect(refusalOf(try zone.commit([good], acl: acl, by: bob), acl: acl, in: zone) == .aclSignatureInvalid)
    let replayed = try zone.firstACL()
    let old = ZoneOperation.acl(version: 1, hash: replayed.hash)
    #expect(refusalOf(try zone.commit([old], acl: replayed), acl: replayed, in: zone) == .aclRollback)
  }

  @Test("operations that were given up are unknown kinds", arguments: [UInt8(0), 5, 6, 7, 9, 11, 255])
  func unknownOperationsAreNotSkipped(kind: UInt8) throws {
    let zone = try shared()
    var bytes = try zone.commit([.split(node: .n(1), genesis: .zero, count: 0)]).bytes
    // Followed by the rest of the operation, of 56 bytes, and the signature.
    let offset = bytes.count - 64 - 57
    #expect(bytes[offset] == 4)
    bytes[offset] = kind
    #expect(refusal { _ = try ZoneCommit(bytes) } == .nonCanonicalEncoding)
  }

  @Test func theErrorNamesTheZone() throws {
    var zone = try shared()
    let commit = try zone.commit([zone.put(.n(1), below: .n(7), parentKeyGen: 1)])
    let expected = ZDCSecurityError(.objectMissing, zone: zone.zone, node: .n(7))
    #expect(throws: expected) { try zone.apply(commit) }
  }
}
