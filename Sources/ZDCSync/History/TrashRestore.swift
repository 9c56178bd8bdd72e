internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol
internal import ZDCSupport
internal import ZDCTreesystem

/// Creates a deleted node again, with the nodes that were deleted with it.
///
/// The nodes get the IDs that they had, so their records name content that the server still has for these nodes: nothing
/// is downloaded or sent again. They get fresh keys.
struct TrashRestore {
  let session: SyncSession
  let top: FormerVersion

  /// - Parameter folder: The `uuid` of another folder than the one that the node was in.
  func run(into folder: String?) async throws -> ZDCTrashRestoration {
    let branch = try await session.database.asyncRead { try FormerStore($0).branch(of: top) }
    let read = try await FormerReader(session: session).read(branch)
    if let problem = read.first(where: { $0.version.id == top.id })?.problem {
      throw ZDCSecurityError(problem, node: top.node)
    }
    // The app's error, if it throws, reverts all of it.
    return try await session.database.asyncReadWrite { transaction in
      var restored = RestoredBranch(session: session, transaction: transaction, zone: top.zone, read)
      try restored.requireFree(top)
      return try restored.create(top, below: try parent(folder, transaction))
    }
  }

  private func parent(_ folder: String?, _ transaction: ZDCReadWriteTransaction) throws -> NodeRow {
    let nodes = transaction.nodes
    let row =
      try folder.map { try nodes.node(uuid: $0) }
      ?? nodes.node(zone: top.zone, nodeID: top.expected.leaf.parent)
    guard let row, !row.isPlaceholder, row.pointer == nil else {
      throw ZDCCloudError(.missingParent, detail: "the folder of the deleted node is gone; name another one")
    }
    guard row.zone == top.zone else {
      throw ZDCCloudError(
        .invalidParameter, detail: "a deleted node can be restored in its own branch only; move it afterwards")
    }
    guard try transaction.zones.zone(id: top.zone)?.mayWrite(session.user) ?? false else {
      throw ZDCCloudError(.notAllowed)
    }
    return row
  }
}

/// The nodes of a restored branch, inside one transaction.
private struct RestoredBranch {
  private let session: SyncSession
  private let transaction: ZDCReadWriteTransaction
  private let zone: Int64
  private let read: [NodeID: FormerReader.Read]
  private let children: [NodeID: [NodeID]]
  private let places: LocalTreeResolver
  private var created: [NodeRow] = []

  init(
    session: SyncSession, transaction: ZDCReadWriteTransaction, zone: Int64, _ read: [FormerReader.Read]
  ) {
    (self.session, self.transaction, self.zone) = (session, transaction, zone)
    self.read = Dictionary(read.map { ($0.version.node, $0) }) { first, _ in first }
    children = Dictionary(grouping: read, by: \.version.expected.leaf.parent).mapValues { $0.map(\.version.node) }
    places = LocalTreeResolver(session: session, transaction: transaction)
  }

  func requireFree(_ top: FormerVersion) throws {
    guard try isFree(top.node) else { throw ZDCCloudError(.conflict, detail: "the node is in the tree again") }
  }

  mutating func create(_ top: FormerVersion, below parent: NodeRow) throws -> ZDCTrashRestoration {
    guard
      let first = try create(top.node, below: parent, dependsOn: try transaction.operations.create(ofNode: parent.id))
    else { throw ServerError(.gone, "the server no longer keeps the deleted node") }
    var next = [first]
    while let (row, operation) = next.popLast() {
      for child in children[row.nodeID] ?? [] {
        if let made = try create(child, below: row, dependsOn: operation) { next.append(made) }
      }
    }
    transaction.signal(.queue(localUser: session.localUser))
    for row in created { try announce(row) }
    return ZDCTrashRestoration(
      node: try session.node(first.row, in: transaction), restored: created.count, left: read.count - created.count)
  }

  /// Creates one node.
  ///
  /// - Returns: Nil if it cannot be restored.
  private mutating func create(
    _ node: NodeID, below parent: NodeRow, dependsOn: Int64?
  ) throws -> (row: NodeRow, operation: Int64)? {
    guard let read = read[node], let former = read.opened, try isFree(node) else { return nil }
    let secrets = former.opened.secrets
    guard secrets.pointer == nil, secrets.unknownExtras.isEmpty, parent.depth < Limits.depthAtCreation else {
      return nil
    }
    // A folder is restored also without its own content, for the sake of the nodes in it.
    let content = read.state.hasContent ? former.content : nil
    guard content != nil || former.content == nil || children[node] != nil else { return nil }
    let name = try places.freeName(secrets.name, under: parent, except: 0)
    var row = NodeRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: zone, nodeID: node, parent: parent.id, depth: parent.depth + 1,
      nameTag: try transaction.nodes.nameKeys(of: parent).nameTag(folded: name), name: name, key: .random(), keyGen: 1,
      createdMs: secrets.createdMs, content: content)
    try transaction.nodes.insert(&row)
    created.append(row)
    return (row, try queue(row, dependsOn: dependsOn))
  }

  /// Whether no node has the ID, neither in the cloud nor in the queue.
  private func isFree(_ node: NodeID) throws -> Bool {
    try transaction.leaves(zone: zone).leaf(node) == nil
      && transaction.nodes.node(zone: zone, nodeID: node) == nil
      && transaction.operations.operations(zone: zone, nodeID: node).isEmpty
  }

  private func queue(_ row: NodeRow, dependsOn: Int64?) throws -> Int64 {
    var operation = OperationRow(
      uuid: UUIDv7.make(atMs: session.now()), zone: zone, kind: .create, node: row.id, nodeUUID: row.uuid,
      nodeID: row.nodeID, createdMs: session.now())
    // Another device may restore the same node at the same time: then there is one node.
    operation.resend = 1
    operation.baseETag = row.content?.content.eTag
    try transaction.operations.insert(&operation, dependsOn: dependsOn.map { [$0] } ?? [])
    return operation.id
  }

  private func announce(_ row: NodeRow) throws {
    let node = try session.node(row, in: transaction)
    let path = try places.path(row)
    try session.tell(.didDiscoverNewNode, row.nodeID, in: transaction) {
      try $0.didDiscoverNewNode(node, at: path, transaction: transaction)
    }
  }
}
