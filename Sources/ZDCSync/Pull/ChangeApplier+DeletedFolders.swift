internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

// Records of nodes that other devices have moved into a branch that this device deletes.

extension ChangeApplier {
  /// Deleted folders, each in the one before, and the node above them, which is not deleted.
  struct DeletedPlace {
    var above: NodeRow
    var folders: [LogNode]
  }

  func deletedPlace(of node: NodeID) throws -> DeletedPlace? {
    var folders: [LogNode] = []
    for ancestor in try leaves.ancestors(of: node) {
      if let row = try nodes.node(zone: zoneRow.id, nodeID: ancestor) {
        return DeletedPlace(above: row, folders: folders.reversed())
      }
      guard let leaf = try leaves.leaf(ancestor) else { return nil }
      folders.append(leaf)
    }
    return nil
  }

  /// Whether something that opens the node's record has not been read yet: the folders' records, or the newest key of
  /// the node above them.
  mutating func isEarly(below place: DeletedPlace) throws -> Bool {
    if folders.needs(place.folders) { return true }
    guard let top = place.folders.first, top.parentKeyGen > place.above.keyGen else { return false }
    return try leaves.pendingLeaf(place.above.nodeID) != nil
  }

  /// Opens the record of a node in a branch that this device deletes, whose rows had the branch's keys. The node's own
  /// key opens it, unless it has a new one.
  ///
  /// - Returns: Nil if it cannot be opened.
  func open(_ record: NodeRecord, _ row: NodeRow, in place: DeletedPlace?) throws -> OpenedRecord? {
    guard let place, let top = place.folders.first else { return try quarantine.open(record, key: row.key) }
    return try quarantine.open(record) {
      let keys = try nodes.keys(of: place.above, keyGen: top.parentKeyGen, tree: zoneRow.zone.tree)
      return try folders.keys(of: place.folders, below: keys, keyGen: record.fields.parentKeyGen)
    }
  }
}
