import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// Members who collude with the server: keys that were retired, and grants that were replaced.
struct MemberAttackTests {
  typealias People = ListChangeTests.People

  private static func branch(_ people: People) async throws -> ZoneID {
    let root = try #require(NodeID(text: try await people.alice.cloudID("/home/list")))
    let tree = TreeID.derive(owner: try people.alice.userID, trunk: .home, appTreeID: TestDevice.treeID)
    return ZoneID(tree: tree, root: root)
  }

  /// - Bob has new keys, and retires the old ones in the branch; a server accepts a put with an old one, and shows it
  /// => `writerNotAuthorized`, and the tree is as before
  @Test func aRetiredKeyOfAMemberPutsNothing() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let branch = try await Self.branch(people)
      let old = try await people.rogue("bob", people.bob).keys
      try await people.bob.rotateKeys()
      let bob = try await people.rogue("bob", people.bob)
      let retirement = ZoneOperation.retireKey(user: old.userID, gen: bob.keys.signGen)
      try await bob.push(try await bob.zone(branch).commit([retirement]))
      let hostile = HostileServer(world.server)
      let device = try await TestDevice("second", server: world.server, clock: world.clock, through: hostile)
      try await device.login(words: try #require(world.words()))
      try await device.sync()
      let zone = try await people.rogue("alice", people.alice).zone(branch)
      var draft = try zone.draft(new: "new")
      (draft.writer, draft.writerGen) = (old.userID, old.signGen)
      let record = try RecordSealer.seal(draft)
      let commit = try zone.commit([.put(ZoneOperation.Put(record))], signedBy: old.signingKey) {
        ($0.writer, $0.writerGen) = (old.userID, old.signGen)
      }
      hostile.tell(.add([ServedItem(commit), ServedItem(record)], to: branch))
      hostile.tell(.head(branch, seq: commit.fields.seq, hash: commit.hash))
      let before = try await device.tree()
      do { try await device.pull() } catch {
        #expect((error as? ZDCSecurityError)?.code == .writerNotAuthorized, "\(error)")
      }
      #expect(try await device.securityErrors() == ["writerNotAuthorized"])
      #expect(try await device.tree() == before)
      try await device.close()
    }
  }

  enum OldGrant: CaseIterable {
    case own, ofFormerMember

    /// A grant for another user counts as none.
    var code: ZDCSecurityError.Code { self == .own ? .grantHashMismatch : .grantMissing }
  }

  /// - Carol is removed, which replaces the branch's key; Bob gets an older grant, or Carol's, in place of the new one
  /// => the error, and the tree is as before; with the grant that the list names, Bob's device reads the new node
  @Test(arguments: OldGrant.allCases) func aGrantOfAnOlderGenerationOpensNothing(_ kind: OldGrant) async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let (branch, bob, carol) = (try await Self.branch(people), people.bob, people.carol)
      let member = kind == .own ? try await people.rogue("bob", bob) : try await people.rogue("carol", carol)
      let old = try await member.zone(branch).grant
      let hostile = HostileServer(world.server)
      let device = try await TestDevice("second", server: world.server, clock: world.clock, through: hostile)
      try await device.login(words: try #require(world.words(of: "bob")))
      try await device.sync()
      try await device.accept(branch.root.text, of: people.alice)
      let top = "detached:/" + branch.root.text
      let before = try await device.branch(top)
      try await people.alice.unshare("/home/list", with: carol)
      try await people.alice.create("/home/list/later", "later")
      try await people.alice.sync()
      hostile.tell(.substitute(.grant, with: old.bytes) { $0.grant?.zone == branch })
      do { try await device.pull() } catch {
        #expect((error as? ZDCSecurityError)?.code == kind.code, "\(error)")
      }
      #expect(hostile.liesTold > 0)
      #expect(Set(try await device.securityErrors()) == [kind.code.description])
      #expect(try await device.branch(top) == before)
      hostile.stopTampering()
      world.clock.advance(by: .seconds(3_600))
      try await TestWorld.settle([device])
      #expect(try await device.branch(top)?.contains("/later") == true)
      try await device.close()
    }
  }
}
