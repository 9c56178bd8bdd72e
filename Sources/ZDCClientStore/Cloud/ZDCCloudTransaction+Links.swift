extension ZDCCloudTransaction {
  /// Links a node to one of the app's objects, one to one. The object may be stored later in the same transaction.
  ///
  /// From then on, deleting the object deletes the node. Deleting the node only removes the link. Links exist on this
  /// device only. Linking the same two again changes nothing.
  ///
  /// ```swift
  /// let node = try cloud.createNode(withPath: path)
  /// transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
  /// try cloud.linkNodeID(node.uuid, toKey: task.uuid, inCollection: "tasks")
  /// ```
  ///
  /// - Throws: ``ZDCCloudError``: `invalidParameter` for an unknown node, `conflict` if the node or the object is
  ///   linked to something else.
  public func linkNodeID(_ nodeID: String, toKey key: String, inCollection collection: String) throws {
    guard let row = try row(nodeID) else {
      throw ZDCCloudError(
        .invalidParameter, detail: "the node is not in the tree: insert a new one first, in the same transaction")
    }
    if let link = try transaction.links.link(ofNode: row.id) {
      if link == (collection, key) { return }
      throw ZDCCloudError(.conflict, detail: "the node is linked to another object")
    }
    let rowKey = transaction.objects.rowKey(forKey: key, inCollection: collection)
    guard try transaction.links.node(localUser: localUser, rowKey: rowKey) == nil else {
      throw ZDCCloudError(.conflict, detail: "the object is linked to another node")
    }
    try transaction.links.insert(
      node: row.id, localUser: localUser, rowKey: rowKey, collection: collection, key: key)
  }

  /// Removes the object's link. Node and object stay. Does nothing if the object is not linked.
  ///
  /// ```swift
  /// if let nodeID = cloud.unlinkKey(task.uuid, inCollection: "tasks"), let node = cloud.node(id: nodeID) {
  ///   try cloud.delete(node)
  /// }
  /// ```
  ///
  /// - Returns: The ``ZDCNode/uuid`` of the node that was linked; nil if none was.
  @discardableResult
  public func unlinkKey(_ key: String, inCollection collection: String) -> String? {
    readWrite.poisoning { () -> String? in
      guard let row = try linkedRow(forKey: key, inCollection: collection) else { return nil }
      try transaction.links.remove(node: row.id)
      return row.uuid
    } ?? nil
  }

  /// Removes the node's link. Node and object stay. Does nothing if the node is not linked.
  ///
  /// ```swift
  /// cloud.unlinkNodeID(node.uuid)
  /// try cloud.linkNodeID(node.uuid, toKey: task.uuid, inCollection: "tasks")
  /// ```
  public func unlinkNodeID(_ nodeID: String) {
    readWrite.poisoning {
      if let row = try row(nodeID) { try transaction.links.remove(node: row.id) }
    }
  }
}

extension ZDCReadWriteTransaction {
  /// Called before a node that was deleted in the cloud is removed here. Its links, and those below it, can be looked
  /// up until ``endRemoval()``, so that the app finds its objects during the callback.
  package func unlinkBeforeRemoval(of rows: [NodeRow], keepLookups: Bool) throws {
    cloudState.removedLinks = keepLookups ? try rows.flatMap { try links.links(atOrBelow: $0.id) } : []
  }

  package func endRemoval() throws {
    cloudState.removedLinks = []
  }
}

/// Deleting a linked object deletes its nodes, of every local user who has linked one.
enum LinkedObjectRemoval {
  @Sendable
  package static func observe(_ transaction: ZDCReadWriteTransaction, rowKey: [UInt8]) throws {
    for id in try transaction.links.nodes(rowKey: rowKey) {
      guard let row = try transaction.nodes.node(id: id) else { continue }
      let facts = try transaction.cloudState.facts(ofZone: row.zone)
      let cloud = ZDCCloudTransaction(
        transaction, localUserID: facts.localUserID, localUser: facts.row.localUser, treeID: facts.row.appTreeID)
      if let pointer = try transaction.grafts.pointer(to: row) {
        _ = try cloud.leave(row, at: pointer)
      } else if row.parent != nil {
        _ = try cloud.delete(row: row)
      } else if facts.row.owner == nil, !facts.row.isTrunk {
        _ = try cloud.endBranch(row)
      } else {
        // The top of a tree cannot be deleted; its link goes.
        try transaction.links.remove(node: id)
      }
    }
  }
}
