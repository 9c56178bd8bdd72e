internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

// Renaming and moving are one thing: the node's record names its parent and holds its name.

extension ZDCCloudTransaction {
  /// Stores a changed copy of a node. Another ``ZDCNode/name`` or ``ZDCNode/parentID`` moves it.
  ///
  /// An operation of the node that is queued and was not sent yet takes the change along; it is returned then.
  ///
  /// ```swift
  /// guard var node = cloud.node(id: node.uuid) else { return }
  /// node.name = "Holiday"
  /// node.parentID = folder.uuid
  /// try cloud.modifyNode(node)  // renamed and moved in one operation
  /// ```
  ///
  /// - Throws: ``ZDCCloudError``: `invalidParameter` for an unknown node, a trunk, a bad name, or a parent below the
  ///   node itself; `missingParent`;
  ///   `conflict` if the name is taken; `unsupportedShare` if ``ZDCNode/shareList`` was changed.
  @discardableResult
  public func modifyNode(_ node: ZDCNode) throws -> ZDCCloudOperation {
    var row = try stored(node)
    let facts = try transaction.cloudState.facts(ofZone: row.zone)
    guard node.shareList == facts.shareList else { throw Self.unsupportedShare }
    if let moved = try moved(row, to: node) { return moved }
    try checkMayWrite(zone: row.zone)
    row.burnMs = node.burnDate?.ms
    try nodes.update(row)
    try revive(row)
    return try transaction.zdcOperation(try queueRecord(.modify, row))
  }

  /// Moves or renames a node as a changed copy says, with its other changes; nil if name and parent are the same.
  private func moved(_ row: NodeRow, to node: ZDCNode) throws -> ZDCCloudOperation? {
    var place = try transaction.place(of: row)
    if place.parent == nil, node.parentID == nil, node.name == nil { return nil }
    if place.parent == nil { place = try movable(row) }
    guard let parent = try node.parentID.flatMap({ try self.row($0) }) else {
      throw ZDCCloudError(.missingParent, detail: "the node's parent is not in the tree")
    }
    let name = try fold(node.name ?? "", nil)
    guard parent.id != place.parent || name.utf8 != place.name else { return nil }
    place = try movable(row)
    try checkMove(place, below: parent, name: name, path: nil)
    if place.id == row.id {
      place.burnMs = node.burnDate?.ms
    } else if row.burnMs != node.burnDate?.ms {
      throw ZDCCloudError(
        .invalidParameter, detail: "the top of a shared branch cannot be moved and changed in one call")
    }
    return try transaction.zdcOperation(try move(place, below: parent, name: name))
  }

