public import Foundation
internal import ZDCClientStore
internal import ZDCProtocol
public import ZDCTreesystem

/// A deleted node that can be restored while the server keeps it, together with the nodes that were deleted with it.
///
/// ```swift
/// for deleted in try await session.syncManager.deletedNodes(localUserID: user.uuid) {
///   print(deleted.path, deleted.deletedAt, deleted.nodeCount)
/// }
/// ```
public struct ZDCDeletedNode: Sendable, Identifiable {
  /// Identifies the deletion.
  public let id: String
  /// ``ZDCNode/cloudID``.
  public let cloudID: String
  /// The name that the node had.
  public let name: String
  /// The path at which the node would be now. If the folder that it was in is gone, too, it is below the root of its tree
  /// or branch.
  public let path: ZDCTreesystemPath
  /// When it was deleted, by the clock of the device that deleted it.
  public let deletedAt: Date
  /// The text of the user ID of the person who deleted it.
  public let deletedByID: String
  /// The number of nodes that were deleted with it, itself included.
  public let nodeCount: Int
  /// The size of the node's own data in bytes; nil if it has no content.
  public let dataSize: UInt64?
  /// Whether the server says that it still has everything that the node itself consists of.
  public let isKept: Bool
  /// The time until which the server says that it keeps the node; nil if it does not say one.
  public let keptUntil: Date?
  /// Whether the folder in which the node was is still there.
  public let hasParent: Bool
  let former: FormerVersion
}

/// The nodes that a restoration has created.
public struct ZDCTrashRestoration: Sendable {
  /// The restored node.
  public let node: ZDCNode
  /// The number of restored nodes, including those below it.
  public let restored: Int
  /// The number of nodes that were deleted with it and are not restored: the server no longer keeps them, or they cannot
  /// be opened.
  public let left: Int
}
