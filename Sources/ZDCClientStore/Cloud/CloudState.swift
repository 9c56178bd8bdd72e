internal import GRDB
package import ZDCProtocol
internal import ZDCSupport
package import ZDCTreesystem

/// The state of the cloud layer during one transaction, shared by the app, the delegate and the engine.
package final class CloudState: TransactionCache {
  /// The values that all nodes of a zone share.
  package struct ZoneInfo {
    package var row: ZoneRow
    package var localUserID: String
    package var trunk: ZDCTreesystemTrunk
    package var shareList: ZDCShareList
    /// Whether the list in force lets the local user write.
    package var mayWrite: Bool
    /// The names in front of the zone's own paths, if it is not mounted: a zone that is no trunk of the local user is
    /// found by its root's ID.
    package var prefix: [String]
  }

  private unowned let transaction: ZDCReadTransaction
  private var zoneFacts: [Int64: ZoneInfo] = [:]
  private var localUsers: [Tree: Int64] = [:]
  private var known = KnownNodes()
  var removedLinks: [LinkStore.RemovedLink] = []
  /// The recipients of the message whose content the app is asked for.
  private(set) var recipients: [UserID] = []

  /// Rows as they were at a change count; dropped when the count rises.
  private struct KnownNodes {
    var changeCount = 0
    var parents: [String: NodeRow] = [:]
    var places: [Place: NodeRow] = [:]
  }

  /// A path in a local user's tree.
  package struct Place: Hashable {
    package var localUser: Int64
    package var treeID: String
    package var path: ZDCTreesystemPath
  }

  private struct Tree: Hashable {
    var localUserID: String
    var treeID: String
  }

  package init(_ transaction: ZDCReadTransaction) {
    self.transaction = transaction
  }

  package func invalidate() {
    (zoneFacts, localUsers, known, removedLinks) = ([:], [:], KnownNodes(), [])
  }

  // MARK: Users

  /// The row of a local user who has the tree; nil if there is none.
  package func localUser(_ localUserID: String, treeID: String) throws -> Int64? {
    let tree = Tree(localUserID: localUserID, treeID: treeID)
    if let known = localUsers[tree] { return known }
    guard let userID = UserID(text: localUserID) else { return nil }
    let query = """
      SELECT u.id FROM zdc_local_user u WHERE u.userID = ? AND u.state = 1
      AND EXISTS (SELECT 1 FROM zdc_zone z WHERE z.localUser = u.id AND z.appTreeID = ?)
      """
    let id: Int64? = try transaction.database.firstRow(query, [userID.data, treeID]) { $0[0] }
    localUsers[tree] = id
    return id
  }

  // MARK: Zones

  package func facts(ofZone id: Int64) throws -> ZoneInfo {
    if let known = zoneFacts[id] { return known }
    guard let row = try transaction.zones.zone(id: id) else { throw ZDCError(.corruptDatabase) }
    let user = try userID(ofLocalUser: row.localUser)
    let isTop = row.owner == nil && row.isTrunk
    let facts = ZoneInfo(
      row: row, localUserID: user.text, trunk: isTop ? ZDCTreesystemTrunk(row.trunk) : .detached,
      shareList: row.head.map { ZDCShareList($0.acl) } ?? ZDCShareList(), mayWrite: row.mayWrite(user),
      prefix: isTop ? [] : [row.zone.root.text])
    // Before the first pull there is no access list; it may come within this transaction.
    if row.head != nil { zoneFacts[id] = facts }
    return facts
  }

  /// Call after a zone has got another access list, or was removed.
  package func forget(zone id: Int64) { zoneFacts[id] = nil }

  private func userID(ofLocalUser id: Int64) throws -> UserID {
    let query = "SELECT userID FROM zdc_local_user WHERE id = ?"
    guard let user = try transaction.database.firstRow(query, [id], { try UserID($0, 0) }) else {
      throw ZDCError(.corruptDatabase)
    }
    return user
  }

  /// Asks the app for the content of a message to these users.
  package func asking<Answer>(for recipients: [UserID], _ body: () throws -> Answer) rethrows -> Answer {
    self.recipients = recipients
    defer { self.recipients = [] }
    return try body()
  }

  // MARK: Nodes

  private func validate() {
    let count = transaction.nodes.changeCount
    if known.changeCount != count { known = KnownNodes(changeCount: count) }
  }

  package func uuid(ofParent id: Int64) throws -> String {
    guard let row = try transaction.nodes.parent(id: id) else { throw ZDCError(.corruptDatabase) }
    return row.uuid
  }

  /// A node that others are put below: asked for once for a thousand children.
  package func parent(uuid: String) throws -> NodeRow? {
    validate()
    if let row = known.parents[uuid] { return row }
    let row = try transaction.nodes.node(uuid: uuid)
    known.parents[uuid] = row
    return row
  }

  package func parent(at place: Place, _ find: () throws -> NodeRow?) throws -> NodeRow? {
    validate()
    if let row = known.places[place] { return row }
    let row = try find()
    known.places[place] = row
    return row
  }
}

extension ZDCReadTransaction {
  package var cloudState: CloudState { cached { CloudState(self) } }
}
