import Testing
import ZDCProtocol

/// The model of rights finds each change that a member may not make. Expected values are from the table of PROTOCOL 3.9.
@Suite struct RightsModelTests {
  typealias Permissions = ZoneACL.Permissions

  /// A change in a branch with these nodes: the owner's folder, with a node of the owner and one of the member in it; a node
  /// of each at the top; and the node that the right `U` allows.
  enum Action: CaseIterable {
    case createAtTop, createInFolder, changeAtTop, changeInFolder, moveToTop, moveIntoFolder, changeOwnChild
    case deleteAtTop, deleteInFolder, deleteOwnAtTop, deleteOwnInFolder, deleteOwnChild, deleteFolder, split
  }

  struct Row: CustomTestStringConvertible {
    let name: String
    let permissions: Permissions
    let allowed: Set<Action>
    var testDescription: String { name }

    init(_ name: String, _ permissions: Permissions, _ allowed: Set<Action>) {
      (self.name, self.permissions, self.allowed) = (name, permissions, allowed)
    }
  }

  static let all = Set(Action.allCases).subtracting([.split])
  static let table = [
    Row("r", [.read], []),
    Row("rw", [.read, .write], all),
    Row("rws", [.read, .write, .share], all),
    Row("rwR", [.read, .write, .recordsOnly], all),
    Row("rwW", [.read, .write, .writeOnce], [.createAtTop, .createInFolder]),
    Row(
      "rwWB", [.read, .write, .writeOnce, .burnIfSender],
      [.createAtTop, .createInFolder, .deleteOwnAtTop, .deleteOwnInFolder]),
    Row(
      "rwL", [.read, .write, .leafsOnly],
      [.createAtTop, .changeAtTop, .changeOwnChild, .deleteAtTop, .deleteOwnAtTop, .deleteOwnChild]),
    Row("rwLW", [.read, .write, .leafsOnly, .writeOnce], [.createAtTop]),
    Row("rwLWB", [.read, .write, .leafsOnly, .writeOnce, .burnIfSender], [.createAtTop, .deleteOwnAtTop]),
    Row("rwU", [.read, .write, .userOnly], [.changeOwnChild, .deleteOwnChild]),
    Row("rwUW", [.read, .write, .userOnly, .writeOnce], []),
    Row("rwUL", [.read, .write, .userOnly, .leafsOnly], [.changeOwnChild, .deleteOwnChild]),
  ]

  @Test(arguments: table) func aMembersChanges(row: Row) {
    for action in Action.allCases {
      var branch = Branch(member: row.permissions)
      branch.add(action, by: Branch.member)
      #expect(branch.isWithinRights == row.allowed.contains(action), "\(action)")
    }
  }

  @Test(arguments: Action.allCases) func theOwnerMayDoAll(action: Action) {
    var branch = Branch(member: [.read])
    branch.add(action, by: Branch.owner)
    #expect(branch.isWithinRights)
  }

  @Test(arguments: Action.allCases) func aStrangerMayDoNothing(action: Action) {
    var branch = Branch(member: [.read])
    branch.add(action, by: UserID(0, 0, 0, 3))
    #expect(!branch.isWithinRights)
  }
}

/// The log of a branch.
private struct Branch {
  static let owner = UserID(0, 0, 0, 1)
  static let member = UserID(0, 0, 0, 2)
  static let zone = ZoneID(tree: TreeID(0, 0, 0, 9), root: node(0))
  static let ownChild = NodeID.child(of: zone, for: member)
  static let (folder, inFolder, atTop, ownAtTop, ownInFolder, new) = (
    node(1), node(2), node(3), node(4), node(5), node(6)
  )

  private var changes: [RightsModel.Change] = []

  /// A branch whose member wrote freely before their permissions were narrowed.
  init(member permissions: ZoneACL.Permissions) {
    add(by: Self.owner, [Self.put(Self.zone.root, .zero)], list: Self.list([.read, .write]))
    let nodes = [(Self.folder, Self.zone.root), (Self.inFolder, Self.folder), (Self.atTop, Self.zone.root)]
    add(by: Self.owner, (nodes + [(Self.ownChild, Self.zone.root)]).map(Self.put))
    add(by: Self.member, [Self.put(Self.ownAtTop, Self.zone.root), Self.put(Self.ownInFolder, Self.folder)])
    add(by: Self.owner, [.acl(version: 2, hash: .zero)], list: Self.list(permissions))
  }

  var isWithinRights: Bool {
    do {
      try RightsModel(changes).check()
      return true
    } catch { return false }
  }

  mutating func add(_ action: RightsModelTests.Action, by writer: UserID) { add(by: writer, [Self.operation(action)]) }

  private mutating func add(by writer: UserID, _ operations: [ZoneOperation], list: ZoneACL.Fields? = nil) {
    let commit = ZoneCommit.Fields(
      zone: Self.zone, seq: UInt64(changes.count), prev: .zero, aclHash: .zero, writer: writer, writerGen: 1, timeMs: 0,
      operations: operations)
    changes.append(RightsModel.Change(position: Int64(changes.count), commit: commit, list: list))
  }

  private static func operation(_ action: RightsModelTests.Action) -> ZoneOperation {
    switch action {
    case .createAtTop: put(new, zone.root)
    case .createInFolder: put(new, folder)
    case .changeAtTop: put(atTop, zone.root)
    case .changeInFolder: put(inFolder, folder)
    case .moveToTop: put(inFolder, zone.root)
    case .moveIntoFolder: put(atTop, folder)
    case .changeOwnChild: put(ownChild, zone.root)
    case .deleteAtTop: delete(atTop)
    case .deleteInFolder: delete(inFolder)
    case .deleteOwnAtTop: delete(ownAtTop)
    case .deleteOwnInFolder: delete(ownInFolder)
    case .deleteOwnChild: delete(ownChild)
    case .deleteFolder: .delete(node: folder, record: .zero, liveDescendants: 2)
    case .split: .split(node: folder, genesis: .zero, count: 3)
    }
  }

  private static func node(_ number: UInt64) -> NodeID { NodeID(high: 1, low: number) }

  private static func put(_ node: NodeID, _ parent: NodeID) -> ZoneOperation {
    .put(ZoneOperation.Put(node: node, parent: parent, record: .zero, keyGen: 1, parentKeyGen: 1))
  }

  private static func delete(_ node: NodeID) -> ZoneOperation { .delete(node: node, record: .zero, liveDescendants: 0) }

  private static func list(_ permissions: ZoneACL.Permissions) -> ZoneACL.Fields {
    let members: [(UserID, ZoneACL.Permissions)] = [(owner, [.read, .write, .share]), (member, permissions)]
    let entries = members.map { user, permissions in
      ZoneACL.Entry(user: user, permissions: permissions, encGen: 1, wrapKind: .nodeKey, wrapHash: .zero)
    }
    return ZoneACL.Fields(
      zone: zone, owner: owner, trunk: .home, appTreeID: "app", version: 1, prev: .zero, parentLinked: false,
      zoneKeyGen: 1, commitments: NodeRecord.ZoneCommitments(node: .zero, content: .zero), entries: entries,
      writer: owner,
      writerGen: 1, timeMs: 0)
  }
}
