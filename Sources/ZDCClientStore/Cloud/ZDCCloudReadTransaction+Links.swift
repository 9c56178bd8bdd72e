internal import ZDCProtocol
public import ZDCTreesystem

// The links between nodes and the app's objects, one to one.

extension ZDCCloudReadTransaction {
  /// Returns the collection and the key of the object that is linked to the node; nil if the node is not linked.
  ///
  /// Inside ``ZeroDarkCloudDelegate/didDiscoverDeletedNode(_:at:timestamp:transaction:)`` the links of the deleted
  /// nodes can still be looked up:
  ///
  /// ```swift
  /// func didDiscoverDeletedNode(
  ///   _ node: ZDCNode, at path: ZDCTreesystemPath, timestamp: Date?, transaction: ZDCReadWriteTransaction
  /// ) {
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   guard let link = cloud?.linkedCollectionAndKey(forNodeID: node.uuid) else { return }
  ///   transaction.removeObject(forKey: link.key, inCollection: link.collection)
  /// }
  /// ```
  public final func linkedCollectionAndKey(forNodeID nodeID: String) -> (collection: String, key: String)? {
    transaction.poisoning { () -> (collection: String, key: String)? in
      // While the app is notified of a deletion, the node is gone but its link still exists.
      if let removed = transaction.cloudState.removedLinks.first(where: { $0.nodeUUID == nodeID }) {
        return (removed.collection, removed.key)
      }
      return try transaction.links.link(ofNode: nodeID, localUser: localUser, appTreeID: treeID)
    } ?? nil
  }

  /// Returns the collection of the object that is linked to the node; nil if the node is not linked.
  ///
  /// ```swift
  /// if cloud.linkedCollection(forNodeID: node.uuid) == "tasks" { refreshRow(node.uuid) }
  /// ```
  public final func linkedCollection(forNodeID nodeID: String) -> String? {
    linkedCollectionAndKey(forNodeID: nodeID)?.collection
  }

  /// Returns the key of the object that is linked to the node; nil if the node is not linked.
  ///
  /// ```swift
  /// if let key = cloud.linkedKey(forNodeID: node.uuid) { refreshList([key]) }
  /// ```
  public final func linkedKey(forNodeID nodeID: String) -> String? {
    linkedCollectionAndKey(forNodeID: nodeID)?.key
  }

  /// Returns whether an object is linked to the node.
  ///
  /// ```swift
  /// let isNew = !cloud.isNodeLinked(node.uuid)
  /// if isNew { askToDownload(node) }
  /// ```
  public final func isNodeLinked(_ nodeID: String) -> Bool {
    linkedCollectionAndKey(forNodeID: nodeID) != nil
  }

  /// Returns the linked object, as the type that is registered for its collection; nil if there is none.
  ///
  /// ```swift
  /// guard let task = cloud.linkedObject(forNodeID: node.uuid) as? Task else { return }
  /// show([task.title])
  /// ```
  public final func linkedObject(forNodeID nodeID: String) -> Any? {
    linkedCollectionAndKey(forNodeID: nodeID).flatMap {
      transaction.object(forKey: $0.key, inCollection: $0.collection)
    }
  }

  /// Returns the object that is linked to the node at that path; nil if there is no such node or no link.
  ///
  /// ```swift
  /// let path = ZDCTreesystemPath(pathComponents: ["Groceries", "milk"])
  /// if let task = cloud.linkedObject(forPath: path) as? Task { show([task.title]) }
  /// ```
  public final func linkedObject(forPath path: ZDCTreesystemPath) -> Any? {
    node(path: path).flatMap { linkedObject(forNodeID: $0.uuid) }
  }

  /// Returns the ``ZDCNode/uuid`` of the node that is linked to the object; nil if none is.
  ///
  /// ```swift
  /// guard let nodeID = cloud.linkedNodeID(forKey: task.uuid, inCollection: "tasks") else { return }
  /// cloud.queueDataUpload(forNodeID: nodeID, withChangeset: nil)
  /// ```
  public final func linkedNodeID(forKey key: String, inCollection collection: String) -> String? {
    transaction.poisoning { () -> String? in
      let removed = transaction.cloudState.removedLinks.first { $0.key == key && $0.collection == collection }
      if let removed { return removed.nodeUUID }
      return try linkedRow(forKey: key, inCollection: collection)?.uuid
    } ?? nil
  }

  /// Returns the node that is linked to the object; nil if none is, or if the node is in another tree.
  ///
  /// ```swift
  /// if let node = cloud.linkedNode(forKey: task.uuid, inCollection: "tasks") {
  ///   cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil)
  /// }
  /// ```
  public final func linkedNode(forKey key: String, inCollection collection: String) -> ZDCNode? {
    transaction.poisoning {
      try linkedRow(forKey: key, inCollection: collection).map(transaction.zdcNode)
    } ?? nil
  }

  final func linkedRow(forKey key: String, inCollection collection: String) throws -> NodeRow? {
    let rowKey = transaction.objects.rowKey(forKey: key, inCollection: collection)
    guard let id = try transaction.links.node(localUser: localUser, rowKey: rowKey) else { return nil }
    return try transaction.nodes.node(id: id).flatMap(ours)
  }
}
