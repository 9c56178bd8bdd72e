import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Ends of a zone that are forged, by a member or by the server.
struct BranchEndAttackTests {
  typealias People = ListChangeTests.People

  enum Forgery: CaseIterable {
    case byMember, byAnotherKey, withOtherOperation, withDescendants, ofAnotherRecord, ofTrunk, thenAnotherCommit

    /// The recorded error, and whether it freezes the zone.
    var outcome: (code: String, freezes: Bool) {
      switch self {
      case .byMember, .ofTrunk: ("writerNotAuthorized", true)
      case .byAnotherKey: ("signatureInvalid", true)
      case .ofAnotherRecord: ("recordHashMismatch", true)
      case .withOtherOperation, .withDescendants: ("nonCanonicalEncoding", false)
      case .thenAnotherCommit: ("commitChainBroken", false)
      }
    }
  }

  /// Commits that a server without rules shows after the log of the branch, or of the home trunk.
  private static func forge(
    _ forgery: Forgery, _ people: People, _ root: NodeID
  ) async throws -> (commits: [ZoneCommit], records: [NodeRecord]) {
    let (alice, bob) = (try await people.rogue("alice", people.alice), try await people.rogue("bob", people.bob))
    let tree = TreeID.derive(owner: alice.keys.userID, trunk: .home, appTreeID: TestDevice.treeID)
    let id = forgery == .ofTrunk ? ZoneID(trunkOf: tree) : ZoneID(tree: tree, root: root)
    let zone = try await alice.zone(id)
    let record = zone.root.record.hash
    let end = ZoneOperation.delete(node: id.root, record: record, liveDescendants: 0)
    switch forgery {
    case .byMember:
      let commit = try zone.commit([end], signedBy: bob.keys.signingKey) {
        ($0.writer, $0.writerGen) = (bob.keys.userID, bob.keys.signGen)
      }
      return ([commit], [])
    case .byAnotherKey: return ([try zone.commit([end], signedBy: bob.keys.signingKey)], [])
    case .withOtherOperation:
      let new = try RecordSealer.seal(try zone.draft(new: "new"))
      return ([try zone.commit([.put(ZoneOperation.Put(new)), end])], [new])
    case .withDescendants:
      return ([try zone.commit([.delete(node: id.root, record: record, liveDescendants: 9)])], [])
    case .ofAnotherRecord:
      let other = RecordHash(labelledHash: "forged")
      return ([try zone.commit([.delete(node: id.root, record: other, liveDescendants: 0)])], [])
    case .ofTrunk: return ([try zone.commit([end])], [])
    case .thenAnotherCommit:
      let (first, new) = (try zone.commit([end]), try RecordSealer.seal(try zone.draft(new: "new")))
      return ([first, try zone.commit(putting: new, after: first)], [new])
    }
  }

  @Test(
    "a forged end is refused and recorded, nothing of it is applied, and the true end is", arguments: Forgery.allCases)
  func aForgedEnd(_ forgery: Forgery) async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let alice = people.alice
      let root = try await alice.cloudID("/home/list")
      let hostile = HostileServer(world.server)
      let victim = try await TestDevice("victim", server: world.server, clock: world.clock, through: hostile)
      try await victim.login(words: try #require(world.words()))
      try await victim.sync()
      try await victim.download()
      try await victim.edit("/home/list/a", "queued")
      let before = try await victim.tree()
      let forged = try await Self.forge(forgery, people, try #require(NodeID(text: root)))
      let last = try #require(forged.commits.last)
      let items = forged.commits.map { ServedItem($0) } + forged.records.map { ServedItem($0) }
      hostile.tell(.add(items, to: last.fields.zone))
      hostile.tell(.head(last.fields.zone, seq: last.fields.seq, hash: last.hash))
      do { try await victim.pull() } catch {
        #expect((error as? ZDCSecurityError)?.code.description == forgery.outcome.code, "\(error)")
      }
      #expect(try await victim.tree() == before)
      #expect(try await victim.securityErrors() == [forgery.outcome.code])
      let frozen = try await victim.syncManager.frozenZones(localUserID: try victim.localUserID)
      #expect(frozen.map(\.zone) == (forgery.outcome.freezes ? [last.fields.zone] : []))
      hostile.stopTampering()
      try await victim.relaunch()
      for zone in frozen {
        try await victim.syncManager.acceptServerState(ofZone: zone.zone, localUserID: try victim.localUserID)
      }
      try await alice.delete("/home/list")
      try await alice.sync()
      try await TestWorld.settle([victim])
      #expect(try await victim.tree(versions: false) == "/home\n/other  \"private\"")
      #expect(try await BranchEndTests.branchCount(victim) == 0)
      try await victim.close()
    }
  }

