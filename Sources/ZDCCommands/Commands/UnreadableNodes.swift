internal import Foundation
internal import ZDCProtocol
internal import ZDCTreesystem
internal import ZeroDarkCloud

/// Nodes whose newest version in the cloud this device lacks or cannot open. A new node has no name here, so its folder
/// is shown.
struct UnreadableNodes: Sendable {
  /// `{"cloudID","code","folder"?,"path"?,"sinceMs"}`
  struct Node: Sendable, Hashable, Encodable {
    var cloudID: String
    var code: String
    /// The node's path; nil for a node that was never read.
    var path: String?
    /// The nearest known folder above a node that was never read.
    var folder: String?
    var sinceMs: UInt64

    var text: String {
      if let path, code == ZDCSecurityError.Code.inviteNotAuthorized.rawValue {
        return "\(ShownName.text(path)): the server does not let this account read the branch (\(code))"
      }
      if let path {
        return "\(ShownName.text(path)): its newest version cannot be read (\(code)); an older one is here"
      }
      return "\(folder.map(ShownName.text) ?? "the tree"): a node in it cannot be read (\(code))"
    }
  }

  private(set) var nodes: [Node] = []

  private static let shown = 20

  init(_ nodes: [Node]) {
    self.nodes = nodes
  }

  /// Returns the nodes at or below a path.
  func below(_ place: ZDCTreesystemPath) -> UnreadableNodes {
    let full = place.fullPath()
    let prefix = full.hasSuffix("/") ? full : full + "/"
    return UnreadableNodes(
      nodes.filter { node in
        guard let at = node.path ?? node.folder else { return true }
        return at == full || at.hasPrefix(prefix)
      })
  }

  var isEmpty: Bool { nodes.isEmpty }

  var lines: [String] {
    let rest = nodes.count - min(nodes.count, Self.shown)
    return nodes.prefix(Self.shown).map(\.text) + (rest > 0 ? ["and \(Amounts.count(rest, "more node"))"] : [])
  }

  /// Prints them to standard error.
  func warn(_ output: Output) {
    guard !output.isJSON else { return }
    for line in lines { output.warning(line) }
  }
}

extension OpenProfile {
  func unreadableNodes(_ user: String) async throws -> UnreadableNodes {
    let nodes = try await sync.unreadableNodes(localUserID: user)
    guard !nodes.isEmpty else { return UnreadableNodes([]) }
    return try await reader.read { transaction in
      let cloud = try self.cloud(transaction, user).cloud
      return UnreadableNodes(
        nodes.map { node in
          let path = node.nodeID.flatMap { cloud.path(forNodeID: $0)?.fullPath() }
          let folder = path == nil ? node.parentID.flatMap { cloud.path(forNodeID: $0)?.fullPath() } : nil
          return UnreadableNodes.Node(
            cloudID: node.cloudID, code: node.code.rawValue, path: path, folder: folder,
            sinceMs: UInt64(max(0, node.since.timeIntervalSince1970) * 1_000))
        })
    }
  }
}
