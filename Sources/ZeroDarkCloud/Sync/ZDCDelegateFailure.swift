public import Foundation

/// A call of the app's delegate that threw. It is made again: with the next pull of the tree, and after a launch.
///
/// A deletion, and what is new of a node, waits for it: the node stays as it was. A push does not: it has happened.
public struct ZDCDelegateFailure: Sendable, Hashable, Codable {
  public enum Call: String, Sendable, Hashable, Codable, CaseIterable {
    case didPushNodeData
    case didDiscoverNewNode, didDiscoverModifiedNode, didDiscoverMovedNode
    case didDiscoverDeletedNode, didDiscoverDeletedDirtyNode
    case didDiscoverConflict
  }

  public var call: Call
  /// ``ZDCNode/uuid``; nil for a node that is new, and that the app does not have therefore.
  public var nodeID: String?
  public var cloudID: String
  /// The type of the app's error; its description may hold names.
  public var error: String
  /// How often it threw.
  public var times: Int
  public var firstDate: Date
  public var date: Date
}

extension ZDCCloudReadTransaction {
  /// The delegate's calls for the tree that threw and are to be made again, those that wait longest first; also for
  /// nodes that are new, and that this device does not show therefore.
  public final func explainDelegateFailures(limit: Int = 1_000) -> [ZDCDelegateFailure] {
    transaction.poisoning {
      let zones = try transaction.zones.zones(localUser: localUser).filter { $0.appTreeID == treeID }
      return Array(try zones.flatMap { try Explainer.failures(zone: $0.id, limit: limit, transaction) }.prefix(limit))
    } ?? []
  }
}

extension Explainer {
  static func failures(zone: Int64, limit: Int, _ transaction: ZDCReadTransaction) throws -> [ZDCDelegateFailure] {
    try transaction.delegateFailures.failures(zone: zone, limit: limit).map {
      ZDCDelegateFailure($0, nodeID: try transaction.nodes.node(zone: zone, nodeID: $0.node)?.uuid)
    }
  }

  static func failures(_ row: NodeRow, _ transaction: ZDCReadTransaction) throws -> [ZDCDelegateFailure] {
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
