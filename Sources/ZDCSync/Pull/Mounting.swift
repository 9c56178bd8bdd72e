internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport

/// Decides which zone is shown in place of a pointer.
///
/// A pointer is followed to a zone that this device follows already, because its user owns it or has accepted it. If the
/// user has put it into their own tree, it is the acceptance (G-3): a pointer of another member makes this device fetch
/// nothing. A zone is shown in one place, and never inside of itself (``MountStore``).
struct Mounting {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction

  /// Returns the zone to show in place of a pointer; nil if the row is no pointer, or is shown as it is.
  func zone(for row: NodeRow) throws -> Int64? {
    guard let target = row.pointer, target.node == target.zone.root, let zone = try zone(target, row),
      row.zone != zone.id, try isTarget(zone, target), try isFree(zone, for: row, target)
    else { return nil }
    return zone.id
  }

  /// Whether there is no other pointer to the zone, or this one precedes it. The order in which pointers are read differs
  /// between devices, so it must not decide.
  private func isFree(_ zone: ZoneRow, for row: NodeRow, _ target: PointerTarget) throws -> Bool {
    guard let id = try transaction.mounts.choice(ofZone: zone.id), let current = try transaction.nodes.node(id: id)
    else { return true }
    // A graft that was not sent yet is one, too.
    guard try transaction.grafts.pointer(toZone: zone.id) == nil else { return false }
    return try rank(of: row, target) < rank(of: current, target)
  }

  /// Smaller ranks precede. A rank does not change while the pointer is there, so all devices choose the same one.
  ///
  /// The user's own graft is the first. It is followed by the owner's pointers: the one that the split has left, and one that
  /// takes its place in the tree's trunk. Members of a branch alone can put only the others, whatever IDs they choose.
  private func rank(of row: NodeRow, _ target: PointerTarget) throws -> (kind: Int, place: ZoneID, node: NodeID) {
    guard let place = try transaction.zones.zone(id: row.zone) else { return (4, target.zone, row.nodeID) }
    let isSameTree = place.zone.tree == target.zone.tree
    let isOfOwner = [try isGraft(row, target), isSameTree && row.isMount(of: target), isSameTree && place.isTrunk]
    return (isOfOwner.firstIndex(of: true) ?? (isSameTree ? 3 : 4), place.zone, row.nodeID)
  }

  private func zone(_ target: PointerTarget, _ row: NodeRow) throws -> ZoneRow? {
    let known = try transaction.zones.zone(localUser: session.localUser, target.zone)
    if let known, try !transaction.grafts.isLeft(zone: known.id) { return known }
    guard try isGraft(row, target) else { return nil }
    let change = GraftChange(transaction, localUser: session.localUser, user: session.user)
    guard let id = try change.follow(target, appTreeID: session.appTreeID) else { return nil }
    transaction.afterCommit { [session] in session.newZones.withLock { _ = $0.insert(id) } }
    return try transaction.zones.zone(id: id)
  }

  /// Whether the user has put the pointer into their own home tree, and it names a branch of another user's.
  private func isGraft(_ row: NodeRow, _ target: PointerTarget) throws -> Bool {
    guard let place = try transaction.zones.zone(id: row.zone), place.owner == nil, place.trunk == .home,
      row.cloud?.writer == session.user, target.owner != session.user
    else { return false }
    let home = TreeID.derive(owner: target.owner, trunk: .home, appTreeID: session.appTreeID)
    return target.zone.tree == home && target.zone != ZoneID(trunkOf: home)
  }

  /// Another first commit is another zone, and a trunk of the user's has its place.
  private func isTarget(_ zone: ZoneRow, _ target: PointerTarget) throws -> Bool {
    let isSame = try zone.begins(with: target.genesis, transaction)
    return isSame && zone.appTreeID == session.appTreeID && (zone.owner != nil || !zone.isTrunk)
  }

  /// Returns the roots whose places may change when a zone is shown in place of a pointer: its own, and those of other zones
  /// of a circle.
  func roots(of zone: Int64, shownAt pointer: NodeRow) throws -> [NodeRow] {
    let (top, path) = try transaction.ancestry(of: pointer)
    let around = Set([top.zone] + path.map(\.zone))
    let others = around.contains(zone) ? around.subtracting([zone]) : []
    return try [zone].compactMap(transaction.nodes.root) + hiddenRoots() + others.compactMap(transaction.nodes.root)
  }

  /// Returns the roots of zones that are shown nowhere because of a circle.
  func hiddenRoots() throws -> [NodeRow] {
    try transaction.mounts.circular.keys.sorted().compactMap(transaction.nodes.root)
  }

  /// Shows a zone in place of a pointer to it that this device has.
  func mount(zone id: Int64) throws {
    guard let zone = try transaction.zones.zone(id: id), let pointer = try pointer(to: zone) else { return }
    try transaction.mounts.set(zone: zone.id, at: pointer.id)
  }

  /// Returns the pointer that this device has in whose place a zone is to be shown; nil if one has been chosen already.
  func pointer(to zone: ZoneRow) throws -> NodeRow? {
    guard try transaction.mounts.choice(ofZone: zone.id) == nil else { return nil }
    var best: (pointer: NodeRow, rank: (Int, ZoneID, NodeID))?
    for other in try transaction.zones.zones(localUser: session.localUser) where other.appTreeID == zone.appTreeID {
      for row in try transaction.nodes.pointers(zone: other.id) {
        guard let target = row.pointer, target.zone == zone.zone, try self.zone(for: row) == zone.id else { continue }
        let rank = try rank(of: row, target)
        if best.map({ rank < $0.rank }) ?? true { best = (row, rank) }
      }
    }
    return best?.pointer
  }

