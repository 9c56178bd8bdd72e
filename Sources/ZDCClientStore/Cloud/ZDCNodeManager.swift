public import ZDCTreesystem

/// Looks into the local trees of all users, by node. Nothing here asks the server.
///
/// ```swift
/// let path = zdc.nodeManager.path(for: node, transaction: transaction)
/// ```
///
/// Calls without `try` do not throw: a database error poisons the transaction. Enumerations throw only what `body`
/// throws.
public struct ZDCNodeManager: Sendable {
  /// The manager. It has no state, so apps may use this value or `zdc.nodeManager`.
  public static let sharedInstance = ZDCNodeManager()

  // MARK: One node

  /// Returns the path of a node; nil if it is not on this device.
  ///
  /// ```swift
  /// let path = zdc.nodeManager.path(for: node, transaction: transaction)
  /// print(path?.fullPath() ?? "deleted")
  /// ```
  public func path(for node: ZDCNode, transaction: ZDCReadTransaction) -> ZDCTreesystemPath? {
    transaction.poisoning { try transaction.nodes.node(uuid: node.uuid).map(transaction.zdcPath) } ?? nil
  }

  /// Returns the root of a trunk; nil if its tree has not been pulled yet.
  ///
  /// ```swift
  /// let inbox = zdc.nodeManager.trunkNode(
  ///   forLocalUserID: user.uuid, treeID: zdc.primaryTreeID, trunk: .inbox, transaction: transaction)
  /// ```
  public func trunkNode(
    forLocalUserID localUserID: String, treeID: String, trunk: ZDCTreesystemTrunk, transaction: ZDCReadTransaction
  ) -> ZDCTrunkNode? {
    transaction.node(id: ZDCTrunkNode.uuid(forLocalUserID: localUserID, treeID: treeID, trunk: trunk))
  }

  /// Returns the root of the trunk that the node is below; nil if the node is not on this device.
  ///
  /// ```swift
  /// let top = zdc.nodeManager.trunkNode(for: node, transaction: transaction)
  /// ```
  public func trunkNode(for node: ZDCNode, transaction: ZDCReadTransaction) -> ZDCTrunkNode? {
    transaction.poisoning { () -> ZDCTrunkNode? in
      guard let row = try transaction.nodes.node(uuid: node.uuid) else { return nil }
      return try transaction.zdcNode(transaction.ancestry(of: row).top)
    } ?? nil
  }

  /// Returns the ``ZDCNode/uuid`` of each node above, from the trunk's root down to the parent; none for a trunk's root
  /// or an unknown node.
  ///
  /// ```swift
  /// let above = zdc.nodeManager.parentNodeIDs(for: node, transaction: transaction)
  /// show(above.compactMap { transaction.node(id: $0)?.name })  // a trunk's root has no name
  /// ```
  public func parentNodeIDs(for node: ZDCNode, transaction: ZDCReadTransaction) -> [String] {
    transaction.poisoning { () -> [String] in
      guard let row = try transaction.nodes.node(uuid: node.uuid) else { return [] }
      let (top, path) = try transaction.ancestry(of: row)
      return path.isEmpty ? [] : [top.uuid] + path.dropLast().map(\.uuid)
    } ?? []
  }

  /// Returns whether the node is somewhere below the other. A node is not below itself.
  ///
  /// ```swift
  /// let nodes = ZDCNodeManager.sharedInstance
  /// let mayMove = !nodes.isNode(folder.uuid, aDescendantOf: node.uuid, transaction: transaction)
  /// ```
  public func isNode(_ nodeID: String, aDescendantOf other: String, transaction: ZDCReadTransaction) -> Bool {
    transaction.poisoning { () -> Bool in
      guard nodeID != other, let row = try transaction.nodes.node(uuid: nodeID),
        let ancestor = try transaction.nodes.node(uuid: other)
      else { return false }
      return try transaction.isNode(row, atOrBelow: ancestor)
    } ?? false
  }

  /// Returns whether the node has children on this device; false for an unknown node.
  ///
  /// ```swift
  /// let isFolder = zdc.nodeManager.hasChildren(node.uuid, transaction: transaction)
  /// ```
  public func hasChildren(_ nodeID: String, transaction: ZDCReadTransaction) -> Bool {
    transaction.poisoning { () -> Bool in
      guard let row = try transaction.nodes.node(uuid: nodeID) else { return false }
      return try transaction.nodes.childCount(of: row.id) > 0
    } ?? false
  }

  // MARK: Finding

  /// Returns the child of that name; nil if there is none on this device. The name need not be normalised.
  ///
  /// ```swift
  /// let archive = zdc.nodeManager.findNode(withName: "Archive", parentID: folder.uuid, transaction: transaction)
  /// ```
  public func findNode(withName name: String, parentID: String, transaction: ZDCReadTransaction) -> ZDCNode? {
    transaction.poisoning { () -> ZDCNode? in
      guard let parent = try transaction.nodes.node(uuid: parentID) else { return nil }
      return try transaction.nodes.child(of: parent, named: name).map(transaction.zdcNode)
    } ?? nil
  }

