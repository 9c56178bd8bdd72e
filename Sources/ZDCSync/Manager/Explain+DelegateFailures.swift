internal import Foundation
public import ZDCClientStore
internal import ZDCProtocol

extension ZDCCloudReadTransaction {
  /// Returns the tree's delegate calls that threw and will be repeated, longest-waiting first. This includes calls for
  /// new nodes, which this device does not show for that reason.
  ///
  /// ```swift
  /// for failure in try await tree.read({ _, cloud in cloud.explainDelegateFailures() }) {
  ///   print(failure)
  /// }
  /// ```
  public final func explainDelegateFailures(limit: Int = 1_000) -> [ZDCDelegateFailure] {
    transaction.poisoning {
      let zones = try transaction.zones.zones(localUser: localUser).filter { $0.appTreeID == treeID }
      return Array(try zones.flatMap { try Explainer.failures(zone: $0.id, limit: limit, transaction) }.prefix(limit))
    } ?? []
  }
}

extension Explainer {
  package static func failures(
    zone: Int64, limit: Int, _ transaction: ZDCReadTransaction
  ) throws -> [ZDCDelegateFailure] {
    try transaction.delegateFailures.failures(zone: zone, limit: limit).map {
      ZDCDelegateFailure($0, nodeID: try transaction.nodes.node(zone: zone, nodeID: $0.node)?.uuid)
    }
  }

  package static func failures(_ row: NodeRow, _ transaction: ZDCReadTransaction) throws -> [ZDCDelegateFailure] {
    try transaction.delegateFailures.failures(zone: row.zone, node: row.nodeID).map {
      ZDCDelegateFailure($0, nodeID: row.uuid)
    }
  }
}

extension ZDCDelegateFailure {
  fileprivate init(_ failure: DelegateFailureStore.Failure, nodeID: String?) {
    self.init(
      call: failure.call, nodeID: nodeID, cloudID: failure.node.text, error: failure.error, times: failure.times,
      firstDate: Date(ms: failure.firstMs), date: Date(ms: failure.lastMs))
  }
}
