internal import ZDCProtocol
package import ZDCTreesystem

// The marks on nodes that the app still wants to download. They exist on this device only, and survive a relaunch.

extension ZDCCloudReadTransaction {
  /// Returns whether any of the components is marked; false for an unknown node.
  ///
  /// ```swift
  /// let isWaiting = cloud.nodeIsMarkedAsNeedsDownload(node.uuid, components: .data)
  /// ```
  public final func nodeIsMarkedAsNeedsDownload(_ nodeID: String, components: ZDCNodeComponents) -> Bool {
    transaction.poisoning { () -> Bool in
      guard let row = try row(nodeID) else { return false }
      return try transaction.downloadMarks.components(node: row.id) & components.rawValue != 0
    } ?? false
  }

  /// Returns the ``ZDCNode/uuid`` of each node for which any of the components is marked, parents before children.
  ///
  /// ```swift
  /// for nodeID in cloud.nodeIDsMarkedAsNeedsDownload(components: .thumbnail) { refreshRow(nodeID) }
  /// ```
  public final func nodeIDsMarkedAsNeedsDownload(components: ZDCNodeComponents = .all) -> [String] {
    transaction.poisoning {
      try transaction.downloadMarks.nodes(localUser: localUser, treeID: treeID, components: components.rawValue)
    } ?? []
  }

  /// Returns the nodes whose data is marked, parents before children. A data mark that was removed and set again has a new
  /// `request`.
  package final func nodesWithRequestedData() throws -> [(node: ZDCNode, request: Int64)] {
    try transaction.downloadMarks.dataRequests(localUser: localUser, treeID: treeID).compactMap { uuid, request in
      node(id: uuid).map { ($0, request) }
    }
  }
}

extension ZDCCloudTransaction {
  /// Marks components of a node's content as needed on this device, in addition to those that are marked already.
  ///
  /// The mark survives a relaunch. ``ZDCDownloadManager/downloadMarkedContents(forLocalUserID:treeID:)`` downloads
  /// marked data, and the image manager renews marked thumbnails. Does nothing for an unknown node.
  ///
  /// ```swift
  /// func didDiscoverNewNode(_ node: ZDCNode, at path: ZDCTreesystemPath, transaction: ZDCReadWriteTransaction) {
  ///   let cloud = zdc.cloudTransaction(transaction, forLocalUserID: node.localUserID)
  ///   cloud?.markNodeAsNeedsDownload(node.uuid, components: .data)
  /// }
  /// ```
  public func markNodeAsNeedsDownload(_ nodeID: String, components: ZDCNodeComponents) {
    readWrite.poisoning {
      guard let row = try row(nodeID) else { return }
      let marks = transaction.downloadMarks
      try marks.set(try marks.components(node: row.id) | components.rawValue, node: row.id)
      readWrite.signal(.downloads)
    }
  }

  /// Removes the marks for these components.
  ///
  /// ```swift
  /// transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")  // the downloaded version
  /// cloud.unmarkNodeAsNeedsDownload(node.uuid, components: .data, ifETagMatches: info.eTag)
  /// ```
  ///
  /// - Parameters:
  ///   - nodeID: The node's ``ZDCNode/uuid``.
  ///   - components: The components that are no longer needed.
  ///   - eTag: The downloaded version. If the node has a newer one, the marks stay. With nil they are removed in any
  ///     case.
  public func unmarkNodeAsNeedsDownload(
    _ nodeID: String, components: ZDCNodeComponents, ifETagMatches eTag: String? = nil
  ) {
    readWrite.poisoning {
      guard let row = try row(nodeID) else { return }
      if let eTag, eTag != row.content?.content.eTag { return }
      let marks = transaction.downloadMarks
      try marks.set(try marks.components(node: row.id) & ~components.rawValue, node: row.id)
    }
  }
}