  /// Returns the node at a path of a user's tree; nil if there is none on this device, or if the user is not local.
  ///
  /// ```swift
  /// let note = zdc.nodeManager.findNode(
  ///   withPath: path, localUserID: user.uuid, treeID: zdc.primaryTreeID, transaction: transaction)
  /// ```
  public func findNode(
    withPath path: ZDCTreesystemPath, localUserID: String, treeID: String, transaction: ZDCReadTransaction
  ) -> ZDCNode? {
    transaction.cloud(forLocalUserID: localUserID, treeID: treeID)?.node(path: path)
  }

  /// Returns the node with a ``ZDCNode/cloudID`` in a user's tree; nil if there is none on this device.
  ///
  /// ```swift
  /// let cover = zdc.nodeManager.findNode(
  ///   withCloudID: invitation.cloudID, localUserID: user.uuid, treeID: zdc.primaryTreeID, transaction: transaction)
  /// ```
  public func findNode(
    withCloudID cloudID: String, localUserID: String, treeID: String, transaction: ZDCReadTransaction
  ) -> ZDCNode? {
    transaction.cloud(forLocalUserID: localUserID, treeID: treeID)?.node(cloudID: cloudID)
  }

  // MARK: Enumerating

  /// Calls `body` with each child, in the order in which this device first saw them, until it sets `stop`.
  ///
  /// `body` may change the tree; removed nodes are skipped.
  ///
  /// Reads 500 children at a time, so memory does not grow with the folder.
  ///
  /// ```swift
  /// zdc.nodeManager.enumerateNodes(withParentID: folder.uuid, transaction: transaction) { node, stop in
  ///   if node.cloudDataInfo == nil { cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil) }
  /// }
  /// ```
  public func enumerateNodes(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (_ node: ZDCNode, _ stop: inout Bool) throws -> Void
  ) rethrows {
    guard let parent = row(parentID, transaction) else { return }
    var stop = false
    try forEachChild(of: parent, transaction) { _, node in
      try body(node, &stop)
      return !stop
    }
  }

  /// Calls `body` with each node below, a parent before its children.
  ///
  /// ```swift
  /// zdc.nodeManager.recursiveEnumerateNodes(
  ///   withParentID: folder.uuid, transaction: transaction
  /// ) { node, pathFromParent, recurseInto, stop in
  ///   recurseInto = node.name != "Archive"
  ///   print(pathFromParent.count, node.name ?? "")
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - parentID: The ``ZDCNode/uuid`` of the node to begin at.
  ///   - transaction: The transaction to read from.
  ///   - body: `pathFromParent` are the nodes that lead to it. `recurseInto` is initially true; set it to false to skip
  ///     the nodes below. `stop` ends the enumeration.
  public func recursiveEnumerateNodes(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (
      _ node: ZDCNode, _ pathFromParent: [ZDCNode], _ recurseInto: inout Bool, _ stop: inout Bool
    ) throws -> Void
  ) rethrows {
    guard let parent = row(parentID, transaction) else { return }
    _ = try recurse(parent, [], transaction, body)
  }

  private func recurse(
    _ parent: Int64, _ path: [ZDCNode], _ transaction: ZDCReadTransaction,
    _ body: (ZDCNode, [ZDCNode], inout Bool, inout Bool) throws -> Void
  ) rethrows -> Bool {
    try forEachChild(of: parent, transaction) { row, node in
      var (recurseInto, stop) = (true, false)
      try body(node, path, &recurseInto, &stop)
      if stop || !recurseInto { return !stop }
      return try recurse(row, path + [node], transaction, body)
    }
  }

  private func row(_ nodeID: String, _ transaction: ZDCReadTransaction) -> Int64? {
    transaction.poisoning { try transaction.nodes.node(uuid: nodeID)?.id } ?? nil
  }

  /// A page of children at a time: a folder may have a million.
  @discardableResult
  private func forEachChild(
    of parent: Int64, _ transaction: ZDCReadTransaction, _ body: (_ row: Int64, _ node: ZDCNode) throws -> Bool
  ) rethrows -> Bool {
    var last: Int64 = 0
    while true {
      let page = transaction.poisoning { try transaction.nodes.children(of: parent, after: last, limit: 500) } ?? []
      guard let end = page.last else { return true }
      last = end.id
      for row in page {
        let shown = transaction.poisoning { try transaction.shown(row) }
        guard let shown, let node = transaction.poisoning({ try transaction.zdcNode(row) }) else { return false }
        guard try body(shown.id, node) else { return false }
      }
    }
  }
}
