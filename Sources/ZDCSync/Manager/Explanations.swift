package import ZDCClientStore
internal import ZDCProtocol

// Explanations that follow what they explain.

extension ZDCSyncManager {
  /// Why the node is not in sync, now and whenever that changes, until the node is gone or the framework closed.
  ///
  /// Equal values in a row come once. Who is slow gets the newest one. For an unknown node it ends at once. Unlike
  /// ``ZDCDatabaseConnection/values(of:)`` with `explain(nodeID:)`, it also follows what no table has: whether the engine
  /// of this process reaches the server.
  public func explanations(forNodeID nodeID: String) -> ZDCExplanations<ZDCNodeExplanation> {
    explanations { transaction in
      try transaction.nodes.node(uuid: nodeID).map { try Explainer.explain($0, transaction) }
    }
  }

  /// Why the operation waits, now and whenever that changes, until it is done, taken back, or the framework closed.
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

/// See ``ZDCSyncManager/explanations(forNodeID:)``. Each loop over it begins anew.
public struct ZDCExplanations<Element: Sendable & Equatable>: AsyncSequence, Sendable {
  public typealias Failure = any Error
  package let values: ZDCDatabaseValues<Element?>

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(values: values.makeAsyncIterator())
  }

  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var values: ZDCDatabaseValues<Element?>.AsyncIterator?

    /// - Returns: nil once there is nothing to explain any more; the observation has ended then.
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
