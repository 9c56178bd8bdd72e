import Testing
import ZDCProtocol

/// The check of rights finds each change of a list that its writer did not ask for, and what an owner asked for in
/// vain.
@Suite struct AskedRightsTests {
  typealias Permissions = ZoneACL.Permissions
  typealias Ask = AskedRights.Ask
  typealias Change = RightsModel.Change

  /// The owner of the branch, and two others.
  private static let users = [UserID(0, 0, 0, 1), UserID(0, 0, 0, 2), UserID(0, 0, 0, 3)]
  private static let tree = TreeID(0, 0, 0, 9)
  private static let branch = ZoneID(tree: tree, root: NodeID(high: 1, low: 1))
  private static let inner = ZoneID(tree: tree, root: NodeID(high: 1, low: 2))
  private static let sharer: Permissions = [.read, .write, .share]

  @Test func aMemberHasWhatTheOwnerAskedFor() {
    let begin = Self.change(1, [:])
    let ask = Self.ask(for: 1, [.read, .write], at: 1)
    #expect(Self.isAsked([ask], [begin, Self.change(2, [1: [.read, .write]])]))
    #expect(!Self.isAsked([], [begin, Self.change(2, [1: [.read, .write]])]))
    #expect(!Self.isAsked([ask], [begin, Self.change(2, [1: [.read, .write], 2: [.read]])]))
    #expect(!Self.isAsked([Self.ask(for: 1, [.read], at: 1)], [begin, Self.change(2, [1: [.read, .write]])]))
    #expect(!Self.isAsked([Self.ask(for: 1, [.read, .write], at: 2)], [begin, Self.change(2, [1: [.read, .write]])]))
  }

  @Test func aMemberIsRemovedByWhoAskedForIt_orLeaves() {
    let asks = [Self.ask(for: 1, [.read], at: 1), Self.ask(for: 2, Self.sharer, at: 1)]
    let lists = [Self.change(1, [:]), Self.change(2, [1: [.read], 2: Self.sharer])]
    let removal = Self.ask(2, for: 1, [], at: 2)
    #expect(Self.isAsked(asks + [removal], lists + [Self.change(3, by: 2, [2: Self.sharer])]))
    #expect(!Self.isAsked(asks + [removal], lists + [Self.change(3, by: 0, [2: Self.sharer])]))
    #expect(!Self.isAsked(asks, lists + [Self.change(3, by: 2, [2: Self.sharer])]))
    #expect(Self.isAsked(asks, lists + [Self.change(3, by: 1, [2: Self.sharer])]))
  }

  @Test func aBranchBeginsWithTheMembersOfTheOneAroundIt() {
    let asks = [Self.ask(for: 1, [.read, .write, .leafsOnly], at: 1)]
    let members: [Int: Permissions] = [1: [.read, .write, .leafsOnly]]
    let split = ZoneOperation.split(node: Self.inner.root, genesis: .zero, count: 1)
    let lists = [Self.change(1, [:]), Self.change(2, members), Self.change(3, members, [split])]
    #expect(Self.isAsked(asks, lists + [Self.change(4, in: Self.inner, [1: [.read]])]))
    #expect(!Self.isAsked(asks, lists + [Self.change(4, in: Self.inner, [1: [.read, .write]])]))
    #expect(!Self.isAsked(asks, lists + [Self.change(4, in: Self.inner, [:])]))
  }

  @Test func whatAnOwnerAskedForHasAnEffect_unlessTheyAskedForSomethingElse() {
    let (begin, ask) = (Self.change(1, [:]), Self.ask(for: 1, [.read], at: 1))
    #expect(!Self.isAsked([ask], [begin]))
    #expect(Self.isAsked([ask, Self.ask(for: 1, [], at: 1, isQueued: false)], [begin]))
    #expect(!Self.isAsked([ask, Self.ask(for: 2, [], at: 1, isQueued: false)], [begin]))
    let end = ZoneOperation.delete(node: Self.branch.root, record: .zero, liveDescendants: 0)
    #expect(Self.isAsked([ask], [begin, Self.change(2, [:], [end])]))
  }

  // MARK: Logs

  private static func isAsked(_ asks: [Ask], _ changes: [Change]) -> Bool {
    do {
      try AskedRightsCheck(users: users, asks: asks, nodes: HistoryModel(), changes: changes).run()
      return true
    } catch { return false }
  }

  private static func ask(
    _ person: Int = 0, for member: Int, _ permissions: Permissions, at position: Int64, isQueued: Bool = true
  ) -> Ask {
    Ask(
      device: "device \(person)", person: person, member: member, permissions: permissions, node: branch.root.text,
      cloudID: branch.root.text, position: position, wasMember: false, isQueued: isQueued)
  }

  /// A commit with a list that has the owner and these members.
  private static func change(
    _ position: Int64, in zone: ZoneID = branch, by writer: Int = 0, _ members: [Int: Permissions],
    _ operations: [ZoneOperation] = []
  ) -> Change {
    var all = members
    all[0] = sharer
    let entries = all.sorted { $0.key < $1.key }.map { person, permissions in
      ZoneACL.Entry(
        user: users[person], permissions: permissions, encGen: 1, wrapKind: .nodeKey, wrapHash: .zero)
    }
    let list = ZoneACL.Fields(
      zone: zone, owner: users[0], trunk: .home, appTreeID: "app", version: UInt32(position), prev: .zero,
      parentLinked: false, zoneKeyGen: 1, commitments: NodeRecord.ZoneCommitments(node: .zero, content: .zero),
      entries: entries, writer: users[writer], writerGen: 1, timeMs: 0)
    let commit = ZoneCommit.Fields(
      zone: zone, seq: UInt64(position), prev: .zero, aclHash: .zero, writer: users[writer], writerGen: 1, timeMs: 0,
      operations: operations)
    return Change(position: position, commit: commit, list: list)
  }
}
