import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Permissions in a shared branch, behind a server that accepts everything: each role, each change. The owner's device
/// applies what the role allows, and nothing else. `PermissionMatrixTests` has the same table for the server.
struct MemberMatrixTests {
  /// Named by their rights, as in the table of SECURITY.md.
  enum Role: String, CaseIterable {
    case stranger
    // In this order, the owner takes no right away, which would make the keys of the nodes old.
    case reader = "r"
    case childWriter = "rwU"
    case leafWriter = "rwL"
    case creator = "rwW"
    case burner = "rwWB"
    case recordWriter = "rwR"
    case writer = "rw"
    case sharer = "rws"
    case former

    var isMember: Bool { self != .stranger && self != .former }
  }

  /// Named as in the table of SECURITY.md.
  enum Change: String, CaseIterable {
    case create = "put a new node below the root"
    case createBelow = "put a new node deeper"
    case createOwnChild = "put the own child node"
    case createWithContent = "put a new node with content"
    case modify = "put a node again"
    case move = "move a node"
    case delete = "delete a node"
    case deleteBranch = "delete a node with another one below"
    case deleteOwn = "delete the own child node"
    case modifyRoot = "put the root again"
    case addMember = "add a member"
    case raiseMember = "give another member more rights"
    case raiseSelf = "give themselves more rights"
    case removeMember = "remove another member"
    case leave = "leave"
    case lowerOwner = "lower the owner's rights"
    case removeOwner = "remove the owner"
    case rotate = "replace the branch's key"
    case split = "split off a branch"
    case retireOtherKey = "retire a key of another member"
    case end = "end the branch"

    /// Other than in the table, the nodes have content.
    var hasContent: Bool { [.createWithContent, .modify, .move, .modifyRoot].contains(self) }

    var isOfList: Bool {
      [.addMember, .raiseMember, .raiseSelf, .removeMember, .leave, .lowerOwner, .removeOwner, .rotate].contains(self)
    }
  }

  /// Changes that no client refuses: every member may retire an own key (``MemberAttackTests``).
  static let withoutRefusal: Set = ["retire an own key"]

  private let table: PermissionTable

  init() throws { table = try PermissionTable() }

  @Test func everyChangeOfTheTableIsTried() {
    #expect(Set(table.rows.keys) == Set(Change.allCases.map(\.rawValue)).union(Self.withoutRefusal))
    let members = Set(Role.allCases.filter(\.isMember).map(\.rawValue))
    for (change, cells) in table.rows {
      #expect(Set(cells.keys).subtracting(["owner", PermissionTable.codes]) == members, "\(change)")
    }
  }

  /// The error of a change that the role may not make; nil for one that it may make.
  private func code(_ change: Change, _ role: Role) -> String? {
    if role == .recordWriter, change.hasContent { return table.code(Change.createWithContent.rawValue) }
    if table.allows(change.rawValue, role.rawValue) { return nil }
    // A stranger, who is in no list, or a former member leaves.
    if change == .leave { return "aclNotAuthorized" }
    if change.isOfList { return table.code(change.rawValue) }
    // A device looks for the keys of members only.
    return role.isMember ? table.code(change.rawValue) : "writerUnknown"
  }

  @Test func aDeviceAppliesOnlyWhatARoleAllows() async throws {
    try await TestWorld.run { world in
      let stage = try await Stage(world)
      for role in Role.allCases {
        let base = try await stage.device(facing: role)
        let forger = try await stage.forger(role)
        for change in Change.allCases {
          // Only the record shows content, and it is read after the log.
          let isInRecord = role == .recordWriter && change.hasContent
          try await check(
            try forger.forge(change), code(change, role), "\(role) \(change)", isInRecord: isInRecord, on: base, stage)
          // Neither the key nor the head depends on the role.
          guard role == .sharer else { continue }
          let signed = try forger.signing(with: forger.zone.keys.signingKey).forge(change)
          try await check(signed, codeOfOtherKey(change), "signed by the owner: \(change)", on: base, stage)
          let late = try forger.following(forger.zone.commits.dropLast().last).forge(change)
          try await check(late, "zoneForkDetected", "after an old head: \(change)", on: base, stage)
        }
      }
    }
  }

