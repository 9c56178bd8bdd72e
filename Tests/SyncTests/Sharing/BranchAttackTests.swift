import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Splits that are forged, by the server or by a stolen device of the owner, and former members who keep their keys.
struct BranchAttackTests {
  typealias People = ListChangeTests.People

  @Test("a forged split is splitMismatch, and nothing of it is applied", arguments: ForgedSplit.Forgery.allCases)
  func aForgedSplit(_ forgery: ForgedSplit.Forgery) async throws {
    try await TestWorld.run { world in
      let alice = try await world.device("alice")
      try await alice.create("/list", "top")
      try await alice.create("/list/inner", "inner")
      try await alice.sync()
      let hostile = HostileServer(world.server)
      let victim = try await TestDevice("victim", server: world.server, clock: world.clock, through: hostile)
      try await victim.login(words: try #require(world.words()))
      try await victim.pull()
      let before = try await victim.tree(versions: false)
      let rogue = try await RogueWriter(
        words: try #require(world.words()), user: try alice.userID, server: world.server)
      let split = try await ForgedSplit("list", in: try await rogue.home(), of: alice, rogue, forgery)
      split.serve(from: hostile)
      do { try await victim.pull() } catch {
        // The real server has no records of a zone that it does not know.
        #expect((error as? ZDCSecurityError)?.code == .splitMismatch || forgery == .none, "\(error)")
      }
      let zones = try await victim.database.read { try $0.zones.zones(localUser: 1).filter { !$0.isTrunk }.count }
      #expect(zones == (forgery == .none ? 1 : 0))
      #expect(try await victim.securityErrors().contains("splitMismatch") == (forgery != .none))
      #expect(try await victim.tree(versions: false) == before)
      try await victim.close()
    }
  }

  /// - Bob has Alice's tree, and has read the log of a part that she has split off
  /// - her stolen keys have signed another split of the part, which the server shows to him
  /// => the owner's signature is on two first commits: the part is frozen, and the tree is not
  @Test func anotherFirstCommitThanTheLogs() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob) = (people.alice, people.bob)
      try await alice.create("/list", "top")
      try await alice.create("/list/inner", "inner")
      try await alice.share(with: bob)
      try await alice.sync()
      let hostile = HostileServer(world.server)
      let victim = try await TestDevice("victim", server: world.server, clock: world.clock, through: hostile)
      try await victim.login(words: try #require(world.words(of: "bob")))
      try await victim.sync()
      try await victim.accept(alice)
      let rogue = try await people.rogue("alice", alice)
      let split = try await ForgedSplit("list", in: try await rogue.home(), of: alice, rogue)
      // Other permissions than above make it a branch.
      try await alice.share("/list", with: bob, "rws")
      try await alice.sync()
      try await victim.meet(alice)
      try await victim.graft("/list", try await alice.invite("/list"), from: alice)
      // The server withholds the tree's log.
      victim.network.fail(.answer(status: 404, code: "notFound"), "GET", Routes.zoneCommits)
      try await SplitRaceTests.pull(split.branch.root.text, victim)
      #expect(try await victim.branch("/list") == "/inner  ?")
      split.serve(from: hostile)
      try await SplitRaceTests.pull(split.zone.root.text, victim)
      #expect(try await victim.securityErrors() == ["zoneForkDetected"])
      let frozen = try await victim.database.read { transaction in
        try transaction.zones.zones(localUser: 1).filter { $0.frozen != nil }.map(\.zone)
      }
      #expect(frozen == [split.branch])
      #expect(try await victim.branch("/list") == "/inner  ?")
      try await victim.close()
    }
  }

  @Test("S-1: a former member's keys open nothing that is written after the branch was split off")
  func aFormerMemberReadsNothingNew() async throws {
    try await TestWorld.run { world in
      let people = try await People(world)
      let (alice, bob, eve) = (people.alice, people.bob, people.carol)
      try await alice.create("/list", "top")
      try await alice.create("/list/a", "a")
      try await alice.create("/list/a/b", "b")
      try await alice.share(with: eve)
      try await alice.sync()
      try await eve.accept(alice)
      let keys = try await eve.database.read { transaction in
        var keys: [NodeKey] = []
        for zone in try transaction.zones.zones(localUser: 1) {
          try transaction.nodes.forEach(zone: zone.id) { keys.append($0.key) }
        }
        return keys
      }
      try await alice.unshare(with: eve)
      try await alice.sync()
      // The branch still has the keys that Eve has.
      try await alice.share("/list", with: bob)
      try await alice.sync()
      let node = try await alice.node("/list")
      let old = try await Self.records(node.nodeID, people)
      try await alice.edit("/list/a/b", "secret")
      try await alice.create("/list/new", "secret")
      try await alice.edit("/list", "secret")
      try await alice.sync()
      let new = try await Self.records(node.nodeID, people).filter { record in !old.contains(record.hash) }
      #expect(new.count >= 4)
      for record in new.records { #expect(keys.allSatisfy { !Self.opens($0, record) }) }
      // The keys do open what was written before, so the check could fail.
      #expect(old.records.contains { record in keys.contains { Self.opens($0, record) } })
      try await eve.sync()
      #expect(try await eve.tree(of: alice) == nil)
    }
  }

  struct Records {
    var records: [NodeRecord]
    var count: Int { records.count }
    func contains(_ hash: RecordHash) -> Bool { records.contains { $0.hash == hash } }
    func filter(_ isKept: (NodeRecord) -> Bool) -> Records { Records(records: records.filter(isKept)) }
  }

  /// All live records of the tree and of the branch, as the server has them.
  static func records(_ node: NodeID, _ people: People) async throws -> Records {
    let rogue = try await people.rogue("alice", people.alice)
    let tree = TreeID.derive(owner: try people.alice.userID, trunk: .home, appTreeID: TestDevice.treeID)
    let zones = try await people.alice.database.read {
      try $0.zones.zones(localUser: 1).filter { $0.zone.tree == tree }
    }
    var records: [NodeRecord] = []
    for row in zones {
      let leaves = try await people.alice.database.read { transaction in
        try transaction.leaves(zone: row.id).branch(row.zone.root, upTo: 1_000)
      }
      records += try await rogue.records(leaves, of: row.zone)
    }
    return Records(records: records)
  }

  /// Whether a node's key opens the record: as that of the node itself, or as that of its parent.
  static func opens(_ key: NodeKey, _ record: NodeRecord) -> Bool {
    if (try? RecordOpener.open(record, key: key)) != nil { return true }
    return (try? RecordOpener.open(record, parent: ParentKeys(key, keyGen: record.fields.parentKeyGen))) != nil
  }
}
