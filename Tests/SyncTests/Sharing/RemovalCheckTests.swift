import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// A removed member's old keys, tried on everything that was written since.
struct RemovalCheckTests {
  typealias People = ListChangeTests.People

  /// The owner's tree, from which Bob has been removed.
  private static func removed(_ world: TestWorld) async throws -> People {
    let people = try await People(world)
    let alice = people.alice
    for path in ["/list", "/other"] { try await alice.create(path, "before") }
    try await alice.create("/list/milk", "1 l")
    try await alice.share(with: people.bob)
    try await alice.share(with: people.carol)
    try await alice.sync()
    try await alice.unshare(with: people.bob)
    try await alice.sync()
    return people
  }

  private static func check(_ people: People) async throws -> ZDCAccessCheck {
    let home = try await people.alice.node("home:/").uuid
    return try await people.alice.syncManager.verifyRemoval(
      ofUserID: try people.bob.localUserID, forNodeID: home, forLocalUserID: try people.alice.localUserID)
  }

  private static func oldKeys(_ device: TestDevice, limit: Int) async throws -> [String] {
    try await device.write { _, cloud in
      guard let home = cloud.trunkNode(.home) else { return [] }
      var all: [String] = []
      var page = cloud.cloudIDsWithOldKeys(forNodeID: home.uuid, limit: limit)
      while let last = page.last {
        all += page
        page = cloud.cloudIDsWithOldKeys(forNodeID: home.uuid, after: last, limit: limit)
      }
      return all.compactMap { cloud.node(cloudID: $0).flatMap(cloud.path(for:))?.fullPath() }.sorted()
    }
  }

  @Test func afterARemoval_nothingOpens_andTheNodesWithOldKeysAreNamed() async throws {
    try await TestWorld.run { world in
      let people = try await Self.removed(world)
      let alice = people.alice
      let first = try await Self.check(people)
      #expect(first.isPassed && first.keyGenerations == [1] && first.recordCount == 1 && first.listCount == 1)
      #expect(try await Self.oldKeys(alice, limit: 2) == ["home:/list", "home:/list/milk", "home:/other"])
      try await alice.edit("/list/milk", "secret")
      try await alice.create("/list/new", "secret too")
      try await alice.sync()
      try await alice.edit("/list/milk", "secret again")
      try await alice.sync()
      #expect(try await Self.oldKeys(alice, limit: 1) == ["home:/other"])
      // The version of milk that was replaced since is read by its hash.
      let second = try await Self.check(people)
      #expect(second.isPassed && second.recordCount == 5 && second.contentCount == 2 && second.missingCount == 0)
      #expect(second.lastCommitNumber == (try await people.home().head.fields.seq))
      #expect(try await alice.syncManager.replaceOldKeys(forLocalUserID: try alice.localUserID) == 0)
      #expect(try await Self.oldKeys(alice, limit: 2).isEmpty)
      #expect(try await Self.check(people).isPassed)
      // What Bob could read before opens with Bob's keys and all of the server's data, and nothing else.
      #expect(try FormerMemberCheck(world.server).run(try await people.bob.userKeys) == 4)
    }
  }

