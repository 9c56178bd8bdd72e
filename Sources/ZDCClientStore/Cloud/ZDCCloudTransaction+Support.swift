internal import Foundation
package import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
package import ZDCTreesystem

extension ZDCCloudTransaction {
  package var now: UInt64 { transaction.context.clock() }

  package static var unsupportedShare: ZDCCloudError {
    ZDCCloudError(.unsupportedShare)
  }

  // MARK: Queueing

  /// Appends an operation, and wakes the push engine after the commit.
  @discardableResult
  package func queue(_ kind: OperationRow.Kind, _ row: NodeRow, dependsOn: [Int64]) throws -> OperationRow {
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: now), zone: row.zone, kind: kind, node: row.id,
      nodeUUID: try transaction.shown(row).uuid, nodeID: row.nodeID, createdMs: now)
    try operations.insert(&operation, dependsOn: dependsOn)
    signalQueue(of: row.zone)
    return operation
  }

  func signalQueue() {
    readWrite.signal(.queue(localUser: localUser))
  }

  /// Wakes the push engine for one zone, which spares it a look at the others.
  func signalQueue(of zone: Int64) {
    readWrite.signal(.zoneQueue(localUser: localUser, zone: zone))
  }

  /// Operations that are no longer queued are done: nothing waits for them.
  func rowIDs(_ values: [ZDCCloudOperation]) throws -> [Int64] {
    try values.compactMap { try operations.operation(uuid: $0.uuid)?.id }
  }

  /// - Throws: `invalidParameter` if the operation would depend on itself.
  package func addDependency(of operation: Int64, on dependency: Int64) throws {
    guard try !operations.closesCircle(operation, waitingFor: dependency) else { throw Self.waitsForItself }
    try operations.addDependency(of: operation, on: dependency)
  }

  static var waitsForItself: ZDCCloudError {
    ZDCCloudError(.invalidParameter, detail: "an operation cannot wait for itself")
  }

  // MARK: Checks

  package func fold(_ name: String, _ path: ZDCTreesystemPath?) throws -> FoldedName {
    do throws(NameError) {
      return try NameFolding.fold(name)
    } catch {
      throw ZDCCloudError(.invalidParameter, path: path, detail: Self.detail(error))
    }
  }

  private static func detail(_ error: NameError) -> String {
    switch error {
    case .empty: "a name is empty"
    case .containsNull: "a name has a zero byte"
    case .tooLong: "a name has more than \(Limits.nameBytes) bytes"
    }
  }

  /// - Throws: `notAllowed` if the access list does not let the local user write.
  func checkMayWrite(zone: Int64) throws {
    guard try mayWrite(zone: zone) else { throw ZDCCloudError(.notAllowed) }
  }

  func mayWrite(zone: Int64) throws -> Bool { try transaction.cloudState.facts(ofZone: zone).mayWrite }

  func checkMayCreate(below parent: NodeRow, _ path: ZDCTreesystemPath?) throws {
    guard !parent.isPlaceholder else {
      throw ZDCCloudError(.missingParent, path: path, detail: "the grafted branch has not been pulled yet")
    }
    try checkMayWrite(zone: parent.zone)
    guard parent.pointer == nil else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "the parent points to a node that is not here")
    }
    guard parent.depth < Limits.depthAtCreation else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "deeper than \(Limits.depthAtCreation) levels")
    }
  }

  /// Apps make nodes in home and prefs, and in trees of others. Messages are sent, not created.
  package func check(trunk: ZDCTreesystemTrunk, _ path: ZDCTreesystemPath?) throws {
    guard trunk == .home || trunk == .prefs || trunk == .detached else {
      throw ZDCCloudError(.invalidParameter, path: path, detail: "nodes can be created in home and prefs only")
    }
  }

  package func missingParent(_ path: ZDCTreesystemPath) throws -> ZDCCloudError {
    var known = ZDCTreesystemPath(pathComponents: [], trunk: path.trunk)
    guard try row(at: known) != nil else {
      return ZDCCloudError(.missingParent, path: path, detail: "the trunk has not been pulled yet")
    }
    for (depth, name) in path.pathComponents.enumerated() {
      known = known.appendingComponent(name)
      if try row(at: known) == nil {
        return ZDCCloudError(.missingParent, path: path, detail: "no parent at depth \(depth + 1)")
      }
    }
    return ZDCCloudError(.missingParent, path: path)
  }

  /// The stored node behind a value that the app holds.
  package func stored(_ node: ZDCNode) throws -> NodeRow {
    guard let row = try row(node.uuid) else {
      throw ZDCCloudError(
        .invalidParameter, detail: "the node is not in the tree: insert a new one first, in the same transaction")
    }
    guard try !transaction.isTrunkRoot(row) else {
      throw ZDCCloudError(.invalidParameter, detail: "a trunk cannot be changed")
    }
    return row
  }

  /// The row that has the node's name and place, which the local user may change.
  ///
  /// - Throws: `notAllowed`; `invalidParameter` for the top of a shared branch that has no place in the user's tree.
  func movable(_ row: NodeRow) throws -> NodeRow {
    let place = try transaction.place(of: row)
    guard place.parent != nil else {
      throw ZDCCloudError(.invalidParameter, detail: "the top of another user's tree has no name or place here")
    }
    try checkMayWrite(zone: place.zone)
    return place
  }
}
