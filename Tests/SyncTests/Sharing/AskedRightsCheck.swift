import ZDCClientStore
import ZDCProtocol
import ZeroDarkCloudTesting

/// The rights of members at the end of a random history, by what people asked for.
///
/// The log gives the order of the changes. Each may give and take only rights that its writer has asked for before, for
/// the branch or one around it. A branch that is split off begins with the members of the one around it.
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
  private let nodes: HistoryModel
  private var versions: [Version] = []
  /// The zones that their owner has ended: queued changes of their lists are dropped.
  private var ended: Set<ZoneID> = []
  /// The zone that a zone was split off from.
  private var outer: [ZoneID: ZoneID] = [:]
  /// The nodes that each node has been below, as the log and the people's actions have it.
  private var above: [String: Set<String>] = [:]

  /// - Parameter changes: the commits of all zones, in the server's order.
  init(users: [UserID], asks: [Ask], nodes: HistoryModel, changes: [RightsModel.Change]) {
    (self.users, self.asks, self.nodes) = (users, asks, nodes)
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
    try checkChanges()
    try checkEffects()
  }

  // MARK: Only what its writer has asked for

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

  // MARK: Everything that an owner has asked for

  /// Each change that an owner asks for takes effect, unless the same device asks for something else before, the zone
  /// ends, or the member whose rights it changes is removed first. Changes of members with `s` are not checked here: they
  /// may have lost that right.
  private func checkEffects() throws {
    for (index, ask) in asks.enumerated() where ask.isQueued {
      let list = versions.first { $0.list.zone.root.text == ask.cloudID }?.list
      guard let list, list.owner == users[ask.person], !ended.contains(list.zone) else { continue }
      let isReplaced = asks[(index + 1)...].contains { other in
        other.device == ask.device && other.member == ask.member && isAbout(other, list.zone)
      }
      guard !isReplaced, !hasEffect(ask, list.zone) else { continue }
      throw TestFailure("\(ask.device)'s change of \(name(users[ask.member])) in \(ask.cloudID) had no effect")
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

  private func name(_ user: UserID) -> String { users.firstIndex(of: user).map { "person \($0)" } ?? user.text }
}

extension AskedRights.Ask {
  /// Whether a member has what was asked for: in the branch, or in one inside of it.
  fileprivate func gives(_ rights: ZoneACL.Permissions?) -> Bool {
    guard let rights else { return permissions.isEmpty }
    return !permissions.isEmpty && [permissions, permissions.inherited].contains(rights)
  }
}
