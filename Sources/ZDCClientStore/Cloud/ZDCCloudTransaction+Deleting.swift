internal import Foundation
internal import ZDCProtocol
internal import ZDCSupport
public import ZDCTreesystem

/// How a delete treats nodes below that changed in the cloud since this device last saw them.
public struct ZDCDeleteNodeOptions: OptionSet, Sendable, Hashable {
  /// The set as bits.
  public let rawValue: Int

  /// Creates a set from bits. Apps use the named options.
  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// Nodes that others have changed since.
  public static let deleteOutdatedNodes = ZDCDeleteNodeOptions(rawValue: 1)
  /// Nodes that this device has never seen.
  public static let deleteUnknownNodes = ZDCDeleteNodeOptions(rawValue: 2)
  /// Both options: the only set that ``ZDCCloudTransaction/delete(_:with:)`` accepts.
  public static let all: ZDCDeleteNodeOptions = [.deleteOutdatedNodes, .deleteUnknownNodes]
}

extension ZDCCloudTransaction {
  /// Deletes a node and all nodes below it: immediately on this device, in the cloud when the queued operation is sent.
  ///
  /// The nodes' links, tags and queued operations are removed as well. In the cloud, nodes below that this device has
  /// never seen are deleted too.
  ///
  /// The delegate is not called, because the app made the change. The app removes its own objects in the same
  /// transaction.
  ///
  /// ```swift
  /// if let node = cloud.node(path: path) { try cloud.delete(node) }
  /// ```
  ///
  /// - Returns: nil if the cloud never had any of these nodes, so that there is nothing to send.
  /// - Throws: ``ZDCCloudError``: `invalidParameter` for an unknown node or a trunk; `notAllowed`; `unsupportedShare` for
  ///   the top of a shared branch, or a node above one.
  @discardableResult
  public func delete(_ node: ZDCNode) throws -> ZDCCloudOperation? {
    let row = try stored(node)
    try checkIsUnshared(row)
    return try delete(row: try movable(row)).map(transaction.zdcOperation)
  }

  /// Like ``delete(_:)``.
  ///
  /// - Parameters:
  ///   - node: The top of what goes.
  ///   - options: Only ``ZDCDeleteNodeOptions/all``: a delete takes the whole branch.
  /// - Throws: also `invalidParameter` for other options.
  @discardableResult
  public func delete(_ node: ZDCNode, with options: ZDCDeleteNodeOptions) throws -> ZDCCloudOperation? {
    guard options == .all else {
      throw ZDCCloudError(.invalidParameter, detail: "a delete cannot spare outdated or unknown nodes")
    }
    return try delete(node)
  }

  /// A shared branch is not deleted with the nodes above it.
  private func checkIsUnshared(_ row: NodeRow) throws {
    let isShared = try row.parent == nil || !transaction.mounts.zones(below: row.id).isEmpty
    guard isShared else { return }
    throw ZDCCloudError(.unsupportedShare, detail: "a shared branch cannot be deleted in this version")
  }

  /// - Returns: The operation that deletes the top, or else the first of those that were queued.
  package func delete(row: NodeRow) throws -> OperationRow? {
    let places = try nodes.cloudPlaces(atOrBelow: row.id)
    let targets = try cloudTargets(places, zone: row.zone)
    try nodes.deleteSubtree(of: row.id)
    var first: OperationRow?
    for target in targets {
      var operation = OperationRow(
        uuid: UUIDv7.make(atMs: now), zone: row.zone, kind: .delete, node: nil, nodeUUID: target.uuid,
        nodeID: target.nodeID, createdMs: now)
      try operations.insert(&operation)
      first = first ?? operation
    }
    signalQueue()
    return first
  }

  /// The nodes to delete in the cloud so that all of these go: those that it has, or may get by the request in flight,
  /// and whose place there is not below another of them. A node that was moved in here and not sent yet is elsewhere in
  /// the cloud.
  private func cloudTargets(_ places: [NodeStore.CloudPlace], zone: Int64) throws -> [NodeStore.CloudPlace] {
    let inFlight = try operations.nodesInFlight(zone: zone)
    let inCloud = places.filter { $0.cloudParent != nil || inFlight.contains($0.id) }
    let nodeIDs = Set(inCloud.map(\.nodeID))
    let nodeIDByRow = Dictionary(uniqueKeysWithValues: places.map { ($0.id, $0.nodeID) })
    return inCloud.filter { place in
      guard let parent = place.cloudParent ?? place.parent.flatMap({ nodeIDByRow[$0] }) else { return true }
      return !nodeIDs.contains(parent)
    }
  }
}
