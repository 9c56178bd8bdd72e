internal import Foundation
internal import ZDCProtocol

// From rows of the queue to the API's values.

extension ZDCReadTransaction {
  func zdcOperation(_ row: OperationRow) throws -> ZDCCloudOperation {
    let zone = try cloudState.facts(ofZone: row.zone)
    let dependencies = try operations.dependencies(of: row.id).compactMap { try operations.operation(id: $0)?.uuid }
    return ZDCCloudOperation(
      uuid: row.uuid, localUserID: zone.localUserID, treeID: zone.row.appTreeID, type: row.kind.type,
      putType: row.kind.putType, nodeID: row.nodeUUID, cloudID: row.nodeID.text, eTag: row.baseETag,
      createdAt: Date(ms: row.createdMs), dependencies: Set(dependencies), priority: row.priority)
  }
}

extension OperationRow.Kind {
  package var type: ZDCCloudOperationType {
    switch self {
    case .create, .modify, .putData, .changeList, .putProfile: .put
    case .move: .move
    case .deliver: .copyLeaf
    case .delete: .deleteNode
    }
  }

  package var putType: ZDCCloudOperationPutType? {
    switch self {
    case .create, .modify, .changeList, .putProfile: .node_Rcrd
    case .putData: .node_Data
    case .move, .delete, .deliver: nil
    }
  }

  /// Kinds that a new version of the node's record satisfies.
  package var isRecord: Bool { self == .create || self == .move || self == .modify }
}
