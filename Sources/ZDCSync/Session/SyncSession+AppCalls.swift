package import ZDCClientStore
package import ZDCProtocol

extension SyncSession {
  /// Calls the app about a node.
  ///
  /// - Throws: ``DelegateError``, including for errors of non-throwing methods that the app calls on the transaction.
  package func tell(
    _ call: ZDCDelegateFailure.Call, _ node: NodeID, in transaction: ZDCReadWriteTransaction,
    _ body: (any ZeroDarkCloudDelegate) throws -> Void
  ) throws {
    if let known = transaction.appCalls.takeKnown(call, node) { throw known }
    if let error = transaction.poisonError { throw error }
    do {
      try body(delegate())
      if let error = transaction.takePoison() { throw error }
    } catch {
      _ = transaction.takePoison()
      throw DelegateError(underlying: error, call: call, node: node)
    }
  }

  /// Writes to the database and calls the app in the process. An error that the app throws is stored with its node, and
  /// reverts the changes that depend on that call. All other changes are written.
  ///
  /// - Returns: The result, and the app's first error.
  func writeNotifyingDelegate<Result: Sendable>(
    _ body: @Sendable (ZDCReadWriteTransaction) throws -> Result
  ) async throws -> (result: Result, refusal: DelegateError?) {
    do {
      return (try await database.asyncReadWrite(body), nil)
    } catch let error as DelegateError {
      return try await database.asyncReadWrite { transaction in
        (transaction.appCalls.isolates, transaction.appCalls.known) = (true, error)
        return (try body(transaction), transaction.appCalls.failure)
      }
    }
  }

  /// Runs a part of a ``writeNotifyingDelegate(_:)`` transaction that is reverted if the app throws.
  ///
  /// - Parameters:
  ///   - node: The node that the part concerns.
  ///   - part: The part to repeat if the app throws in any call.
  ///   - receivedMs: The time of a deletion.
  /// - Returns: False if the app threw; none of the part's changes are then written.
  @discardableResult
  package func part(
    _ part: DelegateFailureStore.Part, of zone: Int64, _ node: NodeID, receivedMs: UInt64? = nil,
    in transaction: ZDCReadWriteTransaction, _ body: () throws -> Void
  ) throws -> Bool {
    guard transaction.appCalls.isolates else {
      try body()
      return true
    }
    do {
      try transaction.undoable(body)
      return true
    } catch let error as DelegateError {
      transaction.appCalls.failure = transaction.appCalls.failure ?? error
      try transaction.delegateFailures.record(error, zone: zone, node: node, part: part, receivedMs: receivedMs)
      transaction.afterCommit { [events] in events.report(error) }
      return false
    }
  }
}
