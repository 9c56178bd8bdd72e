/// The location in another user's tree where a node is rooted.
///
/// ```swift
/// if let anchor = node.anchor { print("in the tree of", anchor.userID) }
/// ```
public struct ZDCNodeAnchor: Sendable, Hashable, Codable {
  /// The owner of the tree.
  public let userID: String
  /// The app's name for the tree.
  public let treeID: String
  /// The `cloudID` of the node at the top of the zone.
  public let zoneRoot: String

  package init(userID: String, treeID: String, zoneRoot: String) {
    self.userID = userID
    self.treeID = treeID
    self.zoneRoot = zoneRoot
  }
}
