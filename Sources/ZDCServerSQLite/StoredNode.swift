package import GRDB
package import ZDCProtocol
internal import ZDCServer

/// A live node as the database has it, for tools that read a folder beside the server.
package struct StoredNode: Sendable {
  package var id: NodeID
  package var parent: NodeID
  package var record: [UInt8]
  /// The length of its content; nil without content.
  package var contentBytes: UInt64?

  /// Returns all live nodes of a zone, in the order in which their records came.
  package static func all(inZone zone: Int64, _ db: Database) throws -> [StoredNode] {
    let store = SQLiteTransaction(db)
    defer { store.invalidate() }
    var nodes: [LiveNode] = []
    try store.eachLiveNode { node in
      let tree = try store.tree(of: node.commit.zone)
      if try store.zoneKey(of: node, tree: tree)?.rawValue == zone { nodes.append(node) }
      return true
    }
    nodes.sort { ($0.commitKey, $0.index) < ($1.commitKey, $1.index) }
    return try nodes.map { node in
      let put = try node.put()
      let blob = try node.blobKey.flatMap { try store.blob($0) }
      return StoredNode(
        id: put.node, parent: put.parent, record: try node.storedRecord().bytes, contentBytes: blob?.cipherLength)
    }
  }
}
