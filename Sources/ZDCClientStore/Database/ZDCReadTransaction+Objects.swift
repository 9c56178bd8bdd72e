#if compiler(>=6.2)
  /// The types that the app may store: any codable type, classes included. Only bytes leave the transaction, so values
  /// need not be sendable.
  public typealias ZDCStorable = Codable & SendableMetatype
#else
  /// The types that the app may store: any codable and sendable type.
  public typealias ZDCStorable = Codable & Sendable
#endif

// The app's objects by collection and key. All are sealed, including the collection and the key.

extension ZDCReadTransaction {
  package final var objects: ObjectStore {
    cached { ObjectStore(db: database, sealer: context.objectSealer) }
  }

  /// Returns the object as the type registered for the collection; nil if there is none.
  ///
  /// ```swift
  /// if let task = transaction.object(forKey: taskID, inCollection: "tasks") as? Task { print(task.title) }
  /// ```
  ///
  /// Does not throw. A database error, an unregistered collection, or bytes that do not decode poison the transaction.
  public final func object(forKey key: String, inCollection collection: String) -> Any? {
    if let known = frameworkObject(forKey: key, inCollection: collection) { return known }
    return poisoning {
      let registered = try context.registry.entry(collection)
      return try objects.row(forKey: key, inCollection: collection).map { row -> Any in
        if let known = try context.decoded.item(of: row, Any.self, inCollection: collection, objects) {
          return known.object
        }
        return try registered.decode(objects.open(row).json)
      }
    } ?? nil
  }

  /// Returns the object; nil if there is none. The collection need not be registered.
  ///
  /// The type may be given or inferred:
  ///
  /// ```swift
  /// let task: Task? = try transaction.object(forKey: taskID, inCollection: "tasks")
  /// ```
  ///
  /// - Throws: `ZDCError` with `objectNotDecodable`, or the database's error.
  public final func object<T: ZDCStorable>(
    _ type: T.Type = T.self, forKey key: String, inCollection collection: String
  ) throws -> T? {
    try objects.row(forKey: key, inCollection: collection).map { try item(of: $0, inCollection: collection).object }
  }

  /// Returns whether there is an object. Errors poison the transaction.
  ///
  /// ```swift
  /// if !transaction.hasObject(forKey: taskID, inCollection: "tasks") { askToDownload(node) }
  /// ```
  public final func hasObject(forKey key: String, inCollection collection: String) -> Bool {
    if let known = frameworkObject(forKey: key, inCollection: collection) { return known != nil }
    return poisoning { try objects.contains(key: key, inCollection: collection) } ?? false
  }

  /// Returns all keys of a collection, sorted.
  ///
  /// ```swift
  /// refreshList(try transaction.keys(inCollection: "tasks"))
  /// ```
  ///
  /// - Throws: The error of the database.
  public final func keys(inCollection collection: String) throws -> [String] {
    try objects.keys(inCollection: collection)
  }

  /// Returns the number of objects in a collection; 0 for a collection without objects.
  ///
  /// ```swift
  /// let isEmpty = try transaction.numberOfKeys(inCollection: "tasks") == 0
  /// ```
  ///
  /// - Throws: The error of the database.
  public final func numberOfKeys(inCollection collection: String) throws -> Int {
    try objects.count(inCollection: collection)
  }

  /// Calls `body` with each object of a collection, in no particular order, until `body` throws or sets `stop`.
  ///
  /// `body` may change the collection; objects that are gone are skipped.
  ///
  /// Every object is opened and decoded, so this reads the whole collection unless `stop` ends it:
  ///
  /// ```swift
  /// var open: [Task] = []
  /// try transaction.enumerateKeysAndObjects(Task.self, inCollection: "tasks") { key, task, stop in
  ///   if !task.completed { open.append(task) }
  ///   stop = open.count == 20
  /// }
  /// ```
  ///
  /// - Throws: The error of `body`; `ZDCError` with `objectNotDecodable` for an object of another type; the error of
  ///   the database.
  public final func enumerateKeysAndObjects<T: ZDCStorable>(
    _ type: T.Type = T.self, inCollection collection: String,
    using body: (_ key: String, _ object: T, _ stop: inout Bool) throws -> Void
  ) throws {
    try objects.forEachRow(inCollection: collection) { row in
      var stop = false
      let (key, object): (String, T) = try item(of: row, inCollection: collection)
      try body(key, object, &stop)
      return !stop
    }
  }

  private final func item<T: ZDCStorable>(
    of row: ObjectStore.SealedRow, inCollection collection: String
  ) throws -> (key: String, object: T) {
    if let known = try context.decoded.item(of: row, T.self, inCollection: collection, objects) { return known }
    let entry = try objects.open(row)
    return (entry.key, try ObjectCoding.decode(T.self, entry.json))
  }
}

extension ZDCReadWriteTransaction {
  /// Stores a copy of the object under its key, replacing what was there.
  ///
  /// Does not throw. These poison the transaction: a database error, an object that cannot be encoded, one of another
  /// type than the collection is registered for, and a collection of the framework, such as ``kZDCCollection_Nodes``.
  ///
  /// The object is sealed with the database's key, collection and key included. Nothing is uploaded unless you queue an
  /// upload of a node, in the same transaction:
  ///
  /// ```swift
  /// let changeset = try task.changeset()
  /// transaction.setObject(task, forKey: task.uuid, inCollection: "tasks")
  /// cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: changeset)
  /// ```
  public func setObject(_ object: some ZDCStorable, forKey key: String, inCollection collection: String) {
    poisoning {
      try context.registry.check(object, inCollection: collection)
      try objects.set(try ObjectCoding.encode(object), forKey: key, inCollection: collection)
      signal(.objects)
    }
  }

  /// Removes the object, if there is one. A node that is linked to it is deleted too, in every local user's tree, as
  /// ``ZDCCloudTransaction/delete(_:)`` does.
  ///
  /// Call ``ZDCCloudTransaction/unlinkKey(_:inCollection:)`` first to keep the node. Errors poison the transaction.
  ///
  /// ```swift
  /// cloud.unlinkKey(taskID, inCollection: "tasks")  // without this line, the node is deleted as well
  /// transaction.removeObject(forKey: taskID, inCollection: "tasks")
  /// ```
  public func removeObject(forKey key: String, inCollection collection: String) {
    poisoning {
      guard let rowKey = try objects.remove(key: key, inCollection: collection) else { return }
      for observer in context.objectRemoved { try observer(self, rowKey) }
      signal(.objects)
    }
  }

  /// Removes all objects of the collection, and deletes the nodes that are linked to them. Errors poison the
  /// transaction.
  ///
  /// ```swift
  /// try await connection.write { $0.removeAllObjects(inCollection: "drafts") }
  /// ```
  public func removeAllObjects(inCollection collection: String) {
    for key in poisoning({ try keys(inCollection: collection) }) ?? [] {
      removeObject(forKey: key, inCollection: collection)
    }
  }
}