  /// The error of a change that another user than its writer has signed.
  private func codeOfOtherKey(_ change: Change) -> String {
    // The rules of a list come before its signature.
    if [.lowerOwner, .removeOwner].contains(change) { return table.code(change.rawValue) }
    return change.isOfList && change != .rotate ? "aclSignatureInvalid" : "signatureInvalid"
  }

  private func check(
    _ forged: Forged, _ expected: String?, _ cell: Comment, isInRecord: Bool = false, on base: TestDevice,
    _ stage: Stage
  ) async throws {
    let hostile = HostileServer(stage.people.world.server)
    let device = try await TestDevice("twin", twinOf: base, through: hostile)
    let (before, seq) = (try await device.tree(), try await stage.seq(device))
    try forged.serve(from: hostile)
    // The second pull repeats what the first one has applied.
    for _ in 0..<(expected == nil ? 2 : 1) {
      do { try await device.pull() } catch {
        #expect((error as? ZDCSecurityError)?.code.description == expected, "\(cell): \(error)")
      }
    }
    #expect(hostile.liesTold > 0, cell)
    #expect(try await device.securityErrors() == (expected.map { [$0] } ?? []), cell)
    let last = try #require(forged.commits.last).fields.seq
    #expect(try await stage.seq(device) == (expected == nil || isInRecord ? last : seq), cell)
    if expected != nil { #expect(try await device.tree() == before, cell) }
    try await device.close()
  }
}

/// The commits of a change, and what they name.
private struct Forged {
  var commits: [ZoneCommit] = []
  var records: [NodeRecord] = []
  var list: ZoneACL?
  var grants: [Grant] = []

  /// Shows the commits after the log's head.
  func serve(from hostile: HostileServer) throws {
    let last = try #require(commits.last)
    var items = (list.map { [ServedItem($0)] } ?? []) + grants.map { ServedItem($0) }
    items += commits.map { ServedItem($0) } + records.map { ServedItem($0) }
    hostile.tell(.add(items, to: last.fields.zone))
    hostile.tell(.head(last.fields.zone, seq: last.fields.seq, hash: last.hash))
  }
}

/// A branch of Alice's, of which Bob is a member with each role in turn. Carol may read, and Dave is a stranger.
private final class Stage {
  typealias People = ListChangeTests.People

  let people: People
  private let dave: TestDevice
  private let branch: ZoneID
  /// Alice's second device, which is closed; nil before the first role.
  private var base: TestDevice?

  init(_ world: TestWorld) async throws {
    people = try await People(world)
    let alice = people.alice
    // A key can be retired if there is a newer one.
    try await people.carol.rotateKeys()
    dave = try await world.device("dave", account: "dave")
    try await alice.create("/list")
    try await alice.sync()
    try await alice.share("/list", with: people.carol, "r")
    try await alice.sync()
    // Nodes that exist before the branch is shared would have old keys.
    for path in ["/list/a", "/list/folder", "/list/folder/b"] { try await alice.create(path) }
    try await alice.sync()
    let root = try #require(NodeID(text: try await alice.cloudID("/list")))
    branch = ZoneID(tree: .derive(owner: try alice.userID, trunk: .home, appTreeID: TestDevice.treeID), root: root)
  }

