package import ZDCClientStore
package import ZDCProtocol

extension SyncSession {
  /// Calls the app about a node.
  ///
  /// - Throws: ``DelegateError``, also for an error of a call in it that does not throw.
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

  /// Writes, and calls the app on the way. What it throws is kept with the node that it was told of, and takes back what
  /// hangs on that call; the rest is written.
  ///
  /// - Returns: also the first error of the app's.
  func writeTelling<Result: Sendable>(
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

  /// A part of a transaction of ``writeTelling(_:)`` that stands or falls with what the app says of it.
  ///
  /// - Parameters:
  ///   - node: whose part it is.
  ///   - part: what is to be done again if the app throws, in whatever call.
  ///   - receivedMs: of a deletion.
  /// - Returns: false if the app threw: nothing of it has happened.
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
