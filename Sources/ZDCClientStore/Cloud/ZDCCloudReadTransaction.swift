internal import GRDB
internal import ZDCProtocol
public import ZDCTreesystem

/// A local user's tree, as the transaction sees it.
///
/// It is valid as long as the transaction that it was made from. Look-ups do not throw: a database error poisons the
/// transaction, which then rolls back and throws the error to its caller.
///
/// ```swift
/// let names = try await tree.read { transaction, cloud in
///   guard let home = cloud.trunkNode(.home) else { return [String]() }
///   return try cloud.children(ofNodeID: home.uuid).compactMap(\.name)
/// }
/// ```
public class ZDCCloudReadTransaction {
  /// The user whose tree this is.
  public let localUserID: String
  /// The app's name for the tree.
  public let treeID: String
  package let transaction: ZDCReadTransaction
  package let localUser: Int64

  package init(_ transaction: ZDCReadTransaction, localUserID: String, localUser: Int64, treeID: String) {
    self.transaction = transaction
    self.localUserID = localUserID
    self.localUser = localUser
    self.treeID = treeID
  }

  // MARK: Nodes

  /// Returns the node with that ``ZDCNode/uuid``; nil if it is not in this tree.
  ///
  /// ```swift
  /// guard let node = cloud.node(id: listNodeID) else { return }  // deleted in the meantime
  /// show([node.name ?? ""])
  /// ```
  public final func node(id nodeID: String) -> ZDCNode? {
    find { try row(nodeID) }
  }

  /// Returns the node at that path, for a trunk its root; nil if there is none on this device.
  ///
  /// Names are compared in Unicode's composed form (NFC), so it does not matter how an accent is encoded. Case matters.
  ///
  /// ```swift
  /// guard let node = cloud.node(path: ZDCTreesystemPath(pathComponents: ["Photos", "beach.jpg"])) else { return }
  /// print(node.cloudDataInfo?.dataSize ?? 0, "bytes")
  /// ```
  public final func node(path: ZDCTreesystemPath) -> ZDCNode? {
    find { try row(at: path) }
  }

  /// Returns the node with that ``ZDCNode/cloudID``; nil if it is not on this device.
  ///
  /// Content that refers to other nodes stores their `cloudID`, which is the same on all devices, never their `uuid`:
  ///
  /// ```swift
  /// let cover = coverID.flatMap { cloud.node(cloudID: $0) }  // nil also if another device deleted it
  /// ```
  public final func node(cloudID: String) -> ZDCNode? {
    find { try row(cloudID: cloudID) }
  }

  /// Returns the child of that name; nil if there is none on this device.
  ///
  /// ```swift
  /// if cloud.node(name: "Archive", parentID: folder.uuid) == nil {
  ///   let archive = cloud.path(for: folder)?.appendingComponent("Archive")
  ///   if let archive { try cloud.createNode(withPath: archive) }
  /// }
  /// ```
  public final func node(name: String, parentID: String) -> ZDCNode? {
    find { try row(parentID).flatMap { try transaction.nodes.child(of: $0, named: name) } }
  }

  /// Returns the parent of a node; nil for the root of a trunk, or if the parent is not in this tree.
  ///
  /// ```swift
  /// let folder = cloud.parentNode(node)
  /// print(folder?.name ?? "in the trunk")
  /// ```
  public final func parentNode(_ node: ZDCNode) -> ZDCNode? {
    node.parentID.flatMap { self.node(id: $0) }
  }

  /// Returns the target of a pointer, or the node itself if it is no pointer.
  ///
  /// A pointer that this device follows is already shown as its target. One that it does not follow has no target.
  ///
  /// ```swift
  /// guard let shown = cloud.targetNode(node) else { return }  // a pointer that this device does not follow
  /// print(shown.cloudDataInfo?.dataSize ?? 0)
  /// ```
  public final func targetNode(_ node: ZDCNode) -> ZDCNode? {
    self.node(id: node.uuid).flatMap { $0.isPointer ? nil : $0 }
  }

  /// Returns the root of a trunk; nil if its tree has not been pulled yet.
  ///
  /// ```swift
  /// guard let home = cloud.trunkNode(.home) else { return }
  /// let isEmpty = !cloud.hasChildren(home.uuid)
  /// ```
  public final func trunkNode(_ trunk: ZDCTreesystemTrunk) -> ZDCTrunkNode? {
    find { try root(trunk) }
  }

  /// Returns the path of a node; nil if it is not in this tree.
  ///
  /// ```swift
  /// if let path = cloud.path(for: node) { print(path.fullPath()) }  // home:/Photos/beach.jpg
  /// ```
  public final func path(for node: ZDCNode) -> ZDCTreesystemPath? {
    path(forNodeID: node.uuid)
  }

  /// Returns the path of a node by its ``ZDCNode/uuid``; nil if it is not in this tree.
  ///
  /// ```swift
  /// show(nodes.compactMap { cloud.path(forNodeID: $0.uuid)?.fullPath() })
  /// ```
  public final func path(forNodeID nodeID: String) -> ZDCTreesystemPath? {
    transaction.poisoning { try row(nodeID).map(transaction.zdcPath) } ?? nil
  }

