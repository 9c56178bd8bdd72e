internal import Foundation
package import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCSupport
package import ZDCTreesystem

/// Places nodes in the local tree: resolves name clashes and move cycles, and makes the callbacks for them.
package final class LocalTreeResolver {
  let session: SyncSession
  let transaction: ZDCReadWriteTransaction
  private let nodes: NodeStore
  /// Cached paths of parents, until a node moves.
  private var paths: [Int64: ZDCTreesystemPath] = [:]
  private var rollbacks = 0

  package init(session: SyncSession, transaction: ZDCReadWriteTransaction) {
    self.session = session
    self.transaction = transaction
    nodes = transaction.nodes
  }

  // MARK: Paths

  package func path(_ row: NodeRow) throws -> ZDCTreesystemPath {
    guard let parent = row.parent else { return try session.path(row, in: transaction) }
    return try pathOfParent(parent).appendingComponent(String(decoding: row.name, as: UTF8.self))
  }

  private func pathOfParent(_ id: Int64) throws -> ZDCTreesystemPath {
    if rollbacks != transaction.rollbacks { (rollbacks, paths) = (transaction.rollbacks, [:]) }
    if let known = paths[id] { return known }
    guard let row = try nodes.node(id: id) else { throw ZDCError(.corruptDatabase) }
    let path = try path(row)
    paths[id] = path
    return path
  }

  // MARK: Moving

  /// - Throws: `corruptDatabase` if the parent is below the node: no query would come to the end of such a branch.
  package func place(_ row: inout NodeRow, under parent: NodeRow, name: [UInt8], tag: NameTag? = nil) throws {
    guard try row.parent == parent.id || !nodes.isNode(parent.id, atOrBelow: row.id) else {
      throw ZDCError(.corruptDatabase, detail: "a node would be below itself")
    }
    let depth = parent.depth + 1
    let shift = depth - row.depth
    let isElsewhere = row.parent != parent.id
    let isMove = isElsewhere || row.name != name
    let before = try isElsewhere ? queuedAbove(row) : nil
    row.parent = parent.id
    row.name = name
    row.nameTag = try tag ?? nodes.nameKeys(of: parent).nameTag(folded: name)
    row.depth = depth
    try nodes.update(row)
    try nodes.shiftDepths(below: row.id, by: shift)
    if let before {
      let after = try transaction.operations.placements(above: row, in: nodes)
      // A pull cannot refuse the place, so a dependency that would close a cycle is left out.
      _ = try transaction.operations.replaceDependencies(of: row, before: before, after: after)
    }
    if isMove { paths.removeAll() }
  }

  /// Returns the placements that are queued above a node, or nil if no operation is queued for the node itself.
  private func queuedAbove(_ row: NodeRow) throws -> [Int64]? {
    guard try !transaction.operations.operations(node: row.id).isEmpty else { return nil }
    return try transaction.operations.placements(above: row, in: nodes)
  }

  /// Moves the node to its place in the verified log, and drops its queued moves.
  ///
  /// The log may contain a move whose record this device has not applied yet. The node keeps its name until then.
  ///
  /// - Parameter top: A branch that the node must leave.
  /// - Returns: The number of callbacks.
  func returnToCloudPlace(_ row: NodeRow, outside top: Int64? = nil) throws -> Int {
    guard row.cloud != nil, let parent = try verifiedParent(of: row, outside: top) else { return 0 }
    return try returnToCloud(row, under: parent)
  }

  /// Moves the node below its parent in the cloud, or an ancestor in the place of that one, and drops its queued moves.
  ///
  /// - Returns: The number of callbacks.
  func returnToCloud(_ row: NodeRow, under parent: NodeRow) throws -> Int {
    guard let cloud = row.cloud else { return 0 }
    let moves = try transaction.operations.operations(node: row.id).filter { $0.kind == .move }
    try transaction.operations.drop(moves, of: row)
    let old = try path(row)
    var row = row
    let name = try freeName(cloud.name, under: parent, except: row.id)
    try place(&row, under: parent, name: name)
    // If a local node has the name, the cloud must learn this node's other name.
    if name != cloud.name, parent.nodeID == cloud.parent { _ = try queueMove(row) }
    if !moves.isEmpty { try recordDroppedMove(row, wanted: old, writer: nil) }
    return try announceMove(row, from: old)
  }

  /// Returns the row of the node's parent in the verified log, or of the nearest ancestor that has one.
  ///
  /// The record of a node that cannot be below its own parent yet is read again.
  private func verifiedParent(of row: NodeRow, outside top: Int64?) throws -> NodeRow? {
    let leaves = transaction.leaves(zone: row.zone)
    for (distance, ancestor) in try leaves.ancestors(of: row.nodeID).enumerated() {
      guard let parent = try nodes.node(zone: row.zone, nodeID: ancestor),
        try !nodes.isNode(parent.id, atOrBelow: top ?? row.id)
      else { continue }
      if distance > 0 { try leaves.set(.pending, row.nodeID) }
      return parent
    }
    return nil
  }

  /// Returns whether the node's place differs from the verified log, because of a queued move or a pending record.
  private func isElsewhere(_ row: NodeRow) throws -> Bool {
    if try transaction.operations.operations(node: row.id).contains(where: { $0.kind == .move }) { return true }
    guard let parent = row.parent, let leaf = try transaction.leaves(zone: row.zone).leaf(row.nodeID) else {
      return false
    }
    return try nodes.nodeID(of: parent) != leaf.parent
  }

  /// Breaks a cycle. If `parent` is below `row` in the local tree because of queued or pending moves, the nodes between
  /// them return to their places in the verified log.
  ///
  /// Each return may put other moved nodes between the two, so the way up is read again after each.
  func breakCycle(of row: NodeRow, under parent: NodeRow) throws -> Int {
    var callbacks = 0
    var returned: Set<Int64> = []
    while let step = try movedNode(from: parent.id, upTo: row.id, except: returned) {
      returned.insert(step.id)
      callbacks += try returnToCloudPlace(step)
    }
    return callbacks
  }

  /// Returns the first node that is elsewhere than in the verified log, on the way up from a node to one above it; nil
  /// if the second is not above the first.
  private func movedNode(from lower: Int64, upTo upper: Int64, except returned: Set<Int64>) throws -> NodeRow? {
    guard try nodes.isNode(lower, atOrBelow: upper) else { return nil }
    var next: Int64? = lower
    while let id = next, id != upper, let step = try nodes.node(id: id) {
      if !returned.contains(id), try isElsewhere(step) { return step }
      next = step.parent
    }
    return nil
  }

  /// Queues a move to the row's current place, after the node's other operations.
  func queueMove(_ row: NodeRow) throws -> Int64 {
    let earlier = try transaction.operations.operations(node: row.id).filter(\.kind.isRecord)
    // An operation in flight has the old place.
    let isSayingIt = { (operation: OperationRow) in
      operation.state != .inFlight && (operation.kind == .move || operation.kind == .create)
    }
    if let waiting = earlier.last(where: isSayingIt) { return waiting.id }
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: row.zone, kind: .move, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID,
      createdMs: session.now())
    try transaction.operations.insert(&operation, dependsOn: earlier.map(\.id))
    return operation.id
  }

  /// Records a dropped move of the app in the merge journal.
  func recordDroppedMove(_ row: NodeRow, wanted: ZDCTreesystemPath, writer: UserID?) throws {
    let new = try path(row)
    guard new != wanted else { return }
    try transaction.record(.moveDropped, row) { entry in
      entry.mine.path = wanted
      entry.theirs.path = new
      entry.result.path = new
      entry.cloudWriterID = writer?.text
    }
  }

  func announceMove(_ row: NodeRow, from old: ZDCTreesystemPath) throws -> Int {
    let new = try path(row)
    guard new != old else { return 0 }
    let node = try session.node(row, in: transaction)
    try session.tell(.didDiscoverMovedNode, row.nodeID, in: transaction) {
      try $0.didDiscoverMovedNode(node, from: old, to: new, transaction: transaction)
    }
    return 1
  }

  // MARK: Names

  /// Returns "Name", or "Name 2", "Name 3" … if another node has the name.
  func freeName(_ name: [UInt8], under parent: NodeRow, except id: Int64) throws -> [UInt8] {
    let keys = try nodes.nameKeys(of: parent)
    func isTaken(_ candidate: [UInt8]) throws -> Bool {
      try nodes.children(of: parent.id, tag: keys.nameTag(folded: candidate)).contains { $0.id != id }
    }
    guard try isTaken(name) else { return name }
    for candidate in NameRules.alternatives(to: String(decoding: name, as: UTF8.self)) {
      let folded = try NameFolding.fold(candidate).utf8
      if try !isTaken(folded) { return folded }
    }
    throw ZDCError(.corruptDatabase)
  }

  /// Makes room before a cloud node takes its place. Local nodes that have its name, but are not at that place in the
  /// cloud yet, give way (`.path` conflict).
  ///
  /// The app is asked first. If the name is still taken afterwards, the local node becomes "Name 2".
  ///
  /// - Returns: The number of callbacks.
  package func makeRoom(
    for row: NodeRow, tag: NameTag? = nil, under parent: NodeRow, leaves: LogNodeStore
  ) throws -> Int {
    let tag = tag ?? row.nameTag
    var callbacks = 0
    for sibling in try nodes.children(of: parent.id, tag: tag) where sibling.id != row.id {
      guard try isLocalClaim(sibling, leaves: leaves) else { continue }
      callbacks += try yield(sibling, to: row, tag: tag, under: parent)
    }
    return callbacks
  }

  /// Returns whether the cloud does not know the sibling's claim to the name: it was not uploaded, or a queued
  /// operation moved it here.
  private func isLocalClaim(_ sibling: NodeRow, leaves: LogNodeStore) throws -> Bool {
    guard let cloud = sibling.cloud else { return true }
    if cloud.name != sibling.name { return true }
    guard let parent = try sibling.parent.flatMap({ try nodes.nodeID(of: $0) }) else { return false }
    return cloud.parent != parent
  }

  private func yield(_ sibling: NodeRow, to row: NodeRow, tag: NameTag, under parent: NodeRow) throws -> Int {
    // The framework, not the app, chose this place, because the record is pending or the name was taken.
    let isUnasked = try transaction.operations.placements(ofNode: sibling.id).isEmpty
    if isUnasked, sibling.isUploaded { return try giveWay(sibling, under: parent) }
    let node = try session.node(sibling, in: transaction)
    let place = try path(sibling)
    try session.tell(.didDiscoverConflict, sibling.nodeID, in: transaction) {
      try $0.didDiscoverConflict(.path, forNode: node, atPath: place, transaction: transaction)
    }
    // The app may have renamed, moved or deleted it.
    guard let current = try nodes.node(id: sibling.id), current.parent == parent.id, current.nameTag == tag else {
      return 1
    }
    let old = try path(current)
    let callbacks = 1 + (try giveWay(current, under: parent))
    try recordRename(current, from: old, for: row)
    return callbacks
  }

  private func recordRename(_ sibling: NodeRow, from old: ZDCTreesystemPath, for row: NodeRow) throws {
    guard let renamed = try nodes.node(id: sibling.id) else { return }
    let new = try path(renamed)
    try transaction.record(.renamed, renamed) { entry in
      entry.mine.path = old
      entry.theirs = .init(path: old, cloudID: row.nodeID.text)
      entry.result.path = new
      entry.otherNodeID = row.uuid
      entry.cloudWriterID = row.cloud?.writer.text
    }
  }

  private func giveWay(_ sibling: NodeRow, under parent: NodeRow) throws -> Int {
    let old = try path(sibling)
    var row = sibling
    let name = try freeName(sibling.name, under: parent, except: 0)
    try place(&row, under: parent, name: name)
    return try announceMove(row, from: old)
  }
}
