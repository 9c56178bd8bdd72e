import ZDCClientStore
import ZDCProtocol
import ZeroDarkCloudTesting

/// The rights of members at the end of a random history, by what people asked for.
///
/// The log gives the order of the changes. Each may give and take only rights that its writer has asked for before, for
/// the branch or one around it. A branch that is split off begins with the members of the one around it.
///
/// Each change that a person asks for takes effect. Only those of members who may share can be prevented, by a loss of
/// that right or of access, and then the device has the reason.
struct AskedRightsCheck {
  typealias Permissions = ZoneACL.Permissions
  typealias Ask = AskedRights.Ask

  private struct Version {
    let position: AccessModel.Position
    let list: ZoneACL.Fields
  }

  /// The users by person.
  private let users: [UserID]
  private let asks: [Ask]
  private let unsent: UnsentListChanges
  private let nodes: HistoryModel
  private var versions: [Version] = []
  /// The zones that their owner has ended: queued changes of their lists are dropped.
  private var ended: Set<ZoneID> = []
  /// The zone that a zone was split off from.
  private var outer: [ZoneID: ZoneID] = [:]
  /// The nodes that each node has been below, as the log and the people's actions have it.
  private var above: [String: Set<String>] = [:]

  /// - Parameter changes: the commits of all zones, in the server's order.
  init(users: [UserID], asks: [Ask], unsent: UnsentListChanges, nodes: HistoryModel, changes: [RightsModel.Change]) {
    (self.users, self.asks, self.unsent, self.nodes) = (users, asks, unsent, nodes)
    var parents: [String: Set<String>] = [:]
    for change in changes {
      if let list = change.list, list.trunk == .home {
        versions.append(Version(position: change.position, list: list))
      }
      for operation in change.commit.operations { take(operation, in: change.commit.zone, &parents) }
    }
    above = nodes.nodesAbove(with: parents)
  }

  private mutating func take(_ operation: ZoneOperation, in zone: ZoneID, _ parents: inout [String: Set<String>]) {
    switch operation {
    case .put(let put): parents[put.node.text, default: []].insert(put.parent.text)
    case .split(let top, let genesis, _):
      outer[ZoneID(tree: zone.tree, root: top)] = zone
      // The branch is where its pointer is.
      parents[top.text, default: []].insert(NodeID.mount(ofZoneWith: genesis).text)
    case .delete(let node, _, _): if node == zone.root { ended.insert(zone) }
    case .acl, .retireKey, .genesisState: break
    }
  }

  /// Throws if the lists and what people asked for differ.
  func run() throws {
    try checkRoles()
    try checkChanges()
    try checkEffects()
  }

  // MARK: Only what its writer has asked for

  /// A device takes no change from a member who may not share, except that they leave.
  private func checkRoles() throws {
    for ask in asks where ask.role == .member && ask.member != ask.person {
      throw TestFailure("\(ask.device) asked for a change of \(ask.cloudID) without the right to share")
    }
  }

  private func checkChanges() throws {
    var rights: [ZoneID: [UserID: Permissions]] = [:]
    for version in versions {
      let zone = version.list.zone
      let inherited = outer[zone].flatMap { rights[$0] }?.mapValues(\.inherited)
      rights[zone] = try self.rights(after: rights[zone] ?? inherited ?? [:], version)
    }
  }

  /// Returns the rights of all members but the owner.
  private func rights(after before: [UserID: Permissions], _ version: Version) throws -> [UserID: Permissions] {
    var rights = before
    let list = version.list
    for user in Set(before.keys).union(list.entries.map(\.user)).sorted() where user != list.owner {
      let now = list.entry(for: user)?.permissions
      guard now != before[user] else { continue }
      guard isAsked(now, for: user, version) else {
        let text = now.map { "the rights \($0.rawValue)" } ?? "no rights"
        throw TestFailure("version \(list.version) of \(list.zone.root.text) gives \(name(user)) \(text), unasked")
      }
      rights[user] = now
    }
    return rights
  }

  private func isAsked(_ permissions: Permissions?, for user: UserID, _ version: Version) -> Bool {
    // A member leaves also because the place of their graft is gone.
    if permissions == nil, user == version.list.writer { return true }
    return asks.contains { ask in
      users[ask.person] == version.list.writer && users[ask.member] == user && ask.position < version.position
        && ask.gives(permissions) && isAbout(ask, version.list.zone)
    }
  }

  /// Whether the ask was for the zone, or for a node that it has been below.
  private func isAbout(_ ask: Ask, _ zone: ZoneID) -> Bool {
    let tops = Set([ask.node, ask.cloudID].map { nodes.firstName(of: $0) })
    var seen: Set<String> = []
    var next = [nodes.firstName(of: zone.root.text)]
    while let name = next.popLast() {
      if tops.contains(name) { return true }
      if seen.insert(name).inserted { next += above[name] ?? [] }
    }
    return false
  }

