internal import ZDCClientStore
internal import ZDCTreesystem

// Notifies the app of changes that other devices have made. Each function returns the number of callbacks.

extension LocalTreeResolver {
  func announceNew(_ row: NodeRow) throws -> Int {
    let node = try session.node(row, in: transaction)
    let path = try path(row)
    try session.tell(.didDiscoverNewNode, row.nodeID, in: transaction) {
      try $0.didDiscoverNewNode(node, at: path, transaction: transaction)
    }
    return 1
  }

  func announce(_ change: RemoteChange, _ row: NodeRow, oldPath: ZDCTreesystemPath) throws -> Int {
    let newPath = try path(row)
    var callbacks = try announceMove(row, from: oldPath)
    let node = try session.node(row, in: transaction)
    if change.record && newPath == oldPath {
      callbacks += try announceModified(row, node, .treesystem, at: newPath)
    }
    if change.data { callbacks += try announceModified(row, node, .data, at: newPath) }
    return callbacks
  }

  private func announceModified(
    _ row: NodeRow, _ node: ZDCNode, _ change: ZDCNodeChange, at path: ZDCTreesystemPath
  ) throws -> Int {
    try session.tell(.didDiscoverModifiedNode, row.nodeID, in: transaction) {
      try $0.didDiscoverModifiedNode(node, with: change, at: path, transaction: transaction)
    }
    return 1
  }
}