  // MARK: Branches inside of accepted ones

  /// Follows a branch of an accepted zone's owner and shows it in place of the pointer, which the app knows already.
  func followInnerBranch(at pointer: Int64) throws {
    guard let row = try transaction.nodes.node(id: pointer), let target = row.pointer,
      try InnerBranchRule(localUser: session.localUser, transaction: transaction).isInnerBranch(row)
    else { return }
    let change = GraftChange(transaction, localUser: session.localUser, user: session.user)
    let zone = try change.follow(target, at: row, appTreeID: session.appTreeID)
    transaction.afterCommit { [session] in session.newZones.withLock { _ = $0.insert(zone) } }
  }

  /// Returns the pointer in whose place the user has grafted the same branch already, on another device: one of the two
  /// has to go.
  func otherGraft(_ row: NodeRow) throws -> NodeRow? {
    guard let target = row.pointer, try isGraft(row, target),
      let zone = try transaction.zones.zone(localUser: session.localUser, target.zone),
      let pointer = try transaction.grafts.pointer(toZone: zone.id), pointer.id != row.id
    else { return nil }
    return pointer
  }

  /// Queues a new pointer at the top of the home trunk to a zone of this user's own, or one that they have grafted, that
  /// was shown in place of a deleted one (S-8). All devices of the user give it the same ID.
  func remount(zone id: Int64, inPlaceOf pointer: NodeRow, _ places: LocalTreeResolver) throws {
    guard let zone = try transaction.zones.zone(id: id), let target = try self.target(of: zone, after: pointer),
      try transaction.mounts.pointer(ofZone: id) == nil,
      let home = try transaction.zones.trunk(zone.trunk, localUser: zone.localUser, appTreeID: zone.appTreeID),
      let top = try transaction.nodes.root(zone: home.id)
    else { return }
    let node = NodeID.remount(of: target.zone, after: pointer.nodeID)
    let isUsed = try transaction.leaves(zone: home.id).leaf(node) != nil
    guard try !isUsed && transaction.nodes.node(zone: home.id, nodeID: node) == nil else { return }
    let name = try places.freeName(pointer.name, under: top, except: 0)
    var row = NodeRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: home.id, nodeID: node, parent: top.id, depth: top.depth + 1,
      nameTag: try transaction.nodes.nameKeys(of: top).nameTag(folded: name), name: name, key: .random(), keyGen: 1,
      createdMs: pointer.createdMs)
    row.unused = RecordPrivate(name: nil, createdMs: 0, pointer: target)
    try transaction.nodes.insert(&row)
    try transaction.mounts.set(zone: id, at: row.id)
    try queueCreation(of: row)
  }

  /// Queues new pointers to zones of this user's own that a circle hides.
  func remountHidden(_ places: LocalTreeResolver) throws {
    for (zone, pointer) in try transaction.mounts.circular {
      guard let pointer = try transaction.nodes.node(id: pointer) else { continue }
      try remount(zone: zone, inPlaceOf: pointer, places)
    }
  }

  /// - Returns: Nil for a branch of another user that the user has not grafted.
  private func target(of zone: ZoneRow, after pointer: NodeRow) throws -> PointerTarget? {
    guard zone.owner == nil else {
      let isGraft = try transaction.zones.zone(id: pointer.zone)?.owner == nil
      return isGraft ? pointer.pointer : nil
    }
    return zone.genesis.map { genesis in
      PointerTarget(
        owner: session.user, zone: zone.zone, node: zone.zone.root, genesis: genesis, seq: 0, head: genesis)
    }
  }

  private func queueCreation(of row: NodeRow) throws {
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: row.zone, kind: .create, node: row.id,
      nodeUUID: try transaction.shown(row).uuid, nodeID: row.nodeID, createdMs: session.now())
    try transaction.operations.insert(&operation)
    transaction.signal(.queue(localUser: session.localUser))
  }
}

/// Decides which pointers in zones of other users name branches that their owner has shared separately.
struct InnerBranchRule {
  let localUser: Int64
  let transaction: ZDCReadTransaction

  /// Only the owner makes branches. Another member can have renamed or moved the pointer that the split has left, which its
  /// nodeID shows. All other pointers of members make this device ask the server for nothing (G-3).
  func isInnerBranch(_ row: NodeRow) throws -> Bool {
    guard let target = row.pointer, let place = try transaction.zones.zone(id: row.zone), let owner = place.owner,
      row.cloud?.writer == owner || row.isMount(of: target), target.owner == owner,
      target.zone.tree == place.zone.tree
    else { return false }
    return try target.node == target.zone.root && !transaction.grafts.isLeft(zone: place.id)
      && transaction.zones.zone(localUser: localUser, target.zone) == nil
  }
}

extension NodeRow {
  /// Whether this is the pointer that the split has left.
  fileprivate func isMount(of target: PointerTarget) -> Bool { nodeID == .mount(ofZoneWith: target.genesis) }
}