  /// A closed device of Alice's that knows Bob's role.
  func device(facing role: MemberMatrixTests.Role) async throws -> TestDevice {
    let (alice, bob, world) = (people.alice, people.bob, people.world)
    if role.isMember { try await alice.share("/list", with: bob, role.rawValue) }
    if role == .former { try await alice.unshare("/list", with: bob) }
    try await alice.sync()
    let next: TestDevice
    if let base {
      next = try await TestDevice("second", twinOf: base)
    } else {
      next = try await TestDevice("second", server: world.server, clock: world.clock)
      try await next.login(words: try #require(world.words()))
    }
    try await next.sync()
    try await next.close()
    base = next
    return next
  }

  func forger(_ role: MemberMatrixTests.Role) async throws -> Forger {
    let (owner, carol) = (try await people.rogue("alice", people.alice), try await people.rogue("carol", people.carol))
    let (bob, stranger) = (try await people.rogue("bob", people.bob), try await people.rogue("dave", dave))
    let zone = try await owner.zone(branch)
    var members = [ZoneRotation.Member(user: carol.keys.userID, encPub: try await carol.encPub())]
    if role.isMember { members.append(.init(user: bob.keys.userID, encPub: try await bob.encPub())) }
    let keys = role == .stranger ? stranger.keys : bob.keys
    let rotation = try zone.rotation(encPub: try await owner.encPub(), members: members, by: keys)
    return Forger(
      zone: zone, keys: keys, reader: carol.keys.userID, newMember: stranger.keys.userID, rotation: rotation)
  }

  func seq(_ device: TestDevice) async throws -> UInt64? {
    try await device.database.read { [branch] in try $0.zones.zone(localUser: 1, branch)?.head?.seq }
  }
}

/// Writes the changes of one user as an authorised member would.
private struct Forger {
  /// The branch as its owner opens it.
  let zone: RogueZone
  /// The keys of the user who writes.
  let keys: UserKeys
  let reader: UserID
  let newMember: UserID
  let rotation: ZoneRotation
  /// The key that signs instead of the writer's.
  private var otherKey: SigningKey?
  /// The commit that the changes follow; nil for the head.
  private var previous: ZoneCommit?

  init(zone: RogueZone, keys: UserKeys, reader: UserID, newMember: UserID, rotation: ZoneRotation) {
    (self.zone, self.keys, self.reader, self.newMember, self.rotation) = (zone, keys, reader, newMember, rotation)
  }

  func signing(with key: SigningKey) -> Forger {
    var copy = self
    copy.otherKey = key
    return copy
  }

  func following(_ commit: ZoneCommit?) -> Forger {
    var copy = self
    copy.previous = commit
    return copy
  }

  func forge(_ change: MemberMatrixTests.Change) throws -> Forged {
    switch change {
    case .create: return try put(try draft(new: "new"))
    case .createBelow: return try put(try draft(new: "new", below: "folder"))
    case .createOwnChild: return try put(try ownChild())
    case .createWithContent: return try put(try draftWithContent())
    case .modify: return try put(try draft(next: "a"))
    case .move: return try put(try draft(next: "a", below: "folder"))
    case .modifyRoot: return try put(try nextRoot())
    case .delete: return try delete(try zone.node("a").record, 0)
    case .deleteBranch: return try delete(try zone.node("folder").record, 1)
    case .deleteOwn:
      let own = try put(try ownChild())
      let deletion = try delete(own.records[0], 0, after: own.commits[0])
      return Forged(commits: own.commits + deletion.commits, records: own.records)
    case .end: return try delete(zone.root.record, 0)
    case .split: return try split()
    case .retireOtherKey: return Forged(commits: [try commit([.retireKey(user: reader, gen: 2)])])
    case .rotate:
      return Forged(
        commits: [try commit(rotation.commit.fields.operations, list: rotation.acl)], records: [rotation.root],
        list: rotation.acl, grants: [rotation.grant])
    default: return try list(change)
    }
  }

  // MARK: Nodes

  private func commit(
    _ operations: [ZoneOperation], after previous: ZoneCommit? = nil, list: ZoneACL? = nil
  ) throws -> ZoneCommit {
    try zone.commit(operations, after: previous ?? self.previous, signedBy: otherKey ?? keys.signingKey) { fields in
      (fields.writer, fields.writerGen) = (keys.userID, keys.signGen)
      if let list { fields.aclHash = list.hash }
    }
  }

  private func put(_ draft: RecordDraft) throws -> Forged {
    let record = try RecordSealer.seal(draft)
    return Forged(commits: [try commit([.put(ZoneOperation.Put(record))])], records: [record])
  }

