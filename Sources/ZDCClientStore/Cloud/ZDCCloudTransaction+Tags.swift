// Small values that hang on a node, on this device only. They go with the node.

extension ZDCCloudReadTransaction {
  /// Returns the tag's value, of the type that was stored; nil if there is none.
  ///
  /// ```swift
  /// let seen = cloud.tag(forNodeID: node.uuid, withIdentifier: "com.example.seen") as? Date
  /// ```
  public final func tag(forNodeID nodeID: String, withIdentifier identifier: String) -> Any? {
    transaction.poisoning { () -> Any? in
      guard let row = try row(nodeID), let bytes = try transaction.tags.value(node: row.id, identifier: identifier)
      else { return nil }
      return try TagCoding.decode(bytes)
    } ?? nil
  }

  /// Calls `block` with each tag of the node, by identifier, until it sets `stop`.
  ///
  /// ```swift
  /// try cloud.enumerateTags(forNodeID: node.uuid) { identifier, value, _ in print(identifier, value) }
  /// ```
  ///
  /// - Throws: The error of `block`, or of the database.
  public final func enumerateTags(
    forNodeID nodeID: String, with block: (_ identifier: String, _ tag: Any, _ stop: inout Bool) throws -> Void
  ) throws {
    guard let row = try row(nodeID) else { return }
    var stop = false
    for (identifier, bytes) in try transaction.tags.values(node: row.id) where !stop {
      try block(identifier, try TagCoding.decode(bytes), &stop)
    }
  }
}

extension ZDCCloudTransaction {
  /// Stores a tag; nil removes it. An unknown node is left alone.
  ///
  /// Tags exist on this device only, sealed, and are deleted with the node. A value of the app's own type poisons the
  /// transaction, as does a database error.
  ///
  /// ```swift
  /// cloud.setTag(Date(), forNodeID: node.uuid, withIdentifier: "com.example.seen")
  /// ```
  public func setTag(_ tag: (any ZDCTagValue)?, forNodeID nodeID: String, withIdentifier identifier: String) {
    guard let tag else { return removeTag(forNodeID: nodeID, withIdentifier: identifier) }
    readWrite.poisoning {
      guard let row = try row(nodeID) else { return }
      try transaction.tags.set(try TagCoding.encode(tag), node: row.id, identifier: identifier)
    }
  }

  /// Removes a tag. Does nothing if the node or the tag does not exist.
  ///
  /// ```swift
  /// cloud.removeTag(forNodeID: node.uuid, withIdentifier: "downloadedETag")
  /// ```
  public func removeTag(forNodeID nodeID: String, withIdentifier identifier: String) {
    readWrite.poisoning {
      if let row = try row(nodeID) { try transaction.tags.remove(node: row.id, identifier: identifier) }
    }
  }

  /// Removes all tags of a node. Does nothing if the node does not exist.
  ///
  /// ```swift
  /// cloud.removeAllTags(forNodeID: node.uuid)
  /// ```
  public func removeAllTags(forNodeID nodeID: String) {
    readWrite.poisoning {
      if let row = try row(nodeID) { try transaction.tags.removeAll(node: row.id) }
    }
  }
}
