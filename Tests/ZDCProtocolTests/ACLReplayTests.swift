import Testing
import ZDCProtocol

/// Rules for who may change an access list, and how (PROTOCOL, "Access list").
@Suite struct ACLReplayTests {
  private let alice: TestUser
  private let bob: TestUser
  private let carol: TestUser
  private let dave: TestUser
  private let zone: TestZone

  /// Alice is the owner; Bob may share, Carol may write, Dave may read.
  init() throws {
    alice = try TestUser(seed: 1)
    bob = try TestUser(seed: 2)
    carol = try TestUser(seed: 3)
    dave = try TestUser(seed: 4)
    zone = try TestZone.born(
      owner: alice, members: [(bob, [.read, .write, .share]), (carol, [.read, .write]), (dave, [.read])])
  }

  private var current: ZoneACL { get throws { try #require(zone.head?.acl) } }

  private func refusalOfNext(
    by writer: TestUser, signedBy signer: TestUser? = nil, _ change: (inout ZoneACL.Fields) -> Void
  ) throws -> ZDCSecurityError.Code? {
    let previous = try current
    var fields = zone.next(after: previous, by: writer)
    change(&fields)
    let acl = try zone.signed(fields, by: signer ?? writer)
    let directory = try TestDirectory(zone.users)
    return refusal { try ACLReplay.verify(acl, after: previous, identities: directory) }
  }

  private func refusalOfFirst(_ change: (inout ZoneACL.Fields) -> Void) throws -> ZDCSecurityError.Code? {
    let empty = TestZone(owner: alice, members: [bob])
    var fields = empty.firstFields
    change(&fields)
    let acl = try empty.signed(fields, by: fields.writer == bob.id ? bob : alice)
    let directory = try TestDirectory(empty.users)
    return refusal { try ACLReplay.verify(acl, after: nil, identities: directory) }
  }

  private func remove(_ user: TestUser) -> @Sendable (inout ZoneACL.Fields) -> Void {
    let id = user.id
    return { $0.entries.removeAll { $0.user == id } }
  }

  private func give(_ user: TestUser, _ rights: ZoneACL.Permissions) -> @Sendable (inout ZoneACL.Fields) -> Void {
    let id = user.id
    return { fields in
      for index in fields.entries.indices where fields.entries[index].user == id {
        fields.entries[index].permissions = rights
      }
    }
  }

  @Test func theFirstListIsTheOwnersAlone() throws {
    #expect(try refusalOfFirst { _ in } == nil)
    #expect(try refusalOfFirst { $0.version = 2 } == .aclRollback)
    #expect(try refusalOfFirst { $0.prev = ACLHash(1, 1, 1, 1) } == .aclRollback)
    #expect(try refusalOfFirst { $0.zoneKeyGen = 2 } == .staleKeyGeneration)
    let bob = bob.id
    #expect(try refusalOfFirst { $0.writer = bob } == .aclNotAuthorized)
  }

  @Test func theTreesIDFollowsFromOwnerTrunkAndName() throws {
    #expect(try refusalOfFirst { $0.trunk = .prefs } == .recordBindingMismatch)
    #expect(try refusalOfFirst { $0.appTreeID = "com.example.other" } == .recordBindingMismatch)
    let bob = bob.id
    #expect(try refusalOfFirst { $0.owner = bob } == .recordBindingMismatch)
  }

  @Test func theOwnerAlwaysHasAllRightsAndTheKey() throws {
    #expect(try refusalOfFirst { $0.entries = [] } == .aclOwnerImmutable)
    #expect(try refusalOfFirst { $0.entries[0].permissions = [.read, .write] } == .aclOwnerImmutable)
    for writer in [alice, bob] {
      #expect(try refusalOfNext(by: writer, remove(alice)) == .aclOwnerImmutable)
      #expect(try refusalOfNext(by: writer, give(alice, [.read])) == .aclOwnerImmutable)
      #expect(
        try refusalOfNext(by: writer, give(alice, [.read, .write, .share, .recordsOnly])) == .aclOwnerImmutable)
    }
  }

  @Test func ownerAndSharersChangeOthers() throws {
    for writer in [alice, bob] {
      #expect(try refusalOfNext(by: writer, remove(carol)) == nil)
      #expect(try refusalOfNext(by: writer, give(dave, [.read, .write])) == nil)
      #expect(try refusalOfNext(by: writer, give(carol, [.read, .write, .share])) == nil)
    }
    #expect(try refusalOfNext(by: alice, give(bob, [.read])) == nil)
  }

  @Test func aMemberGrantsOnlyPermissionsThatTheyHave() throws {
    #expect(try refusalOfNext(by: carol, give(dave, [.read, .write, .share])) == .aclNotAuthorized)
    // Rights that narrow `w` are no rights that a member has to have.
    #expect(try refusalOfNext(by: bob, give(carol, [.read, .write, .writeOnce, .burnIfSender])) == nil)
  }

  @Test func aMemberWithoutShareChangesNoOtherMember() throws {
    for writer in [carol, dave] {
      #expect(try refusalOfNext(by: writer, remove(bob)) == .aclNotAuthorized)
      #expect(try refusalOfNext(by: writer, give(writer, [.read, .write, .share])) == .aclNotAuthorized)
      #expect(try refusalOfNext(by: writer) { _ in } == .aclNotAuthorized)
    }
  }

  @Test func everyMemberMayLeaveAndChangeNothingElseOnTheWay() throws {
    for writer in [bob, carol, dave] { #expect(try refusalOfNext(by: writer, remove(writer)) == nil) }
    let (leave, dropBob, rekey) = (
      remove(carol), remove(bob), { (fields: inout ZoneACL.Fields) in fields.zoneKeyGen += 1 }
    )
    #expect(
      try refusalOfNext(by: carol) {
        leave(&$0)
        dropBob(&$0)
      } == .aclNotAuthorized)
    #expect(
      try refusalOfNext(by: carol) {
        leave(&$0)
        rekey(&$0)
      } == .aclNotAuthorized)
  }

