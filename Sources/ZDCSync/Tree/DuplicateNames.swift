internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Two live nodes of the cloud with the same name below one parent (class 2 of PROTOCOL 3.7). An honest server compares
/// tags and refuses this, unless the parent received a new key before the second put.
///
/// Both nodes are kept. The node that was put later is shown as "Name 2", the same one on every device, and nothing is
/// sent for that. Its next version, if made here, takes the shown name. When the name is free again, the node gets it
/// back.
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
    let tag = try nodes.keys(of: parent).nameTag(folded: name)
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

  // MARK: Restoring original names

  /// - Returns: The number of callbacks.
  package func release() throws -> Int {
    var callbacks = try yieldUnreadable()
    for row in try nodes.quarantined(zone: leaves.zone, as: Self.mark) { callbacks += try releaseAlone(row) }
    return callbacks
  }

  /// Retries a node for which the app threw. Other nodes are handled separately.
  package func release(_ row: NodeRow) throws -> Int {
    guard Self.isShownOtherwise(row) else {
      try transaction.delegateFailures.forgetName(zone: row.zone, node: row.nodeID)
      return try giveWay(row)
    }
    return try releaseAlone(row)
  }

  private func releaseAlone(_ row: NodeRow) throws -> Int {
    var callbacks = 0
    try session.part(.name, of: row.zone, row.nodeID, in: transaction) {
      callbacks = try giveBack(row)
      try transaction.delegateFailures.forgetName(zone: row.zone, node: row.nodeID)
    }
    return callbacks
  }

  private func giveBack(_ row: NodeRow) throws -> Int {
    guard let cloud = row.cloud, let parent = try row.parent.flatMap({ try nodes.node(id: $0) }),
      parent.nodeID == cloud.parent, try transaction.operations.placements(ofNode: row.id).isEmpty,
      try leaves.pendingLeaf(row.nodeID) == nil
    else { return 0 }
    let tag = try nodes.keys(of: parent).nameTag(folded: cloud.name)
    guard try nodes.children(of: parent.id, tag: tag).allSatisfy({ $0.id == row.id }) else { return 0 }
    let old = try places.path(row)
    var row = row
    row.quarantine = nil
    try places.place(&row, under: parent, name: cloud.name)
    return try places.announceMove(row, from: old)
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
