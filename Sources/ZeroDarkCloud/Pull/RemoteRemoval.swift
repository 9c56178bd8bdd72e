internal import Foundation
internal import ZDCProtocol
internal import ZDCTreesystem

/// What a deletion in the cloud does to the local tree (seed 003, PROTOCOL 3.7 "Outcomes").
///
/// A clean sub-tree goes at once, announced by its top. Where operations are queued, the app is told first, with
/// everything still there; then
/// the clean branches go, and the dirty nodes and the way to them stay, as if they had never been uploaded.
struct RemoteRemoval {
  let session: SyncSession
  let zone: Int64
  let transaction: ZDCReadWriteTransaction
  let timestamp: Date?
  private let nodes: NodeStore
  private let places: LocalPlaces

  init(session: SyncSession, zone: Int64, transaction: ZDCReadWriteTransaction, timestamp: Date?) {
    self.session = session
    self.zone = zone
    self.transaction = transaction
    self.timestamp = timestamp
    nodes = transaction.nodes
    places = LocalPlaces(session: session, transaction: transaction)
  }

  mutating func apply(_ removal: LeafStore.Removal) throws {
    let gone = Set(removal.all)
    for operation in try transaction.operations.deletes(zone: zone) where gone.contains(operation.nodeID) {
      // Deleted here too: there is nothing left to ask for.
      try transaction.operations.delete(id: operation.id)
    }
    // Nodes that were moved out locally are tops of their own.
    for nodeID in removal.all {
      guard let row = try nodes.node(zone: zone, nodeID: nodeID) else { continue }
      if let parent = try row.parent.flatMap({ try nodes.nodeID(of: $0) }), gone.contains(parent) { continue }
      try remove(row, gone: gone)
    }
  }

  private func remove(_ top: NodeRow, gone: Set<NodeID>) throws {
    try returnSurvivors(below: top, gone: gone)
    let dirty = try dirtyNodes(atOrBelow: top)
    guard !dirty.isEmpty else { return try delete(top) }
    try announceDirty(top, dirty)
    guard try nodes.node(id: top.id) != nil else { return }
    try keepDirty(top)
  }

  /// Nodes that live on in the cloud and were only moved in here by a queued operation go back to their place there.
  private func returnSurvivors(below top: NodeRow, gone: Set<NodeID>) throws {
    for row in try nodes.subtree(of: top.id) where row.isUploaded && !gone.contains(row.nodeID) {
      _ = try places.returnToCloudPlace(row)
    }
  }

  /// Rows with queued operations, in queue order of the tree: parents first.
  private func dirtyNodes(atOrBelow top: NodeRow) throws -> [NodeRow] {
    try nodes.subtree(of: top.id).filter { try !transaction.operations.operations(node: $0.id).isEmpty }
  }

  private func announceDirty(_ top: NodeRow, _ dirty: [NodeRow]) throws {
    let node = try session.node(top, in: transaction)
    try session.delegate().didDiscoverDeletedDirtyNode(
      node, dirtyAncestors: dirty.map(\.uuid), timestamp: timestamp, transaction: transaction)
  }

  private func delete(_ row: NodeRow) throws {
    let node = try session.node(row, in: transaction)
    let path = try places.path(row)
    try transaction.unlinkBeforeRemoval(of: row, keepLookups: true)
    try nodes.deleteSubtree(of: row.id)
    try session.delegate().didDiscoverDeletedNode(node, at: path, timestamp: timestamp, transaction: transaction)
    try transaction.endRemoval()
  }

  /// Deletes the clean branches below `top`; what stays loses its place in the cloud.
  private func keepDirty(_ top: NodeRow) throws {
    let dirty = try dirtyNodes(atOrBelow: top)
    guard !dirty.isEmpty else { return try delete(top) }
    var kept: Set<Int64> = [top.id]
    for row in dirty {
      for ancestor in try nodes.ancestry(of: row) where try nodes.isNode(ancestor.id, atOrBelow: top.id) {
        kept.insert(ancestor.id)
      }
    }
    for row in try nodes.subtree(of: top.id) where !kept.contains(row.id) {
      // Top-most clean nodes only: the rest goes with them.
      if let parent = row.parent, kept.contains(parent), try nodes.node(id: row.id) != nil { try delete(row) }
    }
    for row in try nodes.subtree(of: top.id) { try resetCloudFacts(row) }
  }

  /// A kept node is a new node to the cloud: fresh id, same uuid, links and tags. Its operations wait for the app.
  private func resetCloudFacts(_ row: NodeRow) throws {
    var row = row
    row.nodeID = .random()
    row.cloud = nil
    row.content = nil
    row.historyWrap = []
    try nodes.update(row)
    let operations = try transaction.operations.operations(node: row.id)
    let hadCreate = operations.contains { $0.kind == .create }
    for operation in operations {
      if operation.kind == .move || operation.kind == .modify {
        try transaction.operations.delete(id: operation.id)
      } else {
        try park(operation, nodeID: row.nodeID)
      }
    }
    if !hadCreate { try queueParked(.create, row) }
    if !operations.contains(where: { $0.kind == .putData }) { try queueParked(.putData, row) }
  }

  private func park(_ operation: OperationRow, nodeID: NodeID) throws {
    var operation = operation
    operation.nodeID = nodeID
    operation.state = .pending
    operation.reason = .deletedRemotely
    operation.baseETag = nil
    try transaction.operations.update(operation)
  }

  private func queueParked(_ kind: OperationRow.Kind, _ row: NodeRow) throws {
    var operation = OperationRow(
      uuid: UUID().uuidString, zone: zone, kind: kind, node: row.id, nodeUUID: row.uuid, nodeID: row.nodeID,
      createdMs: session.now())
    operation.reason = .deletedRemotely
    var dependsOn: [Int64] = []
    if kind == .create, let parent = row.parent {
      dependsOn = try transaction.operations.operations(node: parent).filter { $0.kind == .create }.map(\.id)
    } else {
      dependsOn = try transaction.operations.operations(node: row.id).filter { $0.kind == .create }.map(\.id)
    }
    try transaction.operations.insert(&operation, dependsOn: dependsOn)
  }
}
