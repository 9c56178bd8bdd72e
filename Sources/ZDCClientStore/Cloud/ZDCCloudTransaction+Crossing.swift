internal import GRDB
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCTreesystem

// Moves to another zone: what the app's transaction refuses. The push engine makes the copies.

extension ZDCCloudTransaction {
  func checkCrossing(_ row: NodeRow, below parent: NodeRow, _ path: ZDCTreesystemPath?) throws {
    try checkMayCreate(below: parent, path)
    let old = try transaction.cloudState.facts(ofZone: row.zone)
    let new = try transaction.cloudState.facts(ofZone: parent.zone)
    if !isMessageGoingHome(row, old, new) {
      guard old.row.trunk == new.row.trunk else {
        throw ZDCCloudError(
          .invalidParameter, path: path, detail: "a node cannot be moved to another trunk; copy it instead")
      }
      try check(trunk: old.trunk, path)
    }
    try check(trunk: new.trunk, path)
    for zone in [row.zone, parent.zone] { try checkWritesFreely(zone: zone) }
    if let obstacle = try BranchToMove(transaction, top: row).obstacle {
      throw ZDCCloudError(.invalidParameter, path: path, detail: obstacle.text)
    }
    let heights = try nodes.heights(of: row.id, depth: row.depth)
    guard parent.depth + 1 + heights.all <= Limits.depthAtCreation else {
      throw ZDCCloudError(
        .invalidParameter, path: path, detail: "a node would be deeper than \(Limits.depthAtCreation) levels")
    }
  }

  /// Whether the node is a message of the inbox that moves to the home trunk, into one of its branches, or into another
  /// user's.
  private func isMessageGoingHome(
    _ row: NodeRow, _ old: CloudState.ZoneInfo, _ new: CloudState.ZoneInfo
  ) -> Bool {
    old.trunk == .inbox && row.unused?.received != nil && new.row.trunk == .home
  }

  /// - Throws: `notAllowed` if the access list narrows what the local user may write.
  private func checkWritesFreely(zone: Int64) throws {
    let facts = try transaction.cloudState.facts(ofZone: zone)
    guard facts.writesFreely else { throw ZDCCloudError(.notAllowed) }
  }

  /// - Throws: `invalidParameter` while nodes move into the zone or out of it. The user leaves it, so they could not be
  ///   copied any more.
  func checkNoMoves(with zone: Int64) throws {
    let isMoving = try transaction.moves.crossings().contains { id in
      guard let row = try nodes.node(id: id) else { return false }
      return try row.zone == zone || row.parent.flatMap { try nodes.parent(id: $0) }?.zone == zone
    }
    guard try !isMoving && transaction.moves.zones(with: zone).isEmpty else {
      throw ZDCCloudError(.invalidParameter, detail: "nodes are still being moved into the branch, or out of it")
    }
  }
}

extension BranchToMove.Obstacle {
  fileprivate var text: String {
    switch self {
    case .tooLarge: "more than \(BranchToMove.limit) nodes move at once"
    case .pointer: "the top of a shared branch moves only inside of its trunk"
    case .sharing: "a node of the branch is about to be shared"
    case .moving: "a node of the branch is still being moved"
    }
  }
}

extension CloudState.ZoneInfo {
  /// Whether the local user may put and delete any node. Before the first pull of an own zone, the server decides.
  var writesFreely: Bool {
    guard let user = UserID(text: localUserID), row.head != nil else { return mayWrite }
    return row.permissions(of: user).writesFreely
  }
}
