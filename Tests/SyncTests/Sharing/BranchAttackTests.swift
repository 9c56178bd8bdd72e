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

  enum Forgery: CaseIterable {
    case none, stateRoot, genesisCount, splitCount, parentHead, anotherGenesis
  }

  /// A split of the home zone that the owner's keys have signed, and the first page of its zone.
  private struct ForgedSplit {
    let zone: ZoneID
    let branch: ZoneID
    let commit: ZoneCommit
    let mount: NodeRecord
    let genesis: ZoneCommit
    let page: [UInt8]

    init(_ name: String, _ alice: TestDevice, _ rogue: RogueWriter, _ forgery: Forgery) async throws {
      let home = try await rogue.home()
      let top = try home.node(name)
      zone = home.zone
      branch = ZoneID(tree: zone.tree, root: top.record.fields.node)
      let list = try await alice.database.read { [zone] transaction in
        let row = try #require(try transaction.zones.zone(localUser: 1, zone))
        let leaves = transaction.leaves(zone: row.id)
        return StateList(
          branch: try leaves.branch(top.record.fields.node, upTo: 100), top: top.record.fields.node)
      }
      let head = try home.head.hash
      var state = ZoneOperation.GenesisState(parentHead: head, stateRoot: list.root, count: list.count)
      if forgery == .stateRoot { state.stateRoot = StateRoot(labelledHash: "forged") }
      if forgery == .genesisCount { state.count += 1 }
      if forgery == .parentHead { state.parentHead = CommitHash(labelledHash: "forged") }
      let (acl, grant, root) = try await Self.list(branch, top, home, rogue)
      genesis = try Self.genesis(branch, state, acl, root, rogue, timeMs: 1)
      let other = try Self.genesis(branch, state, acl, root, rogue, timeMs: 2)
      let pointer = PointerTarget(
        owner: rogue.keys.userID, zone: branch, node: branch.root, genesis: genesis.hash, seq: 0, head: genesis.hash)
      var draft = try home.draft(new: name)
      draft.secrets.pointer = pointer
      mount = try RecordSealer.seal(draft)
      let count = forgery == .splitCount ? list.count - 1 : list.count
      commit = try home.commit([
        .split(node: branch.root, genesis: genesis.hash, count: count), .put(ZoneOperation.Put(mount)),
      ])
      var bundle = ZDCProtocol.Bundle.Writer()
      bundle.append(acl: acl.bytes)
      bundle.append(grant: grant.bytes)
      bundle.append(commit: (forgery == .anotherGenesis ? other : genesis).bytes)
      page = bundle.bytes
    }

    private static func list(
      _ branch: ZoneID, _ top: OpenedRecord, _ home: RogueZone, _ rogue: RogueWriter
    ) async throws -> (ZoneACL, Grant, NodeRecord) {
      let (key, keyGen) = (NodeKey.random(), top.record.fields.keyGen + 1)
      var fields = home.acl.fields
      (fields.zone, fields.version, fields.prev, fields.timeMs) = (branch, 1, .zero, 1)
      (fields.zoneKeyGen, fields.commitments) = (keyGen, key.commitments)
      let history = try KeyHistory().adding(KeyHistory.Entry(keyGen: keyGen - 1, key: top.key))
      fields.historyWrap = try history.seal(tree: branch.tree, node: branch.root, key: key, keyGen: keyGen)
      let grant = try GrantSealer(zone: branch, zoneKeyGen: keyGen, key: key)
        .seal(for: rogue.keys.userID, encGen: rogue.keys.encGen, encPub: try await rogue.encPub())
      fields.entries = fields.entries.filter { $0.user == rogue.keys.userID }
      fields.entries[0].wrapHash = grant.wrapHash
      let acl = try ZoneACL(fields) { try rogue.keys.signingKey.sign(label: "acl", message: $0) }
      var draft = RecordDraft(
        tree: branch.tree, node: branch.root, parent: .zero, recordVersion: top.record.fields.recordVersion + 1,
        prevRecord: top.record.hash, key: key, keyGen: keyGen, parentLink: .none, secrets: top.secrets,
        content: top.record.fields.content, writer: rogue.keys.userID, writerGen: rogue.keys.signGen, timeMs: 1)
      draft.isZoneRoot = true
      draft.secrets.name = []
      return (acl, grant, try RecordSealer.seal(draft))
    }

    private static func genesis(
      _ branch: ZoneID, _ state: ZoneOperation.GenesisState, _ acl: ZoneACL, _ root: NodeRecord, _ rogue: RogueWriter,
      timeMs: UInt64
    ) throws -> ZoneCommit {
      let fields = ZoneCommit.Fields(
        zone: branch, seq: 0, prev: ZoneCommit.genesisPrev(zone: branch, parentHead: state.parentHead),
        aclHash: acl.hash, writer: rogue.keys.userID, writerGen: rogue.keys.signGen, timeMs: timeMs,
        operations: [.genesisState(state), .acl(version: 1, hash: acl.hash), .put(ZoneOperation.Put(root))])
      return try ZoneCommit(fields) { try rogue.keys.signingKey.sign(label: "commit", message: $0) }
    }

    /// Serves the split, and the first page of its zone.
    func serve(from hostile: HostileServer) {
      let (zone, branch, commit, mount, page, genesis) = (zone, branch, commit, mount, page, genesis)
      hostile.tell(
        Lie { answer in
          guard answer.isBundle, answer.route.pattern == Routes.zoneCommits,
            answer.path.contains("/zones/\(zone.root.text)/")
          else { return false }
          let before = answer.items.filter { $0.commit.map { $0.fields.seq < commit.fields.seq } ?? true }
          answer.items =
            before.filter { $0.kind != .record } + [ServedItem(commit)]
            + answer.items.filter { $0.kind == .record } + [ServedItem(mount)]
          answer.headers[WireHeaders.zoneHead] = "\(commit.fields.seq):\(commit.hash.text)"
          return true
        })
      hostile.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.zoneCommits, answer.path.contains("/zones/\(branch.root.text)/") else {
            return false
          }
          answer.status = 200
          answer.headers["content-type"] = ZDCProtocol.Bundle.mediaType
          answer.headers[WireHeaders.zoneHead] = "0:\(genesis.hash.text)"
          answer.body = page
          return true
        })
      hostile.tell(
        Lie { answer in
          guard answer.route.pattern == Routes.zones else { return false }
          return try answer.changeZones { zones in
            for index in zones.indices where zones[index].zone == zone {
              (zones[index].seq, zones[index].head) = (commit.fields.seq, commit.hash)
            }
          }
        })
    }
  }

  @Test("a forged split is splitMismatch, and nothing of it is applied", arguments: Forgery.allCases)
  func aForgedSplit(_ forgery: Forgery) async throws {
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
      let split = try await ForgedSplit("list", alice, rogue, forgery)
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
      let split = try await ForgedSplit("list", alice, try await people.rogue("alice", alice), .none)
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
