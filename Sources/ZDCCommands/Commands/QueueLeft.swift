internal import ZeroDarkCloud

/// Changes that stay queued, one line per node, in the summaries of `sync`, `put` and `status`. Encoded as ``nodes``.
struct QueueLeft: Sendable, Encodable {
  /// `{"code","path"?,"reason"}`
  struct Node: Sendable, Hashable, Encodable {
    /// Nil for a node that was deleted on this device.
    var path: String?
    var code: String
    /// The reason as human-readable text.
    var reason: String

    var text: String { "\(path.map(ShownName.text) ?? "a removed node"): \(reason)" }
  }

  /// Limited to ``limit`` nodes.
  var nodes: [Node]
  var operations: Int
  private var count: Int

  static let limit = 1_000
  private static let shown = 20

  init(_ queue: [String: [QueuedOperation]], path: (String) -> String?) {
    operations = queue.values.reduce(0) { $0 + $1.count }
    count = queue.count
    let causes = queue.compactMap { uuid, queued in Self.cause(queued).map { (uuid, $0) } }
    nodes = causes.sorted { $0.0 < $1.0 }.prefix(Self.limit).map { uuid, cause in
      Node(path: path(uuid), code: cause.code, reason: cause.words)
    }
  }

  /// Returns the operation that blocks a node: one that does not wait for another.
  private static func cause(_ queued: [QueuedOperation]) -> QueuedOperation? {
    queued.first(where: \.isStuck) ?? queued.first { $0.code != ZDCWaitReason.waitingForOperation.rawValue }
      ?? queued.first
  }

  var lines: [String] {
    let rest = count - min(count, Self.shown)
    return nodes.prefix(Self.shown).map(\.text) + (rest > 0 ? ["and \(Amounts.count(rest, "more node"))"] : [])
  }

  func encode(to encoder: any Encoder) throws { try nodes.encode(to: encoder) }

  /// Prints them to standard error.
  func warn(_ output: Output, after first: Int = 0) {
    guard !output.isJSON else { return }
    for line in lines.dropFirst(first) { output.warning(line) }
  }
}

extension OpenProfile {
  /// - Parameter nodes: The nodes to report; nil for the whole queue.
  func queueLeft(_ user: String, _ nodes: NodeSet? = nil) async throws -> QueueLeft {
    try await reader.read { try self.cloud($0, user).queueLeft(nodes) }
  }
}

extension ReadableTree {
  func queueLeft(_ nodes: NodeSet? = nil) throws -> QueueLeft {
    let queue = try queue().filter { nodes?.contains($0.key) ?? true }
    return QueueLeft(queue) { cloud.path(forNodeID: $0)?.fullPath() }
  }
}
