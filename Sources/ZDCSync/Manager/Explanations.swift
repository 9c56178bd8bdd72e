package import ZDCClientStore
internal import ZDCProtocol

// Explanations that are updated when their subject changes.

extension ZDCSyncManager {
  /// Returns explanations of why the node is not in sync, now and after each change, until the node is deleted or the
  /// framework is closed.
  ///
  /// Consecutive equal values are delivered once. A slow reader gets the newest value. For an unknown node, the
  /// sequence ends immediately. Unlike ``ZDCDatabaseConnection/values(of:)`` with `explain(nodeID:)`, it also follows
  /// state outside the database: whether the engine of this process reaches the server.
  ///
  /// ```swift
  /// for try await explanation in session.syncManager.explanations(forNodeID: node.uuid) {
  ///   show(explanation.isInSync ? ["synced"] : explanation.operations.map(\.unblockedBy))
  /// }
  /// ```
  public func explanations(forNodeID nodeID: String) -> ZDCExplanations<ZDCNodeExplanation> {
    explanations { transaction in
      try transaction.nodes.node(uuid: nodeID).map { try Explainer.explain($0, transaction) }
    }
  }

  /// Returns explanations of why the operation waits, now and after each change, until it is done or reverted, or the
  /// framework is closed.
  ///
  /// ```swift
  /// for try await explanation in session.syncManager.explanations(forOperationUUID: operation.uuid) {
  ///   show([explanation.unblockedBy])
  /// }
  /// show(["sent"])  // or cancelled, or merged into another operation
  /// ```
  public func explanations(forOperationUUID uuid: String) -> ZDCExplanations<ZDCOperationExplanation> {
    explanations { transaction in
      try transaction.operations.operation(uuid: uuid).flatMap { try Explainer.explain($0, transaction) }
    }
  }

  private func explanations<Explanation: Sendable & Equatable>(
    _ explain: @escaping @Sendable (ZDCReadTransaction) throws -> Explanation?
  ) -> ZDCExplanations<Explanation> {
    let connection = database.roDatabaseConnection
    return ZDCExplanations(
      values: ZDCDatabaseValues {
        connection.observe(
          tables: [
            "zdc_node", "zdc_operation", "zdc_attempt", "zdc_zone", "zdc_security_event", "zdc_delegate_failure",
            "zdc_unreadable", EngineStates.table,
          ], explain)
      })
  }
}

/// See ``ZDCSyncManager/explanations(forNodeID:)``. Each iteration starts a new observation.
///
/// ```swift
/// for try await explanation in session.syncManager.explanations(forNodeID: node.uuid) {
///   banner.isHidden = explanation.isInSync
/// }
/// ```
public struct ZDCExplanations<Element: Sendable & Equatable>: AsyncSequence, Sendable {
  /// Iterating throws the error that ended the observation.
  public typealias Failure = any Error
  package let values: ZDCDatabaseValues<Element?>

  /// Starts an observation and returns its values.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(values: values.makeAsyncIterator())
  }

  /// An observation in progress. Releasing it ends the observation.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var values: ZDCDatabaseValues<Element?>.AsyncIterator?

    /// - Returns: Nil once there is nothing left to explain. The observation has then ended.
    public mutating func next() async throws -> Element? {
      guard var following = values else { return nil }
      guard let explanation = try await following.next() ?? nil else {
        values = nil
        return nil
      }
      values = following
      return explanation
    }
  }
}