  /// Moves a node, and all below it, to another path.
  ///
  /// Content is not sent again, however large it is. A path that the node has already changes nothing.
  ///
  /// The path may be in another branch: in one that is shared separately, or in a grafted branch of another user. In the
  /// cloud, the nodes are then copied and deleted at their old place afterwards, so an interrupted move loses nothing. On
  /// this device they keep their ``ZDCNode/uuid``, links, tags and queued operations. The members of the new branch can read
  /// them from then on, and their content counts for its owner. Nodes that other members add to the old place in the
  /// meantime, or change there, move as well.
  ///
  /// ```swift
  /// let target = ZDCTreesystemPath(pathComponents: ["Archive", "beach.jpg"])
  /// try cloud.moveNode(node, to: cloud.conflictFreePath(target))
  /// ```
  ///
  /// - Returns: the node as it is now.
  /// - Throws: ``ZDCCloudError`` as ``modifyNode(_:)``. For a move to another branch also `notAllowed` if the local user may
  ///   not write there without restrictions, or not delete the node here, and `invalidParameter` for another trunk (only a
  ///   message of the inbox moves to the home trunk), for the top of a shared branch, for a node with one below it, for more than 10,000 nodes, and for nodes whose last such move
  ///   has not ended.
  @discardableResult
  public func moveNode(_ node: ZDCNode, to path: ZDCTreesystemPath) throws -> ZDCNode {
    let row = try movable(try stored(node))
    guard let parentPath = path.parent() else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "a node cannot take the place of a trunk")
    }
    guard let parent = try self.row(at: parentPath) else { throw try missingParent(path) }
    let name = try fold(path.nodeName, path)
    guard parent.id != row.parent || name.utf8 != row.name else { return try transaction.zdcNode(row) }
    try checkMove(row, below: parent, name: name, path: path)
    _ = try move(row, below: parent, name: name)
    guard let moved = try nodes.node(id: row.id) else { throw ZDCError(.corruptDatabase) }
    return try transaction.zdcNode(moved)
  }

  private func checkMove(
    _ row: NodeRow, below parent: NodeRow, name: FoldedName, path: ZDCTreesystemPath?
  ) throws {
    if parent.zone != row.zone { try checkCrossing(row, below: parent, path) }
    guard try !nodes.isNode(parent.id, atOrBelow: row.id) else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "a node cannot be moved below itself")
    }
    try checkDepth(row, parent.depth + 1, path)
    let tag = try nodes.nameKeys(of: parent).nameTag(name)
    guard try !nodes.hasChild(of: parent.id, tag: tag, except: row.id) else {
      throw ZDCCloudError(.conflict, path: path, detail: "the name is taken")
    }
  }

  /// Checks the depth of the whole branch: nodes that the cloud has and nodes still to be created have different
  /// limits.
  private func checkDepth(_ row: NodeRow, _ depth: Int, _ path: ZDCTreesystemPath?) throws {
    guard depth > row.depth else { return }
    let heights = try nodes.heights(of: row.id, depth: row.depth)
    guard depth + heights.all <= Limits.depthAfterMoves else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "deeper than \(Limits.depthAfterMoves) levels")
    }
    guard depth + (heights.new ?? -depth) <= Limits.depthAtCreation else {
      throw ZDCCloudError(
        .invalidParameter, path: path, detail: "a new node would be deeper than \(Limits.depthAtCreation) levels")
    }
  }

  private func move(_ row: NodeRow, below parent: NodeRow, name: FoldedName) throws -> OperationRow {
    let before = try operations.placements(above: row, in: nodes)
    var row = row
    let shift = parent.depth + 1 - row.depth
    row.parent = parent.id
    row.name = name.utf8
    row.nameTag = try nodes.nameKeys(of: parent).nameTag(name)
    row.depth += shift
    try nodes.update(row)
    try nodes.shiftDepths(below: row.id, by: shift)
    try transaction.moves.setCrossing(row.id, parent.zone != row.zone)
    if parent.zone == row.zone { try readWrite.dropSplits(atOrBelow: row) }
    try revive(row)
    let operation = try queueRecord(.move, row)
    let after = try operations.placements(above: row, in: nodes)
    guard try operations.replaceDependencies(of: row, before: before, after: after) else { throw Self.waitsForItself }
    return operation
  }

  /// Queues a new version of the node's record, unless one is queued that was not sent yet: it is made from the row
  /// when it is sent.
  func queueRecord(_ kind: OperationRow.Kind, _ row: NodeRow) throws -> OperationRow {
    let earlier = try operations.operations(node: row.id).filter(\.kind.isRecord)
    // A restoration of content ends if another device puts content. Other changes of the record do not. A record with old
    // content goes to the node's old zone.
    let isCrossing = try transaction.moves.isCrossing(row.id)
    let waiting = earlier.last {
      $0.state != .inFlight && !$0.isRestoration && !(isCrossing && $0.namesOldContent)
    }
    if var waiting {
      // A queued change of the record alone becomes the move.
      if waiting.kind == .modify, kind == .move {
        waiting.kind = .move
        try operations.update(waiting)
      }
      signalQueue()
      return waiting
    }
    return try queue(kind, row, dependsOn: earlier.map(\.id))
  }
}
