import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZeroDarkCloud

/// The right `R` on a client: the server shows what it should have refused.
struct RecordsOnlyTests {
  typealias People = ListChangeTests.People

  private enum Forgery {
    case new
    case next(String)
  }

  /// A record of Bob in Alice's tree, and the commit that puts it.
  private static func put(_ forgery: Forgery, _ people: People) async throws -> (ZoneCommit, NodeRecord) {
    let keys = try await people.rogue("bob", people.bob).keys
    let zone = try await people.home()
    var draft: RecordDraft
    switch forgery {
    case .new: draft = try zone.draft(new: "new")
    case .next(let name): draft = try zone.draft(next: name)
    }
    (draft.writer, draft.writerGen) = (keys.userID, keys.signGen)
    let record = try RecordSealer.seal(draft)
    let commit = try zone.commit([.put(ZoneOperation.Put(record))], signedBy: keys.signingKey) {
      ($0.writer, $0.writerGen) = (keys.userID, keys.signGen)
    }
    return (commit, record)
  }

  /// - Bob, who may put records without content, puts a new one; then the next version of one with content
  /// => the first is shown; the second freezes the tree, as the protocol says of what an honest server refuses
  @Test func aRecordWithContentIsRefused() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let alice = people.alice
      try await alice.create("/note", "1")
      try await alice.share(with: people.bob, "rwR")
      try await alice.sync()
      let hostile = HostileServer(world.server)
      let victim = try await TestDevice("victim", server: world.server, clock: world.clock, through: hostile)
      try await victim.login(words: try #require(world.words()))
      let allowed = try await Self.put(.new, people)
      try await people.rogue("bob", people.bob).push(allowed.0, [allowed.1])
      try await victim.sync()
      try await victim.download()
      let before = try await victim.tree()
      #expect(before.contains("/new"))
      let (commit, record) = try await Self.put(.next("note"), people)
      hostile.tell(.add([ServedItem(commit), ServedItem(record)], to: commit.fields.zone))
      hostile.tell(.head(commit.fields.zone, seq: commit.fields.seq, hash: commit.hash))
      let error = await #expect(throws: ZDCSecurityError.self) { try await victim.pull() }
      #expect(error?.code == .writerNotAuthorized)
      #expect(try await victim.tree() == before)
      #expect(try await victim.securityErrors() == ["writerNotAuthorized"])
      let frozen = try await victim.syncManager.frozenZones(localUserID: try victim.localUserID)
      #expect(frozen.map(\.zone) == [commit.fields.zone])
      try await victim.close()
    }
  }
}
