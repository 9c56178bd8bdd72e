import Testing
import ZDCProtocol

/// The check of rights finds each change of a list that its writer did not ask for, and what people asked for in vain.
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

  // MARK: What a member who may share has asked for

  /// The owner gives person 2 the right to share. Person 2 then asks for rights of person 1.
  private static var sharersAsk: [Ask] { [ask(for: 2, sharer, at: 1), ask(2, for: 1, [.read], at: 2)] }
  private static var sharersLists: [Change] { [change(1, [:]), change(2, [2: sharer])] }

  @Test func whatASharerAskedForHasAnEffect_unlessTheyAskedForSomethingElse() {
    let (asks, lists) = (Self.sharersAsk, Self.sharersLists)
    #expect(Self.isAsked(asks, lists + [Self.change(3, by: 2, [1: [.read], 2: Self.sharer])]))
    #expect(!Self.isAsked(asks, lists))
    #expect(Self.isAsked(asks + [Self.ask(2, for: 1, [], at: 2, isQueued: false)], lists))
    #expect(!Self.isAsked(asks + [Self.ask(for: 1, [], at: 2, isQueued: false)], lists))
    let end = ZoneOperation.delete(node: Self.branch.root, record: .zero, liveDescendants: 0)
    #expect(Self.isAsked(asks, lists + [Self.change(3, [2: Self.sharer], [end])]))
  }

  @Test func aSharerWhoMayNotShareAnyMore_hasTheChangeInTheQueue() {
    let asks = Self.sharersAsk + [Self.ask(for: 2, [.read, .write], at: 2)]
    let lists = Self.sharersLists + [Self.change(3, [2: [.read, .write]])]
    let wait = Self.waiting("device 2", for: 1)
    #expect(Self.isAsked(asks, lists, wait))
    #expect(!Self.isAsked(asks, lists))
    #expect(!Self.isAsked(asks, lists, Self.waiting("device 2", for: 0)))
    #expect(!Self.isAsked(asks, lists, Self.waiting("device 1", for: 1)))
    // A change that the newest list allows must not wait.
    #expect(!Self.isAsked(Self.sharersAsk, Self.sharersLists, wait))
    let regained = [Self.ask(for: 2, Self.sharer, at: 3)]
    #expect(!Self.isAsked(asks + regained, lists + [Self.change(4, [2: Self.sharer])], wait))
  }

  @Test func aSharerWhoLosesAccess_hasTheChangeInTheJournal() {
    let asks = Self.sharersAsk + [Self.ask(for: 2, [], at: 2)]
    let lists = Self.sharersLists + [Self.change(3, [:])]
    let lost = UnsentListChanges(lost: ["device 2": [Self.branch.root.text]])
    #expect(Self.isAsked(asks, lists, lost))
    #expect(!Self.isAsked(asks, lists))
    #expect(!Self.isAsked(asks, lists, UnsentListChanges(lost: ["device 2": [Self.inner.root.text]])))
    #expect(!Self.isAsked(asks, lists, UnsentListChanges(lost: ["device 1": [Self.branch.root.text]])))
    #expect(!Self.isAsked(Self.sharersAsk, Self.sharersLists, lost))
  }

  @Test func aSharerWhoLeaves_dropsTheChange() {
    let (asks, lists) = (Self.sharersAsk, Self.sharersLists)
    #expect(Self.isAsked(asks, lists, Self.departure("device 2", after: 2)))
    #expect(!Self.isAsked(asks, lists, Self.departure("device 2", after: 1)))
    #expect(Self.isAsked(asks, lists, Self.departure("another device", after: 1)))
    #expect(!Self.isAsked(asks, lists, Self.departure("device 2", after: 2, from: Self.inner)))
    #expect(!Self.isAsked(asks, lists, Self.departure("device 1", of: 1, after: 2)))
  }

  /// Another device of the owner has put the node there again.
  @Test func anOwnerWhoDeletesTheNode_dropsTheChange() {
    let (asks, lists) = ([Self.ask(for: 1, [.read], at: 1)], [Self.change(1, [:])])
    #expect(!Self.isAsked(asks, lists))
    #expect(Self.isAsked(asks, lists, Self.departure("device 0", of: 0, after: 1)))
    #expect(!Self.isAsked(asks, lists, Self.departure("device 0", of: 0, after: 0)))
    #expect(!Self.isAsked(asks, lists, Self.departure("another device", of: 0, after: 1)))
  }

  @Test func onlyAMemberWhoMayShareAsks() {
    let lists = Self.sharersLists + [Self.change(3, by: 2, [1: [.read], 2: Self.sharer])]
    let first = [Self.ask(for: 2, Self.sharer, at: 1)]
    #expect(Self.isAsked(first + [Self.ask(2, as: .sharer, for: 1, [.read], at: 2)], lists))
    #expect(!Self.isAsked(first + [Self.ask(2, as: .member, for: 1, [.read], at: 2)], lists))
    // A node that the person has moved into their own tree, where they may share all.
    #expect(Self.isAsked(first + [Self.ask(2, as: .owner, for: 1, [.read], at: 2)], Self.sharersLists))
  }

  // MARK: Logs

  private static func isAsked(
    _ asks: [Ask], _ changes: [Change], _ unsent: UnsentListChanges = UnsentListChanges()
  ) -> Bool {
    let check = AskedRightsCheck(users: users, asks: asks, unsent: unsent, nodes: HistoryModel(), changes: changes)
    do {
      try check.run()
      return true
    } catch { return false }
  }

  /// - Parameter role: The person's role in the branch of person 0; nil for one who may change its list.
  private static func ask(
    _ person: Int = 0, as role: AskedRights.Role? = nil, for member: Int, _ permissions: Permissions,
    at position: Int64, isQueued: Bool = true
  ) -> Ask {
    Ask(
      device: "device \(person)", person: person, role: role ?? (person == 0 ? .owner : .sharer), member: member,
      permissions: permissions, node: branch.root.text, cloudID: branch.root.text, position: position,
      wasMember: false, isQueued: isQueued)
  }

  private static func waiting(_ device: String, for member: Int) -> UnsentListChanges {
    UnsentListChanges(waiting: [
      UnsentListChanges.Waiting(device: device, cloudID: branch.root.text, member: users[member])
    ])
  }

  private static func departure(
    _ device: String, of person: Int = 2, after askCount: Int, from zone: ZoneID = branch
  ) -> UnsentListChanges {
    UnsentListChanges(departures: [
      UnsentListChanges.Departure(
        device: device, person: person, cloudIDs: [zone.root.text], askCount: askCount)
    ])
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
