// The queue, as far as the app may change it.

extension ZDCCloudTransaction {
  /// Returns the operations queued so far in this transaction, in order.
  ///
  /// ```swift
  /// try cloud.createNode(withPath: path)
  /// let queued = cloud.addedOperations()
  /// print(queued.count, "operations")
  /// ```
  public func addedOperations() -> [ZDCCloudOperation] {
    readWrite.poisoning {
      try operations.added.compactMap { try operationRow($0.uuid) }.map(transaction.zdcOperation)
    } ?? []
  }

  /// Returns the operations queued so far in this transaction for one node.
  ///
  /// ```swift
  /// let node = try cloud.createNode(withPath: path)
  /// let operations = cloud.addedOperations(forNodeID: node.uuid)  // its record, then its content
  /// ```
  public func addedOperations(forNodeID nodeID: String) -> [ZDCCloudOperation] {
    addedOperations().filter { $0.nodeID == nodeID }
  }

  /// Stores a changed copy: its priority and its added dependencies. Dependencies are never removed.
  ///
  /// A finished operation is not changed.
  ///
  /// ```swift
  /// for var operation in cloud.pendingOperations(forNodeID: node.uuid) {
  ///   operation.priority = 10  // before those with 0, the default
  ///   try cloud.modifyOperation(operation)
  /// }
  /// ```
  ///
  /// - Throws: ``ZDCCloudError`` `invalidParameter` if the operation would depend on itself.
  public func modifyOperation(_ operation: ZDCCloudOperation) throws {
    guard var row = try operationRow(operation.uuid) else { return }
    let known = Set(try operations.dependencies(of: row.id))
    for uuid in operation.dependencies.sorted() {
      guard let dependency = try operations.operation(uuid: uuid), !known.contains(dependency.id) else { continue }
      try addDependency(of: row.id, on: dependency.id)
    }
    row.priority = operation.priority
    // Even if that is the same: observations of the queue do not see new dependencies.
    try operations.update(row)
    signalQueue()
  }
}