  /// - The tree has a node with a damaged id, after all others in the order of ids
  /// => pages without it are returned: nothing after the end of a page is read
  @Test func aPageOfNodesWithOldKeys_endsAtItsLimit() async throws {
    try await TestWorld.run { world in
      let people = try await Self.removed(world)
      let alice = people.alice
      let home = try await alice.node("home:/").uuid
      let all = try await alice.write { _, cloud in cloud.cloudIDsWithOldKeys(forNodeID: home) }
      #expect(all.count == 3)
      await #expect(throws: (any Error).self) {
        try await alice.write { transaction, cloud in
          try transaction.database.execute(
            sql: """
              INSERT INTO zdc_leaf
              SELECT NULL, zone, x'\(String(repeating: "ff", count: 17))', parent, record, prev, putSeq,
              keyGen, parentKeyGen, writer, writerGen, pending
              FROM zdc_leaf WHERE node = ?
              """, arguments: [try #require(NodeID(text: all[0])).data])
          #expect(cloud.cloudIDsWithOldKeys(forNodeID: home, limit: 3) == all)
          #expect(cloud.cloudIDsWithOldKeys(forNodeID: home, after: all[0], limit: 2) == Array(all.dropFirst()))
          // This page has the damaged node, and poisons the transaction, which leaves nothing of it.
          #expect(cloud.cloudIDsWithOldKeys(forNodeID: home, limit: 4).isEmpty)
        }
      }
      #expect(try await Self.oldKeys(alice, limit: 4).count == 3)
    }
  }

  enum Fault: CaseIterable {
    /// The node keeps its key under the next generation.
    case keptKey
    /// The node's new key is sealed under the old key of the tree.
    case keyUnderOldKey
    /// New content is sealed under the key of the content before.
    case keptContentKey
  }

  /// - Bob is removed; a device that breaks the rules writes one node under a key that he has
  /// => the check names that node and that commit, and nothing else
  @Test(arguments: Fault.allCases) func aDeviceThatUsesAnOldKey_isFound(fault: Fault) async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let alice = people.alice
      for path in ["/other", "/third"] { try await alice.create(path, "before") }
      try await alice.share(with: people.bob)
      try await alice.sync()
      let rogue = try await people.rogue("alice", alice)
      let before = try await rogue.home()
      try await alice.unshare(with: people.bob)
      try await alice.edit("/third", "honest")
      try await alice.sync()
      if fault == .keyUnderOldKey {
        world.expectsSecurityErrors(["recordAuthFailed"], on: alice)
        // A fresh device cannot read the node.
        world.skipsComparison()
      }
      let node = try await Self.push(fault, rogue, before: before)
      try await alice.pull()
      let check = try await Self.check(people)
      #expect(check.readableCount == 1 && !check.isPassed)
      let found = try #require(check.readable.first)
      #expect(found.kind == (fault == .keptContentKey ? .content : .record) && found.cloudID == node.text)
      #expect(found.commitNumber == (try await rogue.homeObjects().commits.last?.fields.seq))
      let keys = try await people.bob.userKeys
      #expect(throws: TestFailure.self) { try FormerMemberCheck(world.server).run(keys) }
    }
  }

  /// Writes `/other`, which Bob could read, as no honest device would.
  private static func push(_ fault: Fault, _ rogue: RogueWriter, before: RogueZone) async throws -> NodeID {
    let home = try await rogue.home()
    var draft = try home.draft(next: "other")
    draft.keyGen += 1
    if fault != .keptKey { draft.key = .random() }
    if fault == .keyUnderOldKey {
      draft.parentLink = .keys(ParentKeys(before.root.key, keyGen: home.root.record.fields.keyGen))
    }
    let contents = fault == .keptContentKey ? [try keepContentKey(&draft)] : []
    let record = try RecordSealer.seal(draft)
    try await rogue.push(try home.commit(putting: record), [record], contents: contents)
    return draft.node
  }

  private static func keepContentKey(_ draft: inout RecordDraft) throws -> (BlobID, [UInt8]) {
    let old = try #require(draft.secrets.content)
    let fresh = try ContentSealer.sealSmall(data: Array("secret".utf8))
    let layout = try ContentLayout(sizes: fresh.secrets.sizes, cipherLength: fresh.cipherLength)
    let sealed = try ContentSealer(
      again: layout, key: old.key, salt: Array(repeating: 7, count: 24), blobID: fresh.blobID, metadata: [],
      thumbnail: []
    ).sealAll(Array("secret".utf8))
    draft.secrets.content = sealed.secrets
    draft.content = sealed.content(dataVersion: (draft.content?.dataVersion ?? 0) + 1)
    draft.dataAuthor = nil
    return (sealed.blobID, sealed.bytes)
  }

  @Test func aLogThatDiffersFromTheVerifiedOne_isRefused() async throws {
    try await TestWorld.run { world in
      let people = try await Self.removed(world)
      let alice = people.alice
      try await alice.write { transaction, _ in
        try transaction.database.execute(sql: "UPDATE zdc_log SET hash = zeroblob(32) WHERE seq > 0")
      }
      await #expect(throws: ZDCSecurityError(.commitChainBroken, zone: try await people.home().zone)) {
        _ = try await Self.check(people)
      }
    }
  }

  @Test func aMemberWhoWasAddedAgain_isCheckedUpToThen() async throws {
    try await TestWorld.run { world in
      let people = try await Self.removed(world)
      let removal = try await people.home().head.fields.seq
      try await people.alice.share(with: people.bob)
      try await people.alice.sync()
      try await people.alice.edit("/other", "for all")
      try await people.alice.sync()
      let check = try await Self.check(people)
      #expect(check.isPassed && check.lastCommitNumber == removal && check.recordCount == 1)
    }
  }

  @Test func aUserWhoWasNotRemoved_hasNothingToVerify() async throws {
    try await TestWorld.run { world in
      let people = try await Self.removed(world)
      let home = try await people.alice.node("home:/").uuid
      await #expect(throws: ZDCCloudError.self) {
        _ = try await people.alice.syncManager.verifyRemoval(
          ofUserID: try people.carol.localUserID, forNodeID: home, forLocalUserID: try people.alice.localUserID)
      }
    }
  }
}
