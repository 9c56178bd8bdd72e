import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloud
import ZeroDarkCloudTesting

/// A member who may change the access list signs what only the owner may, and the server shows it to the owner.
struct OwnerRuleAttackTests {
  enum Attack: CaseIterable {
    /// The member puts the trunk's root, and no list that raises its key's generation (R-root).
    case root
    /// The member replaces the owner's wrap, and not the key (R-owner).
    case ownersWrap

    var code: ZDCSecurityError.Code { self == .root ? .writerNotAuthorized : .aclOwnerImmutable }

    func objects(_ home: RogueZone, owner: UserID) throws -> (commit: ZoneCommit, items: [ServedItem]) {
      switch self {
      case .root:
        let record = RogueZone.record(home.root.record) { fields in
          (fields.recordVersion, fields.prevRecord) = (fields.recordVersion + 1, home.root.record.hash)
          (fields.writer, fields.writerGen) = (home.keys.userID, home.keys.signGen)
        }
        let commit = try home.commit(putting: record)
        return (commit, [ServedItem(commit), ServedItem(record)])
      case .ownersWrap:
        let list = try home.nextACL { fields in
          for index in fields.entries.indices where fields.entries[index].user == owner {
            fields.entries[index].wrapHash = home.grant.wrapHash
          }
        }
        let commit = try home.commit(bringing: list)
        return (commit, [ServedItem(list), ServedItem(home.grant), ServedItem(commit)])
      }
    }
  }

  /// - Alice has shared her home with Bob, who may change its list; he and the server attack together
  /// => her device refuses the commit, freezes the tree and keeps it as it was
  @Test(arguments: Attack.allCases) func aMemberTakesARightOfTheOwner(attack: Attack) async throws {
    try await TestWorld.run { world in
      let people = try await ListChangeTests.People(world)
      let alice = people.alice
      try await alice.create("/note", "for two")
      try await alice.share(with: people.bob, "rws")
      try await alice.sync()
      let hostile = HostileServer(world.server)
      let tablet = try await TestDevice("tablet", server: world.server, clock: world.clock, through: hostile)
      try await tablet.login(words: try #require(world.words(of: "alice")))
      try await TestWorld.settle([tablet])
      let home = try await people.rogue("bob", people.bob).zone(try await people.home().zone)
      let (commit, items) = try attack.objects(home, owner: try alice.userID)
      hostile.tell(.add(items, to: home.zone), to: "tablet")
      hostile.tell(.head(home.zone, seq: commit.fields.seq, hash: commit.hash), to: "tablet")
      let error = await #expect(throws: ZDCSecurityError.self) { try await tablet.pull() }
      #expect(error?.code == attack.code)
      #expect(Array(try await DeviceState(of: tablet).frozen.values) == [attack.code.rawValue])
      #expect(try await tablet.tree() == alice.tree())
      try await tablet.close()
    }
  }
}
