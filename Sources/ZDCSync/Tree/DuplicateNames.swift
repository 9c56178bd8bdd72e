internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// Two live nodes of the cloud with the same name below one parent (class 2 of PROTOCOL 3.7). An honest server compares
/// tags and refuses this, unless the parent received a new key before the second put.
///
/// Both nodes are kept. The node that was put later is shown as "Name 2", the same one on every device, and nothing is
/// sent for that. Its next version, if made here, takes the shown name. When the name is free again, or the other node is
/// put again, the node gets it back.
struct DuplicateNames {
  package let session: SyncSession
  package let transaction: ZDCReadWriteTransaction
  package let places: LocalTreeResolver
  package let leaves: LogNodeStore
  private let nodes: NodeStore
  private static let mark = ZDCSecurityError.Code.duplicateName.rawValue

  package init(
    session: SyncSession, transaction: ZDCReadWriteTransaction, places: LocalTreeResolver, leaves: LogNodeStore
  ) {
    self.session = session
    self.transaction = transaction
    self.places = places
    self.leaves = leaves
    nodes = transaction.nodes
  }

  static func isShownOtherwise(_ row: NodeRow) -> Bool { row.quarantine == mark }

  /// Resolves duplicate names before a cloud node takes its place. At this point only cloud nodes can still have its
  /// name.
  ///
  /// - Parameter before: The node's previous row, if any.
  /// - Returns: The name under which the node is shown, and the number of callbacks.
  package func settle(
    _ row: inout NodeRow, name: [UInt8], under parent: NodeRow, before: NodeRow?
  ) throws -> (name: [UInt8], callbacks: Int) {
    let tag = try nodes.nameKeys(of: parent).nameTag(folded: name)
    guard let mine = try leaves.leaf(row.nodeID) else { return (name, 0) }
    var callbacks = 0
    for sibling in try nodes.children(of: parent.id, tag: tag) where sibling.id != row.id {
      guard let other = try leaves.leaf(sibling.nodeID), isCurrent(sibling, other, below: parent.nodeID) else {
        continue
      }
      guard isLater(other, than: mine) else {
        row.quarantine = Self.mark
        if before?.quarantine != Self.mark { try tell(row) }
        return (try places.freeName(name, under: parent, except: row.id), callbacks)
      }
      callbacks += try showOtherwise(sibling, under: parent)
    }
    return (name, callbacks)
  }

  /// Returns whether the sibling's row matches the newest version in the log. Otherwise the sibling's pending record
  /// decides.
  private func isCurrent(_ row: NodeRow, _ leaf: LogNode, below parent: NodeID) -> Bool {
    guard let cloud = row.cloud else { return false }
    return cloud.recordHash == leaf.record && leaf.parent == parent && cloud.name == row.name
  }

  private func isLater(_ a: LogNode, than b: LogNode) -> Bool {
    a.putSeq == b.putSeq ? a.node > b.node : a.putSeq > b.putSeq
  }

  private func showOtherwise(_ sibling: NodeRow, under parent: NodeRow) throws -> Int {
    let old = try places.path(sibling)
    var row = sibling
    row.quarantine = Self.mark
    try places.place(&row, under: parent, name: try places.freeName(row.name, under: parent, except: 0))
    try tell(row)
    return try places.announceMove(row, from: old)
  }

  private func tell(_ row: NodeRow) throws {
    let error = ZDCSecurityError(
      .duplicateName, zone: try transaction.zones.zone(id: row.zone)?.zone, node: row.nodeID, user: row.cloud?.writer)
    try transaction.record(error, localUser: session.localUser, zone: row.zone, atMs: session.now())
    transaction.afterCommit { [events = session.events] in events.report(error) }
  }

  // MARK: Numbering

  /// Gives the nodes with equal names the names that every device gives them, whichever versions it has seen: the first in
  /// the log's order has the name, and the others have the next free numbers in that order.
  ///
  /// - Returns: The number of callbacks.
  package func release() throws -> Int {
    let callbacks = try yieldUnreadable()
    let rows = try nodes.quarantined(zone: leaves.zone, as: Self.mark)
    let folders = Dictionary(grouping: rows, by: \.parent).values.sorted { $0[0].id < $1[0].id }
    return try folders.reduce(callbacks) { try $0 + release($1) }
  }

  /// Retries a node for which the app threw, with the others of its folder. Other nodes are handled separately.
  package func release(_ row: NodeRow) throws -> Int {
    guard Self.isShownOtherwise(row) else {
      try transaction.delegateFailures.forgetName(zone: row.zone, node: row.nodeID)
      return try giveWay(row)
    }
    let rows = try nodes.quarantined(zone: leaves.zone, as: Self.mark)
    return try release(rows.filter { $0.parent == row.parent })
  }

  /// - Parameter rows: All nodes of one folder that are shown under other names.
  private func release(_ rows: [NodeRow]) throws -> Int {
    guard let first = rows.first else { return 0 }
    var callbacks = 0
    try session.part(.name, of: first.zone, first.nodeID, in: transaction) {
      if let parent = try first.parent.flatMap({ try nodes.node(id: $0) }) {
        callbacks = try apply(try names(of: try claims(rows, below: parent), below: parent), below: parent)
      }
      for row in rows { try transaction.delegateFailures.forgetName(zone: row.zone, node: row.nodeID) }
    }
    return callbacks
  }

  /// A node with the name that its newest version has, which another one may have too.
  private struct Claim {
    let row: NodeRow
    let name: [UInt8]
    let leaf: LogNode
  }

