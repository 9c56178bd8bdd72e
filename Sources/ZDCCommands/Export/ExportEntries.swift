internal import ZeroDarkCloud

/// A node of an export with its local record.
struct ExportEntry: Sendable {
  var index: ExportPlan.Index
  var node: ZDCNode
  var record: FileRecord?
}

/// The number of an export's nodes to read at a time, because nodes are large.
enum ExportWindow {
  static let size = 8_192
}

extension OpenProfile {
  /// Plans the export of a node and its descendants.
  func exportPlan(
    _ user: String, _ path: ZDCTreesystemPath, top: [String], policy: ExportNamePolicy, foldsCase: Bool
  ) async throws -> ExportPlan {
    try await reader.read { [self] transaction in
      let tree = try cloud(transaction, user)
      let node = try tree.requireNode(at: path)
      var plan = ExportPlan(.init(node), at: top, policy: policy, foldsCase: foldsCase)
      try tree.addChildren(of: node, plan.indices.lowerBound, to: &plan)
      return plan
    }
  }

  /// Returns these nodes of a plan, without those that have been deleted since.
  func exportEntries(_ user: String, _ plan: ExportPlan, _ indices: some Collection<Int>) async throws -> [ExportEntry]
  {
    let uuids = indices.map { (index: $0, uuid: plan.uuid($0)) }
    return try await reader.read { [self] transaction in
      let tree = try cloud(transaction, user)
      return try uuids.compactMap { index, uuid in
        guard let node = tree.cloud.node(id: uuid) else { return nil }
        return ExportEntry(index: index, node: node, record: try tree.record(of: node))
      }
    }
  }

  /// Returns the paths of nodes in the tree, for messages, and whether this device has queued operations for them.
  func places(_ user: String, _ uuids: [String]) async throws -> [(path: String, isQueued: Bool)] {
    guard !uuids.isEmpty else { return [] }
    return try await reader.read { [self] transaction in
      let tree = try cloud(transaction, user)
      return try uuids.map { uuid in
        (tree.cloud.path(forNodeID: uuid)?.fullPath() ?? "", try tree.queue()[uuid] != nil)
      }
    }
  }
}

extension ReadableTree {
  fileprivate func addChildren(of node: ZDCNode, _ index: ExportPlan.Index, to plan: inout ExportPlan) throws {
    let children = try children(of: node)
    for (child, name) in zip(children, plan.names(of: children.map(ExportPlan.Source.init), in: index)) {
      try addChildren(of: child, plan.add(.init(child), as: name, in: index), to: &plan)
    }
  }
}

extension ExportPlan.Source {
  fileprivate init(_ node: ZDCNode) {
    self.init(
      uuid: node.uuid, name: node.name ?? "", dataSize: node.cloudDataInfo?.dataSize ?? 0,
      hasContent: node.eTag_data != nil)
  }
}
