internal import Foundation
internal import GRDB
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// Nodes whose records say that they were moved from a node of another zone (movedFrom), inside one transaction.
///
/// Any writer can say so. It takes effect only if the verified log of the other zone has the deletion of that node, by the
/// same writer (M-4): see ``MoveTakeOver``.
final class MoveClaims {
  private let transaction: ZDCReadWriteTransaction
  private let localUser: Int64
  private var zonesByTree: [TreeID: [Int64]] = [:]

  init(_ transaction: ZDCReadWriteTransaction, localUser: Int64) {
    (self.transaction, self.localUser) = (transaction, localUser)
  }

  /// Notes the claim of a new node, if this device has the node that it names.
  func note(_ opened: OpenedRecord, _ row: NodeRow) throws {
    guard let source = opened.secrets.movedFrom else { return }
    for zone in try zones(of: source.tree) where zone != row.zone {
      guard try transaction.nodes.node(zone: zone, nodeID: source.node) != nil else { continue }
      return try transaction.database.cachedStatement(
        sql: "INSERT OR REPLACE INTO zdc_claim (node, zone, nodeID, writer) VALUES (?, ?, ?, ?)"
      ).execute(arguments: [row.id, zone, source.node.data, opened.record.fields.writer.data])
    }
  }

  private func zones(of tree: TreeID) throws -> [Int64] {
    if let known = zonesByTree[tree] { return known }
    let statement = try transaction.database.cachedStatement(
      sql: "SELECT id FROM zdc_zone WHERE localUser = ? AND treeID = ? ORDER BY id")
    let zones = try Int64.fetchAll(statement, arguments: [localUser, tree.data])
    zonesByTree[tree] = zones
    return zones
  }
}

/// Lets nodes that another device has moved to another zone take over the local IDs, links, tags and queued changes of the
/// nodes that they were, when the old ones are deleted (M-3).
struct MoveTakeOver {
  let session: SyncSession
  let zone: Int64
  let transaction: ZDCReadWriteTransaction

  private var nodes: NodeStore { transaction.nodes }
  private var places: LocalTreeResolver { LocalTreeResolver(session: session, transaction: transaction) }

  private struct Pair {
    var old: NodeRow
    var new: NodeRow
  }

  /// - Parameters:
  ///   - gone: The nodes that the zone's log has deleted.
  ///   - writer: Who deleted them.
  /// - Returns: Whether a node of the branch was moved.
  func run(atOrBelow top: NodeRow, gone: Set<NodeID>, by writer: UserID) throws -> Bool {
    let pairs = try pairs(atOrBelow: top, gone: gone, by: writer)
    guard !pairs.isEmpty else { return false }
    let (moved, dropped) = (try tops(pairs, \.old), try tops(pairs, \.new))
    for pair in pairs.sorted(by: { $0.new.depth < $1.new.depth }) { try takeOver(pair) }
    try followLocalNodes(pairs.map(\.old.id))
    for node in dropped { try announceDropped(node) }
    for (row, path) in moved.map({ ($0.row, $0.path) }) {
      if let now = try nodes.node(id: row.id) { _ = try places.announceMove(now, from: path) }
    }
    for pair in pairs { try announceContent(pair) }
    transaction.signal(.queue(localUser: session.localUser))
    return true
  }

  /// Returns the topmost rows of the branch that were deleted and not moved.
  func left(atOrBelow top: NodeRow, gone: Set<NodeID>) throws -> [NodeRow] {
    var kept: Set<Int64> = []
    return try nodes.subtree(of: top.id).filter { row in
      guard row.zone == zone, gone.contains(row.nodeID) else { return false }
      defer { kept.insert(row.id) }
      return row.parent.map { !kept.contains($0) } ?? true
    }
  }

  // MARK: Pairs

  private func pairs(atOrBelow top: NodeRow, gone: Set<NodeID>, by writer: UserID) throws -> [Pair] {
    let isAny = try Int.fetchOne(
      transaction.database.cachedStatement(sql: "SELECT 1 FROM zdc_claim WHERE zone = ? LIMIT 1"), arguments: [zone])
    guard isAny != nil else { return [] }
    return try nodes.subtree(of: top.id).compactMap { old in
      guard old.zone == zone, gone.contains(old.nodeID), let new = try claim(of: old, by: writer) else { return nil }
      return Pair(old: old, new: new)
    }
  }

