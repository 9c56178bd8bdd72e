internal import ZDCProtocol

// The marks on nodes that the app still wants to download. They exist on this device only, and survive a relaunch.

extension ZDCCloudReadTransaction {
  /// Whether any of the components is marked.
  public final func nodeIsMarkedAsNeedsDownload(_ nodeID: String, components: ZDCNodeComponents) -> Bool {
    transaction.poisoning { () -> Bool in
      guard let row = try row(nodeID) else { return false }
      return try transaction.downloadMarks.components(node: row.id) & components.rawValue != 0
    } ?? false
  }

  /// The nodes for which any of the components is marked, shallow first.
  public final func nodeIDsMarkedAsNeedsDownload(components: ZDCNodeComponents = .all) -> [String] {
    transaction.poisoning {
      try transaction.downloadMarks.nodes(localUser: localUser, treeID: treeID, components: components.rawValue)
    } ?? []
  }
}

extension ZDCCloudTransaction {
  /// Adds the components to those that are marked.
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
