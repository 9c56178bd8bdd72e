internal import GRDB
internal import ZDCProtocol
public import ZDCTreesystem

// The original's forms of enumeration, and lists of all nodes.

extension ZDCNodeManager {
  // MARK: Children

  /// Calls `body` with the uuid of each child until it sets `stop`.
  ///
  /// ```swift
  /// var children = 0
  /// zdc.nodeManager.enumerateNodeIDs(withParentID: folder.uuid, transaction: transaction) { _, stop in
  ///   children += 1
  ///   stop = children == 100
  /// }
  /// ```
  public func enumerateNodeIDs(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (_ nodeID: String, _ stop: inout Bool) throws -> Void
  ) rethrows {
    try enumerateNodes(withParentID: parentID, transaction: transaction) { node, stop in
      try body(node.uuid, &stop)
    }
  }

  /// The Swift name of ``enumerateNodeIDs(withParentID:transaction:using:)``.
  public func iterateNodeIDs(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (_ nodeID: String, _ stop: inout Bool) throws -> Void
  ) rethrows {
    try enumerateNodeIDs(withParentID: parentID, transaction: transaction, using: body)
  }

  /// The Swift name of ``enumerateNodes(withParentID:transaction:using:)``.
  public func iterateNodes(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (_ node: ZDCNode, _ stop: inout Bool) throws -> Void
  ) rethrows {
    try enumerateNodes(withParentID: parentID, transaction: transaction, using: body)
  }

  // MARK: Descendants

  /// The same as ``recursiveEnumerateNodes(withParentID:transaction:using:)``, with uuids.
  ///
  /// ```swift
  /// var below: [String] = []
  /// zdc.nodeManager.recursiveEnumerateNodeIDs(
  ///   withParentID: folder.uuid, transaction: transaction
  /// ) { nodeID, _, _, _ in below.append(nodeID) }
  /// try session.diskManager.deleteNodeData(forNodeIDs: below)
  /// ```
  public func recursiveEnumerateNodeIDs(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (
      _ nodeID: String, _ pathFromParent: [String], _ recurseInto: inout Bool, _ stop: inout Bool
    ) throws -> Void
  ) rethrows {
    try recursiveEnumerateNodes(withParentID: parentID, transaction: transaction) { node, path, recurseInto, stop in
      try body(node.uuid, path.map(\.uuid), &recurseInto, &stop)
    }
  }

  /// The Swift name of ``recursiveEnumerateNodeIDs(withParentID:transaction:using:)``.
  public func recursiveIterateNodeIDs(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (
      _ nodeID: String, _ pathFromParent: [String], _ recurseInto: inout Bool, _ stop: inout Bool
    ) throws -> Void
  ) rethrows {
    try recursiveEnumerateNodeIDs(withParentID: parentID, transaction: transaction, using: body)
  }

  /// The Swift name of ``recursiveEnumerateNodes(withParentID:transaction:using:)``.
  public func recursiveIterateNodes(
    withParentID parentID: String, transaction: ZDCReadTransaction,
    using body: (
      _ node: ZDCNode, _ pathFromParent: [ZDCNode], _ recurseInto: inout Bool, _ stop: inout Bool
    ) throws -> Void
  ) rethrows {
    try recursiveEnumerateNodes(withParentID: parentID, transaction: transaction, using: body)
  }

  // MARK: All nodes

  /// Returns the `uuid`s of a user's nodes in all apps' trees, without the roots of the trunks, in no particular order.
  ///
  /// ```swift
  /// let count = zdc.nodeManager.allNodeIDs(withLocalUserID: user.uuid, transaction: transaction).count
  /// ```
  public func allNodeIDs(
    withLocalUserID localUserID: String, transaction: ZDCReadTransaction
  ) -> [String] {
    nodeIDs(localUserID, treeID: nil, isUploaded: false, transaction)
  }

  /// Returns the `uuid`s of a user's nodes in one app's tree, without the roots of the trunks, in no particular order.
  public func allNodeIDs(
    withLocalUserID localUserID: String, treeID: String, transaction: ZDCReadTransaction
  ) -> [String] {
    nodeIDs(localUserID, treeID: treeID, isUploaded: false, transaction)
  }

  /// Returns the `uuid`s of those nodes in all apps' trees that the server has, in no particular order.
  public func allUploadedNodeIDs(
    withLocalUserID localUserID: String, transaction: ZDCReadTransaction
  ) -> [String] {
    nodeIDs(localUserID, treeID: nil, isUploaded: true, transaction)
  }

  /// Returns the `uuid`s of those nodes of one app's tree that the server has, in no particular order.
  ///
  /// ```swift
  /// let uploaded = Set(
  ///   zdc.nodeManager.allUploadedNodeIDs(
  ///     withLocalUserID: user.uuid, treeID: zdc.primaryTreeID, transaction: transaction))
  /// let isUploaded = uploaded.contains(node.uuid)
  /// ```
  public func allUploadedNodeIDs(
    withLocalUserID localUserID: String, treeID: String, transaction: ZDCReadTransaction
  ) -> [String] {
    nodeIDs(localUserID, treeID: treeID, isUploaded: true, transaction)
  }

  private func nodeIDs(
    _ localUserID: String, treeID: String?, isUploaded: Bool, _ transaction: ZDCReadTransaction
  ) -> [String] {
    guard let userID = UserID(text: localUserID) else { return [] }
    let query = """
      SELECT n.uuid FROM zdc_node n JOIN zdc_zone z ON z.id = n.zone JOIN zdc_local_user u ON u.id = z.localUser
      WHERE u.userID = ?1 AND (?2 IS NULL OR z.appTreeID = ?2)
      AND CASE WHEN n.parent IS NULL THEN z.mount IS NOT NULL
        ELSE NOT EXISTS (SELECT 1 FROM zdc_zone m WHERE m.mount = n.id) END
      AND (n.recordVersion > 0 OR NOT ?3)
      """
    return transaction.poisoning {
      try String.fetchAll(transaction.database, sql: query, arguments: [userID.data, treeID, isUploaded])
    } ?? []
  }

  // MARK: Names

  /// Returns a name for the node that no other child of its parent has: its own, or one with a number.
  ///
  /// ```swift
  /// var photo = ZDCNode(localUserID: user.uuid)
  /// photo.parentID = folder.uuid
  /// photo.name = "beach.jpg"
  /// photo.name = zdc.nodeManager.resolveNamingConflict(photo, transaction: transaction)  // perhaps "beach 2.jpg"
  /// try cloud.insertNode(photo)
  /// ```
  public func resolveNamingConflict(_ node: ZDCNode, transaction: ZDCReadTransaction) -> String {
    let name = node.name ?? ""
    let free = transaction.poisoning { () -> String in
      guard let parent = try node.parentID.flatMap({ try transaction.nodes.node(uuid: $0) }) else { return name }
      return try NameRules.conflictFree(name) { candidate in
        let other = try transaction.nodes.child(of: parent, named: candidate).map(transaction.shown)
        return other != nil && other?.uuid != node.uuid
      }
    }
    return free ?? name
  }
}
