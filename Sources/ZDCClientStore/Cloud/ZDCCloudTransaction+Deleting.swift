internal import Foundation
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

/// How a delete treats nodes below that changed in the cloud since this device last saw them.
///
/// ```swift
/// try cloud.delete(folder, with: [.deleteOutdatedNodes])
/// ```
public struct ZDCDeleteNodeOptions: OptionSet, Sendable, Hashable {
  /// The set as bits.
  public let rawValue: Int

  /// Creates a set from bits. Apps use the named options.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// Nodes that others have changed since.
  public static let deleteOutdatedNodes = ZDCDeleteNodeOptions(rawValue: 1)
  /// Nodes that this device has never seen.
  public static let deleteUnknownNodes = ZDCDeleteNodeOptions(rawValue: 2)
  /// Both options: the only set that ``ZDCCloudTransaction/delete(_:with:)`` accepts.
  public static let all: ZDCDeleteNodeOptions = [.deleteOutdatedNodes, .deleteUnknownNodes]
}

extension ZDCCloudTransaction {
  /// Deletes a node and all nodes below it: immediately on this device, in the cloud when the queued operation is sent.
  ///
  /// The nodes' links, tags and queued operations are removed as well. In the cloud, nodes below that this device has
  /// never seen are deleted too.
  ///
  /// Branches of the local user that are shared separately end with the node: one queued operation ends each of them, the
  /// inner ones first, and the node's own follows when all have ended. All members are then notified of the deletion, and
  /// their unsent changes of the branch end in the merge journal. Only the owner can end a branch: if a member of a tree
  /// deletes a folder, the shared branches in it lose their place only, and their owner's devices show them at the top of the
  /// home trunk.
  ///
  /// Deleting a grafted branch, or a node above one, leaves the branch: its nodes are removed from all of the user's
  /// devices, and the queued operations remove the user from its access list. The owner and the other members keep it. See
  /// ``graftNode(withLocalPath:remoteCloudPath:remoteCloudID:remoteUser:)``.
  ///
  /// The delegate is not called, because the app made the change. The app removes its own objects in the same
  /// transaction.
  ///
  /// ```swift
  /// if let node = cloud.node(path: path) { try cloud.delete(node) }
  /// ```
  ///
  /// - Returns: The operation that deletes the node; nil if the cloud never had any of these nodes, so that there is nothing
  ///   to send.
  /// - Throws: ``ZDCCloudError``: `invalidParameter` for an unknown node, a trunk, another user's branch that has no place
  ///   in the local user's tree, or a grafted branch while nodes move into it or out of it; `notAllowed` if the access list does not let the local user write, and for another user's
  ///   branch that is shown in a third user's tree.
  @discardableResult
  public func delete(_ node: ZDCNode) throws -> ZDCCloudOperation? {
    let row = try stored(node)
    if let pointer = try transaction.grafts.pointer(to: row) {
      try checkNoMoves(with: row.zone)
      return try leave(row, at: pointer).map(transaction.zdcOperation)
    }
    guard row.parent == nil, let zone = try transaction.zones.zone(id: row.zone) else {
      return try delete(row: try movable(row)).map(transaction.zdcOperation)
    }
    if zone.isClosed {
      try nodes.deleteSubtree(of: row.id)
      return nil
    }
    guard zone.owner != nil else { return try endBranch(row).map(transaction.zdcOperation) }
    _ = try movable(row)
    throw ZDCCloudError(
      .notAllowed, detail: "only the owner ends a shared branch; remove yourself from its list instead")
  }

  /// Ends a branch of the local user, and deletes the pointer to it, if it has one.
  package func endBranch(_ root: NodeRow) throws -> OperationRow? {
    let place = try transaction.place(of: root)
    if place.parent != nil { return try delete(row: place) }
    defer { signalQueue() }
    return try queueEnd(ofZone: root.zone)
  }

  /// Like ``delete(_:)``.
  ///
  /// ```swift
  /// try cloud.delete(folder, with: [.deleteOutdatedNodes, .deleteUnknownNodes])
  /// ```
  ///
  /// - Parameters:
  ///   - node: The top of what goes.
  ///   - options: Only ``ZDCDeleteNodeOptions/all``: a delete takes the whole branch.
  /// - Throws: also `invalidParameter` for other options.
  @discardableResult
  public func delete(_ node: ZDCNode, with options: ZDCDeleteNodeOptions) throws -> ZDCCloudOperation? {
    guard options == .all else {
      throw ZDCCloudError(.invalidParameter, detail: "a delete cannot spare outdated or unknown nodes")
    }
    return try delete(node)
  }

