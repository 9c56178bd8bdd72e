import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// A split of a zone that the owner's keys have signed, and the first page of the new zone.
struct ForgedSplit {
  enum Forgery: CaseIterable {
    case none, stateRoot, genesisCount, splitCount, parentHead, anotherGenesis
  }

  let zone: ZoneID
  let branch: ZoneID
  let commit: ZoneCommit
  let mount: NodeRecord
  let genesis: ZoneCommit
  let page: [UInt8]

  /// - Parameters:
  ///   - name: The node at the top of the branch that is split off.
  ///   - parent: The zone as the owner opens it.
  ///   - alice: A device of the owner that has read the zone's log.
  init(
    _ name: String, in parent: RogueZone, of alice: TestDevice, _ rogue: RogueWriter, _ forgery: Forgery = .none
  ) async throws {
    let top = try parent.node(name)
    zone = parent.zone
    branch = ZoneID(tree: zone.tree, root: top.record.fields.node)
    let list = try await alice.database.read { [zone] transaction in
      let row = try #require(try transaction.zones.zone(localUser: 1, zone))
      let leaves = transaction.leaves(zone: row.id)
      return StateList(
        branch: try leaves.branch(top.record.fields.node, upTo: 100), top: top.record.fields.node)
    }
    let head = try parent.head.hash
    var state = ZoneOperation.GenesisState(parentHead: head, stateRoot: list.root, count: list.count)
    if forgery == .stateRoot { state.stateRoot = StateRoot(labelledHash: "forged") }
    if forgery == .genesisCount { state.count += 1 }
    if forgery == .parentHead { state.parentHead = CommitHash(labelledHash: "forged") }
    let (acl, grant, root) = try await Self.list(branch, top, parent, rogue)
    genesis = try Self.genesis(branch, state, acl, root, rogue, timeMs: 1)
    let other = try Self.genesis(branch, state, acl, root, rogue, timeMs: 2)
    let pointer = PointerTarget(
      owner: rogue.keys.userID, zone: branch, node: branch.root, genesis: genesis.hash, seq: 0, head: genesis.hash)
    var draft = try parent.draft(new: name)
    draft.secrets.pointer = pointer
    mount = try RecordSealer.seal(draft)
    let count = forgery == .splitCount ? list.count - 1 : list.count
    commit = try parent.commit([
      .split(node: branch.root, genesis: genesis.hash, count: count), .put(ZoneOperation.Put(mount)),
    ])
    var bundle = ZDCProtocol.Bundle.Writer()
    bundle.append(acl: acl.bytes)
    bundle.append(grant: grant.bytes)
    bundle.append(commit: (forgery == .anotherGenesis ? other : genesis).bytes)
    page = bundle.bytes
  }

  private static func list(
    _ branch: ZoneID, _ top: OpenedRecord, _ parent: RogueZone, _ rogue: RogueWriter
  ) async throws -> (ZoneACL, Grant, NodeRecord) {
    let (key, keyGen) = (NodeKey.random(), top.record.fields.keyGen + 1)
    var fields = parent.acl.fields
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
    let (zone, commit, mount) = (zone, commit, mount)
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
    hostile.tell(firstPage)
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

  /// Serves the first page of the new zone, which the real server does not know.
  var firstPage: Lie {
    let (branch, page, genesis) = (branch, page, genesis)
    return Lie { answer in
      guard answer.route.pattern == Routes.zoneCommits, answer.path.contains("/zones/\(branch.root.text)/") else {
        return false
      }
      answer.status = 200
      answer.headers["content-type"] = ZDCProtocol.Bundle.mediaType
      answer.headers[WireHeaders.zoneHead] = "0:\(genesis.hash.text)"
      answer.body = page
      return true
    }
  }
}
