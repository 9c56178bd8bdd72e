public import Dispatch
internal import ZDCAccounts
public import ZDCClientStore
internal import ZDCProtocol
public import ZDCTreesystem

// Calls from the original framework's database that apps use.

/// The id that the original framework used for an unknown user.
public let kZDCAnonymousUserID = "anonymous"

extension ZDCReadTransaction {
  /// Calls `body` with each object of a registered collection, in no particular order, until it sets `stop`.
  ///
  /// Does not throw. A database error or an unregistered collection poisons the transaction.
  public final func iterateKeysAndObjects(
    inCollection collection: String, using body: (_ key: String, _ object: Any, _ stop: inout Bool) -> Void
  ) {
    poisoning {
      let registered = try context.registry.entry(collection)
      try objects.forEach(inCollection: collection) { entry in
        var stop = false
        body(entry.key, try registered.decode(entry.json), &stop)
        return !stop
      }
    }
  }
}

extension ZDCReadWriteTransaction {
  /// Reports the object as changed without changing it. Errors poison the transaction.
  public func touchObject(forKey key: String, inCollection collection: String) {
    poisoning {
      guard let entry = try objects.entry(forKey: key, inCollection: collection) else { return }
      try objects.set(entry.json, forKey: key, inCollection: collection)
      signal(.objects)
    }
  }

  /// Removes objects, and deletes the nodes that are linked to them. Errors poison the transaction.
  public func removeObjects(forKeys keys: [String], inCollection collection: String) {
    for key in keys { removeObject(forKey: key, inCollection: collection) }
  }
}

extension ZDCDatabaseConnection {
  /// Queues a write transaction and returns. Calls `completionBlock` after the commit, on `completionQueue` or, if that
  /// is nil, on the main queue.
  ///
  /// If the transaction fails, `completionBlock` is not called; the error is logged and sent to
  /// ``ZDCSyncManager/statusUpdates``. Use ``asyncReadWrite(_:completion:)`` to handle it.
  public func asyncReadWrite(
    _ body: @escaping @Sendable (ZDCReadWriteTransaction) throws -> Void, completionQueue: DispatchQueue? = nil,
    completionBlock: @escaping @Sendable () -> Void
  ) {
    asyncReadWrite(body) { result in
      switch result {
      case .success: (completionQueue ?? .main).async { completionBlock() }
      case .failure: self.finish(result, nil)
      }
    }
  }
}

extension ZDCCloudReadTransaction {
  /// An alias for ``linkedObject(forPath:)``.
  public final func linkedObject(for path: ZDCTreesystemPath) -> Any? { linkedObject(forPath: path) }

  /// Whether the node has children.
  public final func hasChildren(_ node: ZDCNode) -> Bool { hasChildren(node.uuid) }
}

extension ZDCCloudTransaction {
  /// An alias for ``moveNode(_:to:)``.
  @discardableResult
  public func move(_ node: ZDCNode, to path: ZDCTreesystemPath) throws -> ZDCNode { try moveNode(node, to: path) }
}
