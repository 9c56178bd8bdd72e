internal import ZeroDarkCloud

/// Changes that stay queued, one line for each node: in the summaries of `sync`, `put` and `status`. As JSON, ``nodes``.
struct QueueLeft: Sendable, Encodable {
  /// `{"code","path"?,"reason"}`
  struct Node: Sendable, Hashable, Encodable {
    /// Nil for a node that is deleted here.
    var path: String?
    var code: String
    /// For people.
    var reason: String

    var text: String { "\(path.map(ShownName.text) ?? "a removed node"): \(reason)" }
  }

  /// At most ``limit``.
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

  /// What holds a node: the change that waits for none of the others.
  private static func cause(_ queued: [QueuedOperation]) -> QueuedOperation? {
    queued.first(where: \.isStuck) ?? queued.first { $0.code != ZDCWaitReason.waitingForOperation.rawValue }
      ?? queued.first
  }

  var lines: [String] {
    let rest = count - min(count, Self.shown)
    return nodes.prefix(Self.shown).map(\.text) + (rest > 0 ? ["and \(Amounts.count(rest, "more node"))"] : [])
  }

  func encode(to encoder: any Encoder) throws { try nodes.encode(to: encoder) }

  /// Names them on standard error.
  func warn(_ output: Output, after first: Int = 0) {
    guard !output.isJSON else { return }
    for line in lines.dropFirst(first) { output.warning(line) }
  }
}

extension OpenProfile {
  /// - Parameter nodes: nil for the whole queue.
  func queueLeft(_ user: String, _ nodes: Set<String>? = nil) async throws -> QueueLeft {
    try await reader.read { try self.cloud($0, user).queueLeft(nodes) }
  }
}

extension ReadableTree {
  func queueLeft(_ nodes: Set<String>? = nil) throws -> QueueLeft {
    let queue = try queue().filter { nodes?.contains($0.key) ?? true }
    return QueueLeft(queue) { cloud.path(forNodeID: $0)?.fullPath() }
  }
}

/// The reason why a change waits, and what to do, in words for the user of `zdc`.
enum WaitWords {
  static func text(_ explanation: ZDCOperationExplanation) -> String {
    if explanation.reason == .ready || explanation.reason == .backoff { return words(explanation) }
    let code = explanation.detail.map { "\(explanation.reason.rawValue): \($0)" } ?? explanation.reason.rawValue
    return "\(words(explanation)) (\(ShownName.text(code)))"
  }

  static func words(_ explanation: ZDCOperationExplanation) -> String {
    switch explanation.reason {
    case .ready, .backoff, .serverSaid: tried(explanation)
    case .waitingForOperation: "it follows another change that is queued"
    case .offline: "the server cannot be reached; zdc sync sends it later"
    case .notPulledYet: "the cloud has a newer version; zdc sync reads it first"
    case .paused: "sending is paused"
    case .noDataFromApp, .promisePending:
      "its file is gone or cannot be read: put it again, or remove it with zdc rm"
    case .conflictHeld: "changed here and by another device: see zdc explain and zdc journal"
    case .deletedRemotely: "another device deleted it: put it again, or remove it with zdc rm"
    case .overQuota: "the account on the server has no room left: remove something, or ask the server's operator"
    case .zoneFrozen: "its tree is frozen: see zdc repair"
    case .unreadable: "its newest version in the cloud cannot be read here: put its content again, or see zdc status"
    case .exhausted: "it was changed too often while it was sent: put it under another name, then remove it"
    case .uploading: "its content is being sent"
    case .inFlight: "the server has not answered yet; zdc sync asks again"
    }
  }

  /// The last answer of the server says more than that it is tried again.
  private static func tried(_ explanation: ZDCOperationExplanation) -> String {
    let code = explanation.reason == .serverSaid ? explanation.detail : explanation.history.last?.code
    guard let code else { return "zdc sync sends it" }
    switch code {
    case "limitExceeded": return "too large for the server, or for a proxy in front of it"
    case "storageFull", "quotaExceeded": return "the server has no room left; zdc sync tries again (\(code))"
    default: return "the server did not take it: \(ShownName.text(code)); zdc sync tries again"
    }
  }
}
