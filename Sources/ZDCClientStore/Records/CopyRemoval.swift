internal import ZDCProtocol
internal import ZDCSupport

/// Forgets a copy in another zone, and deletes it there.
package struct CopyRemoval {
  private let transaction: ZDCReadWriteTransaction

  package init(_ transaction: ZDCReadWriteTransaction) { self.transaction = transaction }

  /// - Parameter uuid: The local ID of the node.
  package func remove(_ copy: MovedCopy, uuid: String) throws {
    try transaction.moves.remove(copy)
    try dropRecords(of: copy)
    let inFlight = try copy.row.map { try transaction.operations.nodesInFlight(zone: copy.copyZone).contains($0) }
    guard try transaction.leaves(zone: copy.copyZone).leaf(copy.copyID) != nil || inFlight == true else { return }
    let queued = try transaction.operations.operations(zone: copy.copyZone, nodeID: copy.copyID)
    guard let zone = try transaction.zones.zone(id: copy.copyZone), !queued.contains(where: { $0.kind == .delete })
    else { return }
    let now = transaction.context.clock()
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: zone.id, kind: .delete, node: nil, nodeUUID: uuid, nodeID: copy.copyID,
      createdMs: now)
    try transaction.operations.insert(&operation)
    transaction.signal(.queue(localUser: zone.localUser))
  }

  /// Drops the queued records of the copy. One in flight is dropped when its request has failed.
  private func dropRecords(of copy: MovedCopy) throws {
    guard let row = copy.row, try transaction.nodes.node(id: row)?.zone != copy.copyZone else { return }
    for operation in try transaction.operations.operations(node: row)
    where operation.zone == copy.copyZone && operation.kind.isRecord && operation.state != .inFlight {
      try transaction.operations.delete(id: operation.id)
    }
  }
}
