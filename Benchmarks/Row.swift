/// One line of the table: what is measured and what is to be reached.
struct Row: Sendable {
  enum Reach: Sendable {
    case atMost(Double)
    case atLeast(Double)

    func isMet(by value: Double) -> Bool {
      switch self {
      case .atMost(let limit): value <= limit
      case .atLeast(let limit): value >= limit
      }
    }
  }

  var id: String
  var title: String
  var unit: String
  var reach: Reach

  static let all = [
    Row(id: "push-10k", title: "create + push 10,000 nodes of 300 B", unit: "s", reach: .atMost(2.5)),
    Row(id: "skeleton-10k", title: "fresh device: 10,000 nodes announced", unit: "s", reach: .atMost(1.2)),
    Row(id: "pull-10k", title: "… and all contents opened", unit: "s", reach: .atMost(2.5)),
    Row(id: "wire-node", title: "sent per node of 300 B", unit: "B", reach: .atMost(1_300)),
    Row(id: "disk-node", title: "server disk per node of 300 B", unit: "B", reach: .atMost(2_200)),
    Row(id: "rss-server", title: "server memory, peak", unit: "MiB", reach: .atMost(120)),
    Row(id: "one-p50", title: "one node, transaction to durable, p50", unit: "ms", reach: .atMost(8)),
    Row(id: "edit-p50", title: "edit on A until B is told, p50", unit: "ms", reach: .atMost(10)),
    Row(id: "edit-p99", title: "edit on A until B is told, p99", unit: "ms", reach: .atMost(30)),
    Row(id: "seal", title: "seal a stream, one core", unit: "GB/s", reach: .atLeast(1)),
    Row(id: "open", title: "open a stream, one core", unit: "GB/s", reach: .atLeast(1)),
    Row(id: "start-server", title: "start of the server to its first answer", unit: "s", reach: .atMost(0.3)),
    Row(id: "ls-10k", title: "zdc ls of 10,000 nodes", unit: "s", reach: .atMost(0.2)),
  ]
}

/// Rows that one piece of work gives.
struct RowGroup: Sendable {
  var ids: [String]
  var measure: @Sendable (Bench) async throws -> [Figure]

  static let all = [
    RowGroup(ids: ["push-10k", "skeleton-10k", "pull-10k", "wire-node", "disk-node", "rss-server"]) {
      try await $0.bulk()
    },
    RowGroup(ids: ["one-p50"]) { try await $0.oneByOne() },
    RowGroup(ids: ["edit-p50", "edit-p99"]) { try await $0.edits() },
    RowGroup(ids: ["seal", "open"]) { try $0.contentStream() },
    RowGroup(ids: ["start-server"]) { try await $0.serverStart() },
    RowGroup(ids: ["ls-10k"]) { try await $0.list() },
  ]
}