  @Test func aStrangerChangesNothing() throws {
    let mallory = try TestUser(seed: 5)
    let id = mallory.id
    #expect(try refusalOfNext(by: mallory) { _ in } == .aclNotAuthorized)
    // Signed by the server's own user in the owner's name.
    #expect(try refusalOfNext(by: alice, signedBy: mallory) { _ in } == .aclSignatureInvalid)
    let directory = try TestDirectory([bob])
    let acl = try zone.signed(zone.next(after: try current, by: alice), by: alice)
    #expect(refusal { try ACLReplay.verify(acl, after: try current, identities: directory) } == .writerUnknown)
    #expect(try current.fields.entry(for: id) == nil)
  }

  @Test func versionsFollowEachOther() throws {
    #expect(try refusalOfNext(by: alice) { $0.version += 1 } == .aclRollback)
    #expect(try refusalOfNext(by: alice) { $0.version -= 1 } == .aclRollback)
    #expect(try refusalOfNext(by: alice) { $0.prev = ACLHash(1, 1, 1, 1) } == .aclRollback)
  }

  @Test func aListStaysInItsZone() throws {
    #expect(
      try refusalOfNext(by: alice) { $0.zone = ZoneID(tree: $0.zone.tree, root: .n(1)) } == .recordBindingMismatch)
  }

  @Test func keysRotateOneGenerationAtATimeAndCommitmentsOnlyThen() throws {
    let other = NodeRecord.ZoneCommitments(node: .init(3, 3, 3, 3), content: .init(4, 4, 4, 4))
    #expect(try refusalOfNext(by: alice) { $0.commitments = other } == .staleKeyGeneration)
    #expect(try refusalOfNext(by: alice) { ($0.zoneKeyGen, $0.commitments) = ($0.zoneKeyGen + 1, other) } == nil)
    #expect(
      try refusalOfNext(by: alice) { ($0.zoneKeyGen, $0.commitments) = ($0.zoneKeyGen + 2, other) }
        == .staleKeyGeneration)
    #expect(try refusalOfNext(by: alice) { $0.zoneKeyGen = 0 } == .staleKeyGeneration)
  }

  @Test("K-0: the zone's old keys change only with its key")
  func historyOfTheZone() throws {
    #expect(try refusalOfNext(by: alice) { $0.historyWrap = [1, 2, 3] } == .staleKeyGeneration)
    #expect(
      try refusalOfNext(by: bob) { ($0.zoneKeyGen, $0.historyWrap) = ($0.zoneKeyGen + 1, [1, 2, 3]) } == nil)
  }
}
