import Foundation
import Testing
import ZDCCrypto
import ZDCProtocol
import ZeroDarkCloudTesting

@testable import ZDCSync
@testable import ZeroDarkCloud

/// Permissions in a shared branch, behind a server that accepts everything: each role, each change, also signed by
/// another user, and after an old head. The owner's device applies what the role allows, and nothing else: the owner's
/// signature, too, allows only what the table says.
///
/// `PermissionMatrixTests` has the same table for the server, with one more variant: another member's session. A device
/// has none of it. It reads the commits of all members with its own user's session, and never learns which session sent
/// a commit: its writer is the one that it names and whose key has signed it.
struct MemberMatrixTests {
  /// Named by their rights, as in the table of SECURITY.md.
  enum Role: String, CaseIterable {
    case owner, stranger
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
    /// Whether the branch's list gives Bob the role.
    var isOfBob: Bool { isMember && self != .owner }
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
    case retireOwnKey = "retire an own key"
    case retireOtherKey = "retire a key of another member"
    case end = "end the branch"

    /// Other than in the table, the nodes have content.
    var hasContent: Bool { [.createWithContent, .modify, .move, .modifyRoot].contains(self) }

    var isOfList: Bool {
      [.addMember, .raiseMember, .raiseSelf, .removeMember, .leave, .lowerOwner, .removeOwner, .rotate].contains(self)
    }
  }

  private let table: PermissionTable

  init() throws { table = try PermissionTable() }

  @Test func everyChangeOfTheTableIsTried() {
    #expect(Set(table.rows.keys) == Set(Change.allCases.map(\.rawValue)))
    let members = Set(Role.allCases.filter(\.isMember).map(\.rawValue))
    for (change, cells) in table.rows {
      #expect(Set(cells.keys).subtracting([PermissionTable.codes]) == members, "\(change)")
    }
  }

  /// The error of a change that the role may not make; nil for one that it may make.
  private func code(_ change: Change, _ role: Role) -> String? {
    if role == .recordWriter, change.hasContent { return table.code(Change.createWithContent.rawValue) }
    if table.allows(change.rawValue, role.rawValue) { return nil }
    // A stranger, who is in no list, or a former member leaves.
    if change == .leave, !role.isMember { return "aclNotAuthorized" }
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
          let signed = try forger.signingWithOtherKey().forge(change)
          let late = try forger.following(forger.zone.commits.dropLast().last).forge(change)
          try checkReplay(of: signed, late, change, role, forger)
          guard role == .sharer || Self.triedByAll.contains(change) else { continue }
          try await check(
            signed, codeOfOtherKey(change, role), "\(role), signed by another user: \(change)", on: base, stage)
          try await check(late, "zoneForkDetected", "\(role), after an old head: \(change)", on: base, stage)
        }
      }
    }
  }

  // MARK: Another key, and an old head

  /// A change of nodes and one of the list. A device is shown these with another key and after an old head by members
  /// of all roles, and the other changes by one of them, because the result cannot depend on the role. A device
  /// compares the head with its own before it reads commits. Replay verifies the signature before it looks at the
  /// writer's rights and at nodes, except that the rules of a list come first. `checkReplay` tests that for all roles
  /// and changes.
  private static let triedByAll: Set<Change> = [.create, .addMember]

  private func checkReplay(
    of signed: Forged, _ late: Forged, _ change: Change, _ role: Role, _ forger: Forger
  ) throws {
    #expect(
      try forger.earlyRefusal(of: signed) == codeOfOtherKey(change, role),
      "\(role), signed by another user: \(change)")
    #expect(
      try forger.earlyRefusal(of: late) == "commitChainBroken", "\(role), after an old head: \(change)")
  }

  /// The error of a change that another user than its writer has signed.
  private func codeOfOtherKey(_ change: Change, _ role: Role) -> String {
    guard change.isOfList else { return role.isMember ? "signatureInvalid" : "writerUnknown" }
    if let code = code(change, role) { return code }
    // The list of a rotation has the writer's own signature, and its commit has not.
    return change == .rotate ? "signatureInvalid" : "aclSignatureInvalid"
  }

  private func check(
    _ forged: Forged, _ expected: String?, _ cell: Comment, isInRecord: Bool = false, on base: TestDevice,
    _ stage: Stage
  ) async throws {
    let hostile = HostileServer(stage.people.world.server)
    let device = try await TestDevice("twin", twinOf: base, through: hostile)
    let (before, seq) = (try await device.tree(), try await stage.seq(device))
    try forged.serve(from: hostile)
    // The second pull repeats what the first one has applied. The real server would list a zone that was ended, and
    // not one that was split off.
    for _ in 0..<(expected == nil && !forged.changesZones ? 2 : 1) {
      do { try await device.pull() } catch {
        #expect((error as? ZDCSecurityError)?.code.description == expected, "\(cell): \(error)")
      }
    }
    #expect(hostile.liesTold > 0, cell)
    #expect(try await device.securityErrors() == (expected.map { [$0] } ?? []), cell)
    let last = try #require(forged.commits.last).fields.seq
    if expected == nil, forged.endsZone {
      #expect(try await device.tree() == "", cell)
    } else {
      #expect(try await stage.seq(device) == (expected == nil || isInRecord ? last : seq), cell)
    }
    if expected != nil { #expect(try await device.tree() == before, cell) }
    try await device.close()
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
    for device in [alice, people.bob, people.carol] { try await device.rotateKeys() }
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
    if role.isOfBob { try await alice.share("/list", with: bob, role.rawValue) }
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

  func forger(_ role: MemberMatrixTests.Role) async throws -> MemberMatrixTests.Forger {
    let (owner, carol) = (try await people.rogue("alice", people.alice), try await people.rogue("carol", people.carol))
    let (bob, stranger) = (try await people.rogue("bob", people.bob), try await people.rogue("dave", dave))
    let zone = try await owner.zone(branch)
    var members = [ZoneRotation.Member(user: carol.keys.userID, encPub: try await carol.encPub())]
    if role.isOfBob { members.append(.init(user: bob.keys.userID, encPub: try await bob.encPub())) }
    let keys =
      switch role {
      case .owner: owner.keys
      case .stranger: stranger.keys
      default: bob.keys
      }
    let known = [owner.keys, carol.keys] + (role.isOfBob ? [bob.keys] : [])
    let rotation = try zone.rotation(encPub: try await owner.encPub(), members: members, by: keys)
    let split = role == .owner ? try await ForgedSplit("folder", in: zone, of: people.alice, owner) : nil
    return MemberMatrixTests.Forger(
      zone: zone, keys: keys, otherKey: role == .owner ? carol.keys.signingKey : owner.keys.signingKey,
      reader: carol.keys.userID, newMember: stranger.keys.userID, rotation: rotation, split: split,
      members: MemberMatrixTests.MemberKeys(members: known))
  }

  func seq(_ device: TestDevice) async throws -> UInt64? {
    try await device.database.read { [branch] in try $0.zones.zone(localUser: 1, branch)?.head?.seq }
  }
}
