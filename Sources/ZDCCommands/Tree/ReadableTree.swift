internal import ZeroDarkCloud

/// A node with everything that commands show about it.
struct TreeEntry: Sendable {
  var node: ZDCNode
  var path: ZDCTreesystemPath
  var record: FileRecord?
  var hasChildren: Bool
  /// See ``ListedNode/state``.
  var state: String

  var isFolder: Bool { record?.kind == .folder || hasChildren }
}

/// The local tree within one transaction.
class ReadableTree {
  let cloud: ZDCCloudReadTransaction
  let transaction: ZDCReadTransaction
  private var queueByNode: [String: [QueuedOperation]]?

  init(_ cloud: ZDCCloudReadTransaction, _ transaction: ZDCReadTransaction) {
    self.cloud = cloud
    self.transaction = transaction
  }

  final func node(at path: ZDCTreesystemPath) throws -> ZDCNode? {
    cloud.node(path: path)
  }

  final func requireNode(at path: ZDCTreesystemPath) throws -> ZDCNode {
    guard let node = try node(at: path) else { throw Self.notFound(path) }
    return node
  }

  static func notFound(_ path: ZDCTreesystemPath) -> CommandError {
    CommandError(
      .noInput, "nodeNotFound", "\(ShownName.text(path.fullPath())): no such node in the tree",
      hint: path.isTrunk ? "pull first: zdc sync" : "see what is there: zdc ls")
  }

  /// Returns the children, sorted by the bytes of their names.
  final func children(of node: ZDCNode) throws -> [ZDCNode] {
    let children = try cloud.children(ofNodeID: node.uuid)
    // Sorts positions instead of nodes: moving nodes costs more than comparing names.
    let names = children.map { Array(($0.name ?? "").utf8) }
    return children.indices.sorted { names[$0].lexicographicallyPrecedes(names[$1]) }.map { children[$0] }
  }

  final func hasChildren(_ node: ZDCNode) throws -> Bool {
    cloud.hasChildren(node.uuid)
  }

  final func record(of node: ZDCNode) throws -> FileRecord? {
    guard node.trunk == nil else { return nil }
    return try transaction.object(FileRecord.self, forKey: node.uuid, inCollection: FileRecord.collection)
  }

  /// - Throws: ``CommandError`` if the node is a file: nothing can be put or moved below a file.
  final func requireFolder(_ node: ZDCNode, _ path: ZDCTreesystemPath) throws {
    guard node.trunk == nil, try !hasChildren(node) else { return }
    let isFile = try record(of: node).map { $0.kind == .file } ?? ((node.cloudDataInfo?.dataSize ?? 0) > 0)
    guard isFile else { return }
    throw CommandError(.cannotCreate, "notAFolder", "\(ShownName.text(path.fullPath())) is a file, not a folder")
  }

  // MARK: Listing

  /// Returns the children of a node, or the node itself if it has none.
  ///
  /// - Parameter isDetailed: If false, a node with data counts as a file, and nothing more is looked up about it.
  final func listing(at path: ZDCTreesystemPath, isDetailed: Bool) throws -> [TreeEntry] {
    let node = try requireNode(at: path)
    let children = try children(of: node)
    let isFolder = try record(of: node)?.kind == .folder
    guard !children.isEmpty || node.trunk != nil || isFolder else {
      return [try entry(node, path, hasChildren: false)]
    }
    return try children.map { child in
      if !isDetailed, let info = child.cloudDataInfo, info.dataSize > 0 {
        let place = path.appendingComponent(child.name ?? "")
        return TreeEntry(node: child, path: place, record: nil, hasChildren: false, state: "")
      }
      return try entry(child, path.appendingComponent(child.name ?? ""), hasChildren: try hasChildren(child))
    }
  }

  final func entry(at path: ZDCTreesystemPath) throws -> TreeEntry {
    let node = try requireNode(at: path)
    return try entry(node, path, hasChildren: hasChildren(node))
  }

  /// Returns the node and its descendants, parents before children.
  final func subtree(at path: ZDCTreesystemPath) throws -> [TreeEntry] {
    var entries: [TreeEntry] = []
    try collect(try requireNode(at: path), path, into: &entries)
    return entries
  }

