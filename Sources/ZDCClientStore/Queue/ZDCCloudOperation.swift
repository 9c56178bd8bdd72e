public import Foundation

/// The effect of an operation in the cloud.
///
/// ```swift
/// switch operation.type {
/// case .put, .move: refreshRow(operation.nodeID)
/// default: break
/// }
/// ```
public enum ZDCCloudOperationType: String, Sendable, Hashable, CaseIterable {
  /// Creates a node, or sends a new version of its record or its content.
  case put
  /// Renames or moves a node.
  case move
  /// Deletes a node and all nodes below it.
  case deleteNode
  /// Delivers a message to one recipient.
  case copyLeaf
}

/// Which part of a node a put sends.
///
/// ```swift
/// let isContent = operation.putType == .node_Data
/// ```
public enum ZDCCloudOperationPutType: String, Sendable, Hashable, CaseIterable {
  /// Name, place, access.
  case node_Rcrd
  /// The content that the app stored.
  case node_Data
}

/// A change that waits to be pushed, as it was when it was read.
///
/// A value: change a copy and hand it to `modifyOperation(_:)`.
///
/// Dependencies are hard, priorities are hints: an operation never runs before what it depends on. A dependency on an
/// operation that is no longer in the queue is satisfied.
///
/// ```swift
/// guard let cover = cloud.queueDataUpload(forNodeID: node.uuid, withChangeset: nil),
///   var album = cloud.queueDataUpload(forNodeID: folder.uuid, withChangeset: nil)
/// else { return }
/// album.addDependency(cover)
/// try cloud.modifyOperation(album)  // the album is not sent before its cover
/// ```
public struct ZDCCloudOperation: Sendable, Hashable, Identifiable {
  /// Identifies the operation on this device.
  public let uuid: String
  /// The user whose tree is changed.
  public let localUserID: String
  /// The app's name for the tree.
  public let treeID: String
  /// The effect of the operation in the cloud.
  public let type: ZDCCloudOperationType
  /// Set for a put.
  public let putType: ZDCCloudOperationPutType?
  /// The node's ``ZDCNode/uuid``. For a delete the node is gone from this device.
  public let nodeID: String
  /// The node's ``ZDCNode/cloudID``.
  public let cloudID: String
  /// For content: the version that the edit was based on or merged with; nil for none.
  public let eTag: String?
  /// The time at which the change was queued.
  public let createdAt: Date
  /// The uuids of the queued operations that run before this one.
  ///
  /// ```swift
  /// let isBlocked = !operation.dependencies.isEmpty
  /// ```
  public package(set) var dependencies: Set<String>
  /// Higher runs earlier, as far as dependencies let it.
  ///
  /// ```swift
  /// for var upload in cloud.pendingOperations(forNodeID: node.uuid) {
  ///   upload.priority = 100  // before the other uploads
  ///   try cloud.modifyOperation(upload)
  /// }
  /// ```
  public var priority: Int32

  /// The same as ``uuid``.
  public var id: String { uuid }

  /// Adds a dependency: this operation is not sent before the other one.
  ///
  /// Takes effect with `modifyOperation(_:)`.
  ///
  /// ```swift
  /// let earlier = cloud.pendingPutOperations(withParentID: folder.uuid)
  /// for var later in cloud.pendingOperations(forNodeID: node.uuid) {
  ///   for operation in earlier { later.addDependency(operation) }
  ///   try cloud.modifyOperation(later)
  /// }
  /// ```
  public mutating func addDependency(_ operation: ZDCCloudOperation) {
    dependencies.insert(operation.uuid)
  }

  /// Adds a dependency on the operation with that ``uuid``.
  ///
  /// Takes effect with `modifyOperation(_:)`.
  public mutating func addDependency(_ operationUUID: String) {
    dependencies.insert(operationUUID)
  }

  /// Adds a dependency on each of the operations.
  ///
  /// Takes effect with `modifyOperation(_:)`.
  public mutating func addDependencies(_ operations: [ZDCCloudOperation]) {
    for operation in operations { addDependency(operation) }
  }

  /// Returns whether this operation sends the node's name, place and access.
  public func isPutNodeRcrdOperation() -> Bool { putType == .node_Rcrd }

  /// Returns whether this operation sends the node's content.
  ///
  /// ```swift
  /// let uploads = cloud.pendingOperations(forNodeID: node.uuid).filter { $0.isPutNodeDataOperation() }
  /// ```
  public func isPutNodeDataOperation() -> Bool { putType == .node_Data }

  /// Returns whether both operations do the same to the same node.
  ///
  /// ```swift
  /// let others = cloud.pendingOperations().filter { $0.hasSameTarget(operation) && $0.uuid != operation.uuid }
  /// ```
  public func hasSameTarget(_ other: ZDCCloudOperation) -> Bool {
    (localUserID, treeID, nodeID) == (other.localUserID, other.treeID, other.nodeID) && type == other.type
      && putType == other.putType
  }
}