  // MARK: Everything that people have asked for

  /// Each change takes effect, unless the same device asks for something else before, the zone ends, or the member
  /// whose rights it changes is removed first. One of a member who may share may also have a reason not to be sent.
  private func checkEffects() throws {
    for (index, ask) in asks.enumerated() where ask.isQueued {
      let list = versions.last { $0.list.zone.root.text == ask.cloudID }?.list
      guard let list, !ended.contains(list.zone), !isReplaced(index, in: list.zone), !hasEffect(ask, list.zone),
        !mayBeUnsent(index, list)
      else { continue }
      throw TestFailure("\(ask.device)'s change of \(name(users[ask.member])) in \(ask.cloudID) had no effect")
    }
  }

  /// Whether the same device asks for something else for the same member later. The last change of an entry counts.
  private func isReplaced(_ index: Int, in zone: ZoneID) -> Bool {
    let ask = asks[index]
    return asks[(index + 1)...].contains { other in
      other.device == ask.device && other.member == ask.member && isAbout(other, zone)
    }
  }

  private func hasEffect(_ ask: Ask, _ zone: ZoneID) -> Bool {
    let rights = rights(of: users[ask.member], in: zone, since: ask.position)
    return rights.contains { ask.gives($0) } || ask.wasMember && rights.contains(nil)
  }

  /// Returns the rights that a user has had in a zone since a position. Before it was split off, it was in another one.
  private func rights(of user: UserID, in zone: ZoneID, since position: AccessModel.Position) -> [Permissions?] {
    let lists = versions.filter { $0.list.zone == zone }
    let first = lists.lastIndex { $0.position <= position }
    let own = lists[(first ?? 0)...].map { $0.list.entry(for: user)?.permissions }
    guard first == nil, let around = outer[zone] else { return own }
    return own + rights(of: user, in: around, since: position)
  }

  // MARK: What may prevent the change of a member

  private func mayBeUnsent(_ index: Int, _ list: ZoneACL.Fields) -> Bool {
    let ask = asks[index]
    if hasDeleted(index) { return true }
    guard list.owner != users[ask.person] else { return false }
    // The person has moved the node into their own tree, but its owner has shared it before, and so it stays there.
    guard ask.role != .owner else { return true }
    return isDisallowed(ask, list) || hasLeft(index) || hasLostAccess(ask, list.zone)
  }

  /// Whether the same device has deleted the node since, with what was queued for it. Another device may have restored it.
  private func hasDeleted(_ index: Int) -> Bool {
    unsent.departures.contains { departure in
      departure.device == asks[index].device && departure.askCount > index
        && departure.cloudIDs.contains(asks[index].cloudID)
    }
  }

  /// Whether the change still waits, and the newest list does not allow it: the person may not share any more.
  private func isDisallowed(_ ask: Ask, _ list: ZoneACL.Fields) -> Bool {
    let (user, member) = (users[ask.person], users[ask.member])
    let change: ListChange = ask.permissions.isEmpty ? .remove(member) : .set(member, ask.permissions)
    let waiting = UnsentListChanges.Waiting(device: ask.device, cloudID: ask.cloudID, member: member)
    return unsent.waiting.contains(waiting) && !list.allows(change, by: user)
  }

  /// Whether the person has deleted the branch from their tree, which drops what was not sent. A device may ask for a
  /// change before it reads that another one has done that. If the person returns before their removal is sent, the
  /// list is never without them.
  private func hasLeft(_ index: Int) -> Bool {
    let ask = asks[index]
    return unsent.departures.contains { departure in
      departure.person == ask.person && departure.cloudIDs.contains(ask.cloudID)
        && (departure.device != ask.device || departure.askCount > index)
    }
  }

  /// Whether the person had no access at some time since, and the device's merge journal has the dropped changes.
  private func hasLostAccess(_ ask: Ask, _ zone: ZoneID) -> Bool {
    rights(of: users[ask.person], in: zone, since: ask.position).contains(nil)
      && unsent.lost[ask.device]?.contains(ask.cloudID) ?? false
  }

  private func name(_ user: UserID) -> String { users.firstIndex(of: user).map { "person \($0)" } ?? user.text }
}

extension AskedRights.Ask {
  /// Whether a member has what was asked for: in the branch, or in one inside of it.
  fileprivate func gives(_ rights: ZoneACL.Permissions?) -> Bool {
    guard let rights else { return permissions.isEmpty }
    return !permissions.isEmpty && [permissions, permissions.inherited].contains(rights)
  }
}