  /// - Returns: The operation that deletes the top, or else the first of those that were queued.
  package func delete(row: NodeRow) throws -> OperationRow? {
    for graft in try transaction.grafts.roots(below: row) { try checkNoMoves(with: graft.zone) }
    let ends = try queueEnds(atOrBelow: row)
    let places = try nodes.cloudPlaces(atOrBelow: row.id)
    let grafts = try transaction.grafts.roots(below: row)
    // After the ends: otherwise another device could read that an open branch has lost its place, and put it back.
    let first = try queueDeletes(of: places, below: row, after: ends)
    try leave(grafts, after: first)
    signalQueue()
    return first ?? ends.first
  }

  /// Queues the deletion of nodes, and removes their rows.
  ///
  /// - Returns: The first operation.
  private func queueDeletes(
    of places: [NodeStore.CloudPlace], below row: NodeRow, after ends: [OperationRow]
  ) throws -> OperationRow? {
    let targets = try Set(places.map(\.zone)).sorted().flatMap { try cloudTargets(places, zone: $0) }
    let names = try targets.map { try nodes.node(id: $0.id)?.nameInCloud }
    try deleteHeldCopies(of: places)
    try nodes.deleteSubtree(of: row.id)
    var first: OperationRow?
    for (target, name) in zip(targets, names) {
      var operation = OperationRow(
        uuid: UUIDv7.make(atMs: now), zone: target.zone, kind: .delete, node: nil, nodeUUID: target.uuid,
        nodeID: target.nodeID, changeset: name, createdMs: now)
      try operations.insert(&operation, dependsOn: ends.map(\.id))
      first = first ?? operation
    }
    return first
  }

  /// Queues the ends of the local user's branches that are shown at a node or below it.
  private func queueEnds(atOrBelow row: NodeRow) throws -> [OperationRow] {
    try transaction.mounts.zones(below: row.id).compactMap(queueEnd)
  }

  /// Queues the end of a branch after the ends of those inside of it, and removes its nodes here.
  ///
  /// - Returns: nil for another user's branch, and one that has ended.
  private func queueEnd(ofZone id: Int64) throws -> OperationRow? {
    guard let zone = try transaction.zones.zone(id: id), zone.owner == nil, !zone.isClosed else { return nil }
    let root = try nodes.root(zone: id)
    let inner = try root.map(queueEnds) ?? []
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: id, kind: .delete, node: nil, nodeUUID: root?.uuid ?? UUID().uuidString,
      nodeID: zone.zone.root, createdMs: now)
    try operations.insert(&operation, dependsOn: inner.map(\.id))
    let grafts = try root.map(transaction.grafts.roots) ?? []
    if let root {
      // Nodes of other zones that were moved in here and not sent yet do not end with this one.
      let moved = try nodes.cloudPlaces(atOrBelow: root.id).filter { $0.zone != id }
      _ = try queueDeletes(of: moved, below: root, after: [])
    }
    try leave(grafts, after: operation)
    return operation
  }

  /// Queues the deletion of what an interrupted move has copied already. The rows are in the old zone.
  private func deleteHeldCopies(of places: [NodeStore.CloudPlace]) throws {
    guard try !transaction.moves.isEmpty else { return }
    for place in places {
      guard let copy = try transaction.moves.copy(zone: place.zone, place.nodeID), copy.isHeld else { continue }
      try CopyRemoval(readWrite).remove(copy, uuid: place.uuid)
    }
  }

  /// The nodes to delete in the cloud so that all of these go: those that it has, or may get by the request in flight,
  /// and whose place there is not below another of them. A node that was moved in here and not sent yet is elsewhere in
  /// the cloud.
  private func cloudTargets(_ places: [NodeStore.CloudPlace], zone: Int64) throws -> [NodeStore.CloudPlace] {
    let inFlight = try operations.nodesInFlight(zone: zone)
    let inCloud = places.filter { $0.zone == zone && ($0.cloudParent != nil || inFlight.contains($0.id)) }
    let nodeIDs = Set(inCloud.map(\.nodeID))
    let nodeIDByRow = Dictionary(uniqueKeysWithValues: places.map { ($0.id, $0.nodeID) })
    return inCloud.filter { place in
      guard let parent = place.cloudParent ?? place.parent.flatMap({ nodeIDByRow[$0] }) else { return true }
      return !nodeIDs.contains(parent)
    }
  }
}