  /// Returns the path itself if no node has it, else the first of "Name 2", "Name 3" … that is free on this device.
  ///
  /// The number comes before an extension. Another device may take the same name in the meantime; then the conflict is
  /// resolved as ``ZDCNodeConflict/path`` says.
  ///
  /// ```swift
  /// let path = cloud.conflictFreePath(ZDCTreesystemPath(pathComponents: ["Photos", "beach.jpg"]))
  /// try cloud.createNode(withPath: path)  // home:/Photos/beach 2.jpg if that name is taken
  /// ```
  public final func conflictFreePath(_ path: ZDCTreesystemPath) -> ZDCTreesystemPath {
    let free = transaction.poisoning { () -> ZDCTreesystemPath in
      guard let parent = path.parent(), let row = try row(at: parent) else { return path }
      let name = try NameRules.conflictFree(path.nodeName) { name in
        try transaction.nodes.child(of: row, named: name) != nil
      }
      return parent.appendingComponent(name)
    }
    return free ?? path
  }

  // MARK: Children

  /// Returns the children of a node, in the order in which this device first saw them; none for an unknown node.
  ///
  /// All of them are in memory. For a folder that may have very many, use
  /// ``ZDCNodeManager/enumerateNodes(withParentID:transaction:using:)``.
  ///
  /// ```swift
  /// let photos = try cloud.children(ofNodeID: folder.uuid).sorted { ($0.name ?? "") < ($1.name ?? "") }
  /// ```
  ///
  /// - Throws: The error of the database.
  public final func children(ofNodeID nodeID: String) throws -> [ZDCNode] {
    guard let parent = try row(nodeID) else { return [] }
    return try transaction.nodes.children(of: parent.id).map(transaction.zdcNode)
  }

  /// Returns whether the node has children on this device; false for an unknown node.
  ///
  /// ```swift
  /// if cloud.hasChildren(folder.uuid) { show(["The folder is not empty."]) } else { try cloud.delete(folder) }
  /// ```
  public final func hasChildren(_ nodeID: String) -> Bool {
    transaction.poisoning {
      try transaction.nodes.hasChildren(uuid: nodeID, localUser: localUser, appTreeID: treeID)
    } ?? false
  }

  // MARK: Users

  /// Returns the user; nil if this device does not know them.
  ///
  /// ```swift
  /// if let senderID = node.senderID, let sender = cloud.user(id: senderID) { show([sender.displayName]) }
  /// ```
  public final func user(id userID: String) -> ZDCUser? {
    transaction.user(id: userID)
  }
}

@available(*, unavailable)
extension ZDCCloudReadTransaction: Sendable {}

extension ZDCCloudReadTransaction {
  private final func find(_ body: () throws -> NodeRow?) -> ZDCNode? {
    transaction.poisoning { try body().map(transaction.zdcNode) } ?? nil
  }

  /// The row, if it is in this tree.
  package final func row(_ uuid: String) throws -> NodeRow? {
    try transaction.nodes.node(uuid: uuid).flatMap(ours)
  }

  package final func row(cloudID: String) throws -> NodeRow? {
    guard let nodeID = NodeID(text: cloudID) else { return nil }
    for zone in try transaction.zones.zones(localUser: localUser) where zone.appTreeID == treeID {
      if let row = try transaction.nodes.node(zone: zone.id, nodeID: nodeID) { return row }
    }
    return nil
  }

  package final func ours(_ row: NodeRow) throws -> NodeRow? {
    let zone = try transaction.cloudState.facts(ofZone: row.zone).row
    return zone.localUser == localUser && zone.appTreeID == treeID ? row : nil
  }

  package final func root(_ trunk: ZDCTreesystemTrunk) throws -> NodeRow? {
    let path = ZDCTreesystemPath(pathComponents: [], trunk: trunk)
    let place = CloudState.Place(localUser: localUser, treeID: treeID, path: path)
    return try transaction.cloudState.parent(at: place) {
      guard let trunk = trunk.protocolTrunk,
        let zone = try transaction.zones.trunk(trunk, localUser: localUser, appTreeID: treeID)
      else { return nil }
      return try transaction.nodes.root(zone: zone.id)
    }
  }

  /// The root of another user's tree, or of a shared branch, by its ``ZDCNode/cloudID``.
  private final func detachedRoot(_ cloudID: String?) throws -> NodeRow? {
    guard let root = cloudID.flatMap({ NodeID(text: $0) }) else { return nil }
    let zone = try transaction.zones.zones(localUser: localUser).first {
      ($0.owner != nil || !$0.isTrunk) && $0.appTreeID == treeID && $0.zone.root == root
    }
    return try zone.flatMap { try transaction.nodes.root(zone: $0.id) }
  }

  package final func row(at path: ZDCTreesystemPath) throws -> NodeRow? {
    let isDetached = path.trunk == .detached
    var row = try isDetached ? detachedRoot(path.pathComponents.first) : root(path.trunk)
    for name in path.pathComponents.dropFirst(isDetached ? 1 : 0) {
      guard let parent = row else { return nil }
      row = try transaction.nodes.child(of: parent, named: name).map(transaction.shown)
    }
    return row
  }

  /// Like ``row(at:)``, remembered for the next child.
  final func parentRow(at path: ZDCTreesystemPath) throws -> NodeRow? {
    let place = CloudState.Place(localUser: localUser, treeID: treeID, path: path)
    return try transaction.cloudState.parent(at: place) { try row(at: path) }
  }
}