  /// Returns the nodes to name, in the log's order. Nodes that wait for a record or an answer, or that are about to be moved,
  /// keep the names that they have.
  private func claims(_ rows: [NodeRow], below parent: NodeRow) throws -> [Claim] {
    let store = InFlightStore(transaction: transaction)
    let sending = Set(
      try store.operations(zone: leaves.zone).compactMap(\.node) + store.rotations(zone: leaves.zone).map(\.node))
    var claims = try rows.compactMap { try claim($0, below: parent, sending) }
    let keys = try nodes.nameKeys(of: parent)
    for name in Set(claims.map(\.name)) {
      let holders = try nodes.children(of: parent.id, tag: keys.nameTag(folded: name))
      claims += try holders.compactMap { row in
        guard !Self.isShownOtherwise(row), row.cloud?.name == name else { return nil }
        return try claim(row, below: parent, sending)
      }
    }
    return claims.sorted { isLater($1.leaf, than: $0.leaf) }
  }

  private func claim(_ row: NodeRow, below parent: NodeRow, _ sending: Set<Int64>) throws -> Claim? {
    guard let cloud = row.cloud, cloud.parent == parent.nodeID, !sending.contains(row.id),
      let leaf = try leaves.leaf(row.nodeID), leaf.record == cloud.recordHash, leaf.parent == cloud.parent,
      try leaves.pendingLeaf(row.nodeID) == nil, try transaction.operations.placements(ofNode: row.id).isEmpty
    else { return nil }
    return Claim(row: row, name: cloud.name, leaf: leaf)
  }

  /// Returns the name that each node has from now on.
  private func names(of claims: [Claim], below parent: NodeRow) throws -> [(row: NodeRow, name: [UInt8])] {
    let keys = try nodes.nameKeys(of: parent)
    let named = Set(claims.map(\.row.id))
    var taken: Set<[UInt8]> = []
    func take(_ name: [UInt8]) throws -> Bool {
      guard !taken.contains(name) else { return false }
      let others = try nodes.children(of: parent.id, tag: keys.nameTag(folded: name)).filter { !named.contains($0.id) }
      return others.isEmpty && taken.insert(name).inserted
    }
    let firsts = Set(try claims.filter { try take($0.name) }.map(\.row.id))
    var numbers: [[UInt8]: AnyIterator<String>] = [:]
    return try claims.map { claim in
      if firsts.contains(claim.row.id) { return (claim.row, claim.name) }
      // Of many nodes with one name, each continues where the one before has ended.
      let next = numbers[claim.name] ?? Self.alternatives(to: claim.name)
      numbers[claim.name] = next
      return (claim.row, try Self.first(of: next, where: take))
    }
  }

  private static func first(
    of names: AnyIterator<String>, where isFree: ([UInt8]) throws -> Bool
  ) throws -> [UInt8] {
    while let name = names.next() {
      let folded = try NameFolding.fold(name).utf8
      if try isFree(folded) { return folded }
    }
    throw ZDCError(.corruptDatabase)
  }

  private static func alternatives(to name: [UInt8]) -> AnyIterator<String> {
    AnyIterator(NameRules.alternatives(to: String(decoding: name, as: UTF8.self)).makeIterator())
  }

  /// Places the nodes, and then notifies the app, so that no call sees two nodes with one name.
  private func apply(_ names: [(row: NodeRow, name: [UInt8])], below parent: NodeRow) throws -> Int {
    var moved: [(row: NodeRow, old: ZDCTreesystemPath)] = []
    for (before, name) in names {
      let (wasMarked, isMarked) = (Self.isShownOtherwise(before), name != before.cloud?.name)
      guard before.name != name || wasMarked != isMarked else { continue }
      var row = before
      row.quarantine = isMarked ? Self.mark : nil
      let old = try places.path(before)
      try places.place(&row, under: parent, name: name)
      if !wasMarked { try tell(row) }
      moved.append((row, old))
    }
    return try moved.reduce(0) { callbacks, node in
      // The app may have changed it in an earlier call.
      guard try nodes.node(id: node.row.id)?.name == node.row.name else { return callbacks }
      return try callbacks + places.announceMove(node.row, from: node.old)
    }
  }

  // MARK: Unreadable nodes

  /// Shows nodes whose newest version cannot be read under other names if another node has their last known name since.
  private func yieldUnreadable() throws -> Int {
    guard try !transaction.unreadable.isEmpty(zone: leaves.zone) else { return 0 }
    var callbacks = 0
    for row in try nodes.quarantined(zone: leaves.zone, except: Self.mark) {
      try session.part(.name, of: row.zone, row.nodeID, in: transaction) { callbacks += try giveWay(row) }
    }
    return callbacks
  }

  private func giveWay(_ row: NodeRow) throws -> Int {
    guard try transaction.unreadable.code(zone: row.zone, node: row.nodeID) != nil,
      let leaf = try leaves.leaf(row.nodeID), row.cloud?.recordHash != leaf.record,
      let parent = try row.parent.flatMap({ try nodes.node(id: $0) }),
      try transaction.operations.placements(ofNode: row.id).isEmpty, try isTaken(nameOf: row, below: parent)
    else { return 0 }
    let old = try places.path(row)
    var row = row
    try places.place(&row, under: parent, name: try places.freeName(row.name, under: parent, except: 0))
    return try places.announceMove(row, from: old)
  }

  private func isTaken(nameOf row: NodeRow, below parent: NodeRow) throws -> Bool {
    try nodes.children(of: parent.id, tag: row.nameTag).contains { sibling in
      guard sibling.id != row.id, let leaf = try leaves.leaf(sibling.nodeID) else { return false }
      return isCurrent(sibling, leaf, below: parent.nodeID)
    }
  }
}
