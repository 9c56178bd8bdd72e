public import Foundation
public import ZDCProtocol
public import ZDCTreesystem

/// A node whose newest version in the cloud this device does not have or cannot open.
///
/// If the node was read before, its last good version stays. A new node does not appear in any list of nodes.
///
/// ```swift
/// for node in try await session.syncManager.unreadableNodes(localUserID: user.uuid) where !node.isBelow {
///   print(node.cloudID, node.code)  // IDs and codes: may be logged
/// }
/// ```
public struct ZDCUnreadableNode: Sendable, Hashable {
  /// The node's zone.
  public var zone: ZDCZoneID
  /// The trunk that the node is in.
  public var trunk: ZDCTreesystemTrunk
  /// The app's name for the tree.
  public var treeID: String
  /// ``ZDCNode/cloudID``.
  public var cloudID: String
  /// The node's UUID on this device, or nil if no version of it was ever read.
  public var nodeID: String?
  /// The UUID of the nearest ancestor that is known here, or nil if there is none.
  public var parentID: String?
  /// The reason: `objectMissing` if the server does not provide the record, otherwise why it cannot be opened.
  public var code: ZDCSecurityError.Code
  /// The time at which the problem was detected.
  public var since: Date
  /// Whether the node waits for an ancestor, whose `code` this is.
  public var isBelow: Bool
}