  private func collect(_ node: ZDCNode, _ path: ZDCTreesystemPath, into entries: inout [TreeEntry]) throws {
    // One query for children per node dominates the time, so it also determines `hasChildren`. A file of `zdc` has no
    // children, and most nodes are files.
    let children = try children(of: node)
    entries.append(try entry(node, path, hasChildren: !children.isEmpty))
    for child in children { try collect(child, path.appendingComponent(child.name ?? ""), into: &entries) }
  }

  final func uuids(atOrBelow top: String) throws -> Set<String> {
    var uuids: Set<String> = []
    var open = [top]
    while let next = open.popLast() {
      uuids.insert(next)
      open += try cloud.children(ofNodeID: next).map(\.uuid)
    }
    return uuids
  }

  private func entry(_ node: ZDCNode, _ path: ZDCTreesystemPath, hasChildren: Bool) throws -> TreeEntry {
    TreeEntry(
      node: node, path: path, record: try record(of: node), hasChildren: hasChildren, state: try state(of: node))
  }

  private func state(of node: ZDCNode) throws -> String {
    if node.quarantine != nil { return "quarantined" }
    guard let queued = try queue()[node.uuid] else { return "synced" }
    return queued.contains(where: \.isStuck) ? "held" : "queued"
  }

  // MARK: The queue

  final func queue() throws -> [String: [QueuedOperation]] {
    if let queueByNode { return queueByNode }
    let made = Dictionary(grouping: cloud.explainQueue().map(QueuedOperation.init), by: \.nodeUUID)
    queueByNode = made
    return made
  }

  final func queue(ofNodes nodes: NodeSet) throws -> [QueuedOperation] {
    try queue().filter { nodes.contains($0.key) }.flatMap(\.value)
  }
}

/// The local tree within a transaction that changes it.
final class WritableTree: ReadableTree {
  let writable: ZDCCloudTransaction
  private let readWrite: ZDCReadWriteTransaction

  init(_ cloud: ZDCCloudTransaction, _ transaction: ZDCReadWriteTransaction) {
    writable = cloud
    readWrite = transaction
    super.init(cloud, transaction)
  }

  /// Inserts a new node and queues its record and content.
  func insert(_ name: String, below parent: ZDCNode) throws -> ZDCNode {
    var node = ZDCNode(localUserID: writable.localUserID)
    node.parentID = parent.uuid
    node.name = name
    return try writable.insertNode(node)
  }

  /// Links the node to its ``FileRecord``.
  func link(_ node: ZDCNode) throws {
    try writable.linkNodeID(node.uuid, toKey: node.uuid, inCollection: FileRecord.collection)
  }

  func queueUpload(_ uuid: String) {
    writable.queueDataUpload(forNodeID: uuid, withChangeset: nil)
  }

  func hasQueuedUpload(_ node: ZDCNode) throws -> Bool {
    writable.hasPendingDataUploads(forNodeID: node.uuid)
  }

  func move(_ node: ZDCNode, to path: ZDCTreesystemPath) throws {
    try writable.moveNode(node, to: path)
  }

  /// Deletes a node with its descendants and their file records.
  ///
  /// - Returns: The uuids of the deleted nodes.
  func delete(_ node: ZDCNode) throws -> [String] {
    let uuids = try uuids(atOrBelow: node.uuid)
    try writable.delete(node)
    for uuid in uuids { forget(uuid) }
    return Array(uuids)
  }

  func forget(_ uuid: String) {
    readWrite.removeObject(forKey: uuid, inCollection: FileRecord.collection)
  }

  func store(_ record: FileRecord, _ uuid: String) throws {
    guard let node = writable.node(id: uuid), node.eTag_data == record.eTag else { return }
    // The queued version is newer than the fetched one.
    guard !writable.hasPendingDataUploads(forNodeID: uuid) else { return }
    let isLinked = readWrite.hasObject(forKey: uuid, inCollection: FileRecord.collection)
    readWrite.setObject(record, forKey: uuid, inCollection: FileRecord.collection)
    if !isLinked { try link(node) }
  }
}
