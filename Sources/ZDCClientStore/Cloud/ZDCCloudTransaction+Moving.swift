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
    guard let parent = try node.parentID.flatMap({ try self.row($0) }) else {
      throw ZDCCloudError(.missingParent, detail: "the node's parent is not in the tree")
    }
    let name = try fold(node.name ?? "", nil)
    let isMove = parent.id != row.parent || name.utf8 != row.name
    if isMove { try checkMove(row, below: parent, name: name, path: nil) }
    row.burnMs = node.burnDate?.ms
    if isMove { return try transaction.zdcOperation(try move(row, below: parent, name: name)) }
    try nodes.update(row)
    try revive(row)
    return try transaction.zdcOperation(try queueRecord(.modify, row))
  }

  /// Moves a node, and all below it, to another path.
  ///
  /// Content is not sent again, however large it is. A path that the node has already changes nothing.
  ///
  /// ```swift
  /// let target = ZDCTreesystemPath(pathComponents: ["Archive", "beach.jpg"])
  /// try cloud.moveNode(node, to: cloud.conflictFreePath(target))
  /// ```
  ///
  /// - Returns: the node as it is now.
  /// - Throws: ``ZDCCloudError`` as ``modifyNode(_:)``.
  @discardableResult
  public func moveNode(_ node: ZDCNode, to path: ZDCTreesystemPath) throws -> ZDCNode {
    let row = try stored(node)
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
    guard parent.zone == row.zone else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "nodes do not move between trunks")
    }
    guard try !nodes.isNode(parent.id, atOrBelow: row.id) else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "a node cannot be moved below itself")
    }
    try checkDepth(row, parent.depth + 1, path)
    let tag = try nodes.keys(of: parent).nameTag(name)
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
    row.nameTag = try nodes.keys(of: parent).nameTag(name)
    row.depth += shift
    try nodes.update(row)
    try nodes.shiftDepths(below: row.id, by: shift)
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
    let waiting = earlier.last { $0.state != .inFlight }
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