  private func claim(of old: NodeRow, by writer: UserID) throws -> NodeRow? {
    let statement = try transaction.database.cachedStatement(
      sql: "SELECT node FROM zdc_claim WHERE zone = ? AND nodeID = ? AND writer = ? ORDER BY node LIMIT 1")
    return try Int64.fetchOne(statement, arguments: [zone, old.nodeID.data, writer.data]).flatMap {
      try nodes.node(id: $0)
    }
  }

  private struct Shown {
    var row: NodeRow
    var node: ZDCNode
    var path: ZDCTreesystemPath
  }

  /// Returns the topmost of the nodes, as the app sees them now.
  private func tops(_ pairs: [Pair], _ side: KeyPath<Pair, NodeRow>) throws -> [Shown] {
    let rows = pairs.map { $0[keyPath: side] }
    let ids = Set(rows.map(\.id))
    return try rows.filter { row in row.parent.map { !ids.contains($0) } ?? true }.map { row in
      Shown(row: row, node: try session.node(row, in: transaction), path: try places.path(row))
    }
  }

  /// The node that the app was notified of as a new one is the other one now.
  private func announceDropped(_ shown: Shown) throws {
    try session.tell(.didDiscoverDeletedNode, shown.row.nodeID, in: transaction) {
      try $0.didDiscoverDeletedNode(shown.node, at: shown.path, timestamp: nil, transaction: transaction)
    }
  }

  /// Notifies the app if the node has other content than before it was moved.
  private func announceContent(_ pair: Pair) throws {
    guard pair.old.content?.content.blobID != pair.new.content?.content.blobID,
      let row = try nodes.node(id: pair.old.id)
    else { return }
    let change = RemoteChange(moved: false, data: true, record: false)
    _ = try places.announce(change, row, oldPath: places.path(row))
  }

  // MARK: Rows

  private func takeOver(_ pair: Pair) throws {
    guard var row = try nodes.node(id: pair.old.id), let new = try nodes.node(id: pair.new.id) else { return }
    try nodes.shiftDepths(below: row.id, by: new.depth - row.depth)
    try nodes.adoptChildren(of: new.id, under: row)
    let wanted = try places.path(row)
    try nodes.deleteSubtree(of: new.id)
    row.identity = new.identity
    (row.parent, row.depth, row.name, row.nameTag) = (new.parent, new.depth, new.name, new.nameTag)
    if !pair.old.isBurnDateChanged { row.burnMs = new.burnMs }
    (row.createdMs, row.quarantine) = (new.createdMs, new.quarantine)
    try nodes.update(row)
    try moveQueue(of: row, wanted: wanted, before: pair.old)
  }

  /// Moves queued changes of content to the new zone. A queued move is dropped: the committed one wins.
  private func moveQueue(of row: NodeRow, wanted: ZDCTreesystemPath, before: NodeRow) throws {
    let crossing = ZoneCrossing(session: session, transaction: transaction)
    let isMoving = try transaction.operations.operations(node: row.id).contains { $0.kind == .move }
    if try QueuedRestoration(before, transaction) != nil {
      try transaction.record(.cloudWon, row) { $0.mine.eTag = before.content?.content.eTag }
    }
    try crossing.requeueContent(of: row)
    _ = try crossing.requeueRecord(of: row, as: row.isBurnDateChanged ? .modify : nil)
    try transaction.moves.setCrossing(row.id, false)
    if isMoving { try places.recordDroppedMove(row, wanted: wanted, writer: row.cloud?.writer) }
  }

  /// Moves nodes that this device created below the old ones, and has not sent, to the zone of their parents.
  private func followLocalNodes(_ moved: [Int64]) throws {
    let crossing = ZoneCrossing(session: session, transaction: transaction)
    for id in moved {
      guard let parent = try nodes.node(id: id) else { continue }
      for child in try nodes.children(of: id) where child.zone == zone && !child.isUploaded {
        if try BranchToMove(transaction, top: child).namesOldContent {
          try crossing.moveOnceRestored(child)
          continue
        }
        for var row in try nodes.subtree(of: child.id) where row.zone == zone && !row.isUploaded {
          row.identity = NodeIdentity(newIn: parent.zone, nodeID: .random(), content: nil, unused: row.unused)
          try nodes.update(row)
          try crossing.requeueContent(of: row)
          _ = try crossing.requeueRecord(of: row, as: .create)
        }
      }
    }
  }
}
