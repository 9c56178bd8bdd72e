internal import ZDCProtocol
public import ZDCTreesystem

/// The collection in which apps of the original framework look up nodes by ``ZDCNode/uuid``.
public let kZDCCollection_Nodes = "ZDCNodes"
/// The collection in which apps of the original framework look up users.
public let kZDCCollection_Users = "ZDCUsers"

extension ZDCReadTransaction {
  /// Returns the node with that ``ZDCNode/uuid``, of any local user and tree; nil if it is not on this device. Errors
  /// poison the transaction.
  public final func node(id nodeID: String) -> ZDCNode? {
    poisoning { try nodes.node(uuid: nodeID).map(zdcNode) } ?? nil
  }

  /// Returns the user; nil if this device does not know them. Errors poison the transaction.
  public final func user(id userID: String) -> ZDCUser? {
    poisoning { () -> ZDCUser? in
      guard let id = UserID(text: userID) else { return nil }
      if try localUsers.readyIDs().contains(id) { return ZDCUser(uuid: userID, isLocal: true) }
      return try users.isKnown(id) ? ZDCUser(uuid: userID, isLocal: false) : nil
    } ?? nil
  }

  /// Returns the account; nil if it is not on this device. Errors poison the transaction.
  public final func localUser(id localUserID: String) -> ZDCLocalUser? {
    poisoning { () -> ZDCLocalUser? in
      guard let id = UserID(text: localUserID), let row = try localUsers.user(id), row.state == .ready else {
        return nil
      }
      return row.localUser
    } ?? nil
  }

  /// The node or user, which the original kept among the app's objects; nil for another collection.
  final func frameworkObject(forKey key: String, inCollection collection: String) -> Any?? {
    switch collection {
    case kZDCCollection_Nodes: .some(node(id: key))
    case kZDCCollection_Users: .some(localUser(id: key) ?? user(id: key) as Any?)
    default: nil
    }
  }
}
