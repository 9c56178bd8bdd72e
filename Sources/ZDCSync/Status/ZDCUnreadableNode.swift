public import Foundation
public import ZDCProtocol

/// A node whose newest version in the cloud this device does not have or cannot open.
///
/// If the node was read before, its last good version stays; a node that is new is in no list of nodes.
public struct ZDCUnreadableNode: Sendable, Hashable {
  public var zone: ZoneID
  public var trunk: Trunk
  public var treeID: String
  public var cloudID: String
  /// The node's uuid on this device; nil if no version of it was ever read.
  public var nodeID: String?
  /// The uuid of the nearest node above it that is known here; nil if there is none.
  public var parentID: String?
  /// `objectMissing`: the server does not give the record. Others: why it does not open.
  public var code: ZDCSecurityError.Code
  /// When it was found out.
  public var since: Date
  /// The node waits for one above it, whose `code` this is.
  public var isBelow: Bool
}