  private func written(_ draft: RecordDraft) -> RecordDraft {
    var draft = draft
    (draft.writer, draft.writerGen) = (keys.userID, keys.signGen)
    return draft
  }

  private func draft(new name: String, below parent: String = "") throws -> RecordDraft {
    written(try zone.draft(new: name, below: parent))
  }

  private func draft(next name: String, below parent: String = "") throws -> RecordDraft {
    written(try zone.draft(next: name, below: parent))
  }

  private func ownChild() throws -> RecordDraft {
    var draft = try draft(new: "own")
    draft.node = NodeID.child(of: zone.zone, for: keys.userID)
    return draft
  }

  private func draftWithContent() throws -> RecordDraft {
    var draft = try draft(new: "new")
    let other = try zone.draft(next: "a")
    (draft.content, draft.secrets.content) = (other.content, other.secrets.content)
    return draft
  }

  private func nextRoot() throws -> RecordDraft {
    var draft = try draft(next: "")
    (draft.parent, draft.parentLink, draft.isZoneRoot, draft.secrets.name) = (.zero, .none, true, [])
    return draft
  }

  private func delete(_ record: NodeRecord, _ descendants: UInt64, after previous: ZoneCommit? = nil) throws -> Forged {
    let operation = ZoneOperation.delete(
      node: record.fields.node, record: record.hash, liveDescendants: descendants)
    return Forged(commits: [try commit([operation], after: previous)])
  }

  private func split() throws -> Forged {
    let folder = try zone.node("folder").record.fields.node
    let (branch, genesis) = (ZoneID(tree: zone.zone.tree, root: folder), CommitHash(labelledHash: "forged"))
    var draft = try draft(new: "folder")
    draft.secrets.pointer = PointerTarget(
      owner: zone.keys.userID, zone: branch, node: folder, genesis: genesis, seq: 0, head: genesis)
    let mount = try RecordSealer.seal(draft)
    let operations: [ZoneOperation] = [
      .split(node: folder, genesis: genesis, count: 2), .put(ZoneOperation.Put(mount)),
    ]
    return Forged(commits: [try commit(operations)], records: [mount])
  }

  // MARK: Lists

  private func list(_ change: MemberMatrixTests.Change) throws -> Forged {
    let list = try zone.nextACL(signedBy: otherKey ?? keys.signingKey) { fields in
      (fields.writer, fields.writerGen) = (keys.userID, keys.signGen)
      edit(&fields, change)
    }
    let commit = try commit([.acl(version: list.fields.version, hash: list.hash)], list: list)
    return Forged(commits: [commit], list: list, grants: [zone.grant])
  }

  private func edit(_ fields: inout ZoneACL.Fields, _ change: MemberMatrixTests.Change) {
    switch change {
    case .addMember: add(newMember, to: &fields)
    case .raiseMember: set(reader, [.read, .write], in: &fields)
    case .raiseSelf where fields.entry(for: keys.userID) == nil: add(keys.userID, to: &fields)
    case .raiseSelf: set(keys.userID, [.read, .write, .share], in: &fields)
    case .removeMember: fields.entries.removeAll { $0.user == reader }
    case .leave: fields.entries.removeAll { $0.user == keys.userID }
    case .lowerOwner: set(fields.owner, [.read], in: &fields)
    default:
      let owner = fields.owner
      fields.entries.removeAll { $0.user == owner }
    }
  }

  private func set(_ user: UserID, _ permissions: ZoneACL.Permissions, in fields: inout ZoneACL.Fields) {
    for index in fields.entries.indices where fields.entries[index].user == user {
      fields.entries[index].permissions = permissions
    }
  }

  private func add(_ user: UserID, to fields: inout ZoneACL.Fields) {
    fields.entries.append(
      .init(user: user, permissions: [.read], encGen: 1, wrapKind: .nodeKey, wrapHash: zone.grant.wrapHash))
    fields.entries.sort { $0.user < $1.user }
  }
}