  @Test("an honest server refuses a member's end, one with another operation, and that of a trunk")
  func theServerRefusesForgedEnds() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let root = try #require(NodeID(text: try await people.alice.cloudID("/home/list")))
      let before = try world.server.commitCount()
      for forgery in Forgery.allCases where forgery != .thenAnotherCommit {
        let forged = try await Self.forge(forgery, people, root)
        let isByBob = forgery == .byMember
        let writer = try await people.rogue(isByBob ? "bob" : "alice", isByBob ? people.bob : people.alice)
        let error = await #expect(throws: ServerError.self) { try await writer.push(forged.commits[0], forged.records) }
        #expect(error?.security?.description == forgery.outcome.code, "\(forgery): \(String(describing: error))")
      }
      #expect(try world.server.commitCount() == before)
    }
  }

  @Test("K-14: a server that denies the branch ends nothing; the owner's signed commit does")
  func aBare404EndsNothing() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let alice = people.alice
      let (root, top) = (try await alice.cloudID("/home/list"), try await BranchTests.path("", people))
      let hostile = HostileServer(world.server)
      let bob = try await TestDevice("bob's second", server: world.server, clock: world.clock, through: hostile)
      try await bob.login(words: try #require(world.words(of: "bob")))
      try await bob.sync()
      try await bob.accept(root, of: alice)
      try await bob.download()
      try await bob.edit(top + "/a", "queued")
      let before = try await bob.branch(top)
      try await alice.delete("/home/list")
      try await alice.sync()
      let path = "/zones/\(root)/"
      hostile.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.zoneCommits, answer.path.contains(path) else { return false }
          (answer.status, answer.headers["content-type"]) = (404, "application/json")
          answer.body = Array(#"{"code":"notFound","message":"by script","retryable":false}"#.utf8)
          return true
        })
      // A push would be answered with the page of the end.
      for _ in 0..<2 { do { try await bob.pull() } catch { #expect((error as? ServerError)?.code == .notFound) } }
      #expect(hostile.liesTold > 0)
      #expect(try await bob.branch(top) == before)
      hostile.stopTampering()
      try await TestWorld.settle([bob])
      #expect(try await bob.branch(top) == nil)
      #expect(try await bob.queueCount() == 0)
      try await bob.close()
    }
  }

  @Test("a server that withholds the end: the branch gets a place again, and loses it with the end")
  func aWithheldEnd() async throws {
    try await TestWorld.run { world in
      let people = try await BranchTests.shared(world)
      let alice = people.alice
      let root = try #require(NodeID(text: try await alice.cloudID("/home/list")))
      let hostile = HostileServer(world.server)
      let victim = try await TestDevice("victim", server: world.server, clock: world.clock, through: hostile)
      try await victim.login(words: try #require(world.words()))
      try await victim.sync()
      try await victim.download()
      let (branch, head) = try await victim.database.read { transaction in
        let row = try #require(try transaction.zones.zones(localUser: 1).first { $0.zone.root == root })
        return (row.zone, try #require(row.head))
      }
      let content = try await victim.branch("/home/list")
      try await alice.delete("/home/list")
      try await alice.sync()
      hostile.tell(.head(branch, seq: head.seq, hash: head.hash))
      hostile.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.zoneCommits, answer.path.contains("/zones/\(root.text)/") else {
            return false
          }
          answer.items = []
          return true
        })
      try await victim.sync()
      #expect(try await victim.branch("/list") == content)
      hostile.stopTampering()
      try await TestWorld.settle([victim, alice])
      #expect(try await victim.tree(versions: false) == "/home\n/other  \"private\"")
      #expect(try await victim.securityErrors() == [])
      try await victim.close()
    }
  }
}
