/// Where a node is rooted that lives in another user's tree.
public struct ZDCNodeAnchor: Sendable, Hashable, Codable {
  public let userID: String
  public let treeID: String
  public let zoneRoot: String

  public init(userID: String, treeID: String, zoneRoot: String) {
    self.userID = userID
    self.treeID = treeID
    self.zoneRoot = zoneRoot
  }
}
