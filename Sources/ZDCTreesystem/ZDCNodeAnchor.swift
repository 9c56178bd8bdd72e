/// The location in another user's tree where a node is rooted.
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
