/// One line of the table: a measurement and its target.
struct Row: Sendable {
  enum Reach: Sendable {
    case atMost(Double)
    case atLeast(Double)

    /// Limits of the ratio to the yardstick.
    case ratioAtMost(Double)
    case ratioAtLeast(Double)

    func isMet(by figure: Figure) -> Bool {
      switch self {
      case .atMost(let limit): figure.value <= limit
      case .atLeast(let limit): figure.value >= limit
      case .ratioAtMost(let limit): figure.ratio <= limit
      case .ratioAtLeast(let limit): figure.ratio >= limit
      }
    }
  }

  var id: String
  var title: String
  var unit: String
  var reach: Reach

  static let all = oneUser + crowd + messages + shares + members + grafts + programs

  private static let oneUser = [
    Row(id: "push-10k", title: "create + push 10,000 nodes of 300 B", unit: "s", reach: .atMost(2.5)),
    Row(id: "skeleton-10k", title: "fresh device: 10,000 nodes announced", unit: "s", reach: .atMost(1.2)),
    Row(id: "pull-10k", title: "… and all contents opened", unit: "s", reach: .atMost(2.5)),
    Row(id: "wire-node", title: "sent per node of 300 B", unit: "B", reach: .atMost(1_300)),
    Row(id: "disk-node", title: "server disk per node of 300 B", unit: "B", reach: .atMost(1_000)),
    Row(id: "one-p50", title: "one node, transaction to durable, p50", unit: "ms", reach: .atMost(8)),
    Row(id: "edit-p50", title: "edit on A until B reports it, p50", unit: "ms", reach: .atMost(10)),
    Row(id: "edit-p99", title: "edit on A until B reports it, p99", unit: "ms", reach: .atMost(30)),
    Row(id: "seal", title: "seal a stream, one core", unit: "GB/s", reach: .atLeast(1)),
    Row(id: "open", title: "open a stream, one core", unit: "GB/s", reach: .atLeast(1)),
    Row(id: "push-100k", title: "push of 100,000 nodes", unit: "s", reach: .ratioAtMost(11)),
    Row(id: "pull-100k", title: "skeleton and contents of 100,000 nodes", unit: "s", reach: .ratioAtMost(11)),
    Row(id: "rss-client-100k", title: "client memory with 100,000 nodes, peak", unit: "MiB", reach: .atMost(250)),
    Row(id: "idle", title: "requests of a device with nothing new", unit: "", reach: .atMost(0)),
    Row(id: "idle-reconnect", title: "requests when its stream breaks off", unit: "", reach: .atMost(1)),
    Row(id: "put-1g", title: "1 GiB up", unit: "MB/s", reach: .ratioAtLeast(0.8)),
    Row(id: "get-1g", title: "1 GiB down", unit: "MB/s", reach: .ratioAtLeast(0.8)),
    Row(id: "rss-client-1g", title: "client memory with 1 GiB, peak", unit: "MiB", reach: .atMost(100)),
    Row(id: "rss-server", title: "server memory after all of these, peak", unit: "MiB", reach: .atMost(120)),
    Row(id: "thumb-10g", title: "requests for a thumbnail of 10 GiB", unit: "", reach: .atMost(3)),
    Row(id: "thumb-10g-wire", title: "bytes both ways for it", unit: "KiB", reach: .atMost(200)),
    Row(id: "resend-1g", title: "sent again after SIGKILL at half of 1 GiB", unit: "%", reach: .atMost(2)),
  ]

  private static let crowd = [
    Row(id: "devices-200-p50", title: "200 devices, edit until the other has it, p50", unit: "ms", reach: .atMost(250)),
    Row(id: "devices-200", title: "… p99", unit: "ms", reach: .atMost(250)),
    Row(id: "zones-1000", title: "commits into 1,000 zones", unit: "/s", reach: .atLeast(0)),
    Row(
      id: "hostile-50", title: "50 devices beside a hostile account and host, p99", unit: "ms", reach: .ratioAtMost(3)),
    Row(id: "contend-10", title: "commits of ten devices into one zone", unit: "/s", reach: .atLeast(0)),
  ]

  private static let messages = [
    Row(id: "message-1", title: "message to 1 user until it is announced, p50", unit: "ms", reach: .atMost(100)),
    Row(id: "message-1-requests", title: "… requests of its sender", unit: "", reach: .atMost(5)),
    Row(id: "message-1-wire", title: "… bytes of its sender, both ways", unit: "KiB", reach: .atMost(20)),
    Row(id: "message-10", title: "message to 10 users until all announce it, p50", unit: "ms", reach: .atMost(250)),
    Row(id: "message-10-requests", title: "… requests of its sender", unit: "", reach: .atMost(5)),
    Row(id: "message-10-wire", title: "… bytes of its sender, both ways", unit: "KiB", reach: .atMost(60)),
    Row(id: "message-100", title: "message to 100 users until all announce it, p50", unit: "ms", reach: .atMost(2_000)),
    Row(id: "message-100-requests", title: "… requests of its sender", unit: "", reach: .atMost(5)),
    Row(id: "message-100-wire", title: "… bytes of its sender, both ways", unit: "KiB", reach: .atMost(500)),
  ]

  private static let shares = [
    Row(id: "share-10", title: "share a branch of 10 nodes", unit: "s", reach: .atMost(0.3)),
    Row(id: "share-10-requests", title: "… requests of its owner", unit: "", reach: .atMost(10)),
    Row(id: "share-10-wire", title: "… bytes of its owner, both ways", unit: "KiB", reach: .atMost(64)),
    Row(id: "share-1k", title: "share a branch of 1,000 nodes", unit: "s", reach: .atMost(0.3)),
    Row(id: "share-1k-requests", title: "… requests of its owner", unit: "", reach: .ratioAtMost(1.5)),
    Row(id: "share-1k-wire", title: "… bytes of its owner, both ways", unit: "KiB", reach: .ratioAtMost(1.5)),
    Row(id: "share-100k", title: "share a branch of 100,000 nodes", unit: "s", reach: .atMost(0.3)),
    Row(id: "share-100k-requests", title: "… requests of its owner", unit: "", reach: .ratioAtMost(1.5)),
    Row(id: "share-100k-wire", title: "… bytes of its owner, both ways", unit: "KiB", reach: .ratioAtMost(1.5)),
    Row(id: "unshare-10", title: "remove the member of a branch of 10 nodes", unit: "s", reach: .atMost(0.3)),
    Row(id: "unshare-10-requests", title: "… requests of its owner", unit: "", reach: .atMost(10)),
    Row(id: "unshare-10-wire", title: "… bytes of its owner, both ways", unit: "KiB", reach: .atMost(64)),
    Row(id: "unshare-1k", title: "remove the member of a branch of 1,000 nodes", unit: "s", reach: .atMost(0.3)),
    Row(id: "unshare-1k-requests", title: "… requests of its owner", unit: "", reach: .ratioAtMost(1.5)),
    Row(id: "unshare-1k-wire", title: "… bytes of its owner, both ways", unit: "KiB", reach: .ratioAtMost(1.5)),
    Row(id: "unshare-100k", title: "remove the member of a branch of 100,000 nodes", unit: "s", reach: .atMost(0.3)),
    Row(id: "unshare-100k-requests", title: "… requests of its owner", unit: "", reach: .ratioAtMost(1.5)),
    Row(id: "unshare-100k-wire", title: "… bytes of its owner, both ways", unit: "KiB", reach: .ratioAtMost(1.5)),
  ]

  private static let members = [1, 10, 100, 1_000].flatMap { count in
    [
      Row(id: "members-\(count)", title: "share a branch with \(count) users at once", unit: "s", reach: .atMost(2)),
      Row(id: "members-\(count)-requests", title: "… requests of its owner", unit: "", reach: .atMost(20)),
      Row(id: "removal-\(count)", title: "remove one of \(count) members", unit: "s", reach: .atMost(2)),
      Row(id: "removal-\(count)-requests", title: "… requests of the owner", unit: "", reach: .atMost(20)),
    ]
  }

  private static let grafts = [
    Row(id: "log-100k", title: "a new member reads a log of 100,000 commits", unit: "s", reach: .atMost(8)),
    Row(id: "log-100k-requests", title: "… requests of the member", unit: "", reach: .atMost(15)),
    Row(id: "member-edit-p50", title: "edit until one of 100 members has it, p50", unit: "ms", reach: .atMost(250)),
    Row(id: "member-edit-p99", title: "… p99", unit: "ms", reach: .atMost(250)),
    Row(id: "graft-100k", title: "a branch of 100,000 nodes, grafted", unit: "s", reach: .ratioAtMost(1.5)),
    Row(id: "graft-100k-requests", title: "… requests of the guest", unit: "", reach: .atMost(150)),
    Row(id: "graft-100k-wire", title: "… bytes for each node, both ways", unit: "B", reach: .atMost(1_300)),
  ]

  private static let programs = [
    Row(id: "start-server", title: "start of the server to its first answer", unit: "s", reach: .atMost(0.3)),
    Row(id: "ls-10k", title: "zdc ls of 10,000 nodes", unit: "s", reach: .atMost(0.2)),
  ]
}

/// Rows that come from one measurement.
struct RowGroup: Sendable {
  var ids: [String]
  /// The disk space that it needs.
  var disk: @Sendable (Scale) -> UInt64 = { _ in 0 }
  var measure: @Sendable (Bench) async throws -> [Figure]

  static let all = [
    RowGroup(ids: ["push-10k", "skeleton-10k", "pull-10k", "wire-node", "disk-node"]) { try await $0.bulk() },
    RowGroup(ids: ["one-p50"]) { try await $0.oneByOne() },
    RowGroup(ids: ["edit-p50", "edit-p99"]) { try await $0.edits() },
    RowGroup(ids: ["seal", "open"]) { try $0.contentStream() },
    RowGroup(
      ids: [
        "push-100k", "pull-100k", "rss-client-100k", "idle", "idle-reconnect", "put-1g", "get-1g", "rss-client-1g",
        "rss-server",
      ], disk: { UInt64($0.manyNodes) * 15_000 + UInt64(3 + $0.largeRuns) * $0.largeBytes }
    ) { try await $0.big() },
    RowGroup(ids: ["thumb-10g", "thumb-10g-wire"], disk: { $0.hugeBytes + $0.hugeBytes / 16 }) {
      try await $0.thumbnail()
    },
    RowGroup(ids: ["resend-1g"], disk: { 3 * $0.largeBytes }) { try await $0.resend() },
    RowGroup(ids: ["devices-200-p50", "devices-200"]) { try await $0.manyDevices() },
    RowGroup(ids: ["zones-1000"]) { try await $0.manyZones() },
    RowGroup(ids: ["hostile-50"]) { try await $0.hostileLoad() },
    RowGroup(ids: ["contend-10"]) { try await $0.contention() },
    RowGroup(
      ids: [1, 10, 100].flatMap { ["message-\($0)", "message-\($0)-requests", "message-\($0)-wire"] }
    ) { try await $0.messages() },
    RowGroup(
      ids: ["share", "unshare"].flatMap { name in
        ["10", "1k", "100k"].flatMap { ["\(name)-\($0)", "\(name)-\($0)-requests", "\(name)-\($0)-wire"] }
      },
      disk: { UInt64($0.manyNodes) * 15_000 }
    ) { try await $0.share() },
    RowGroup(
      ids: [1, 10, 100, 1_000].flatMap { count in
        ["members", "removal"].flatMap { ["\($0)-\(count)", "\($0)-\(count)-requests"] }
      }
    ) { try await $0.members() },
    RowGroup(ids: ["log-100k", "log-100k-requests"]) { try await $0.longLog() },
    RowGroup(ids: ["member-edit-p50", "member-edit-p99"]) { try await $0.memberEdits() },
    RowGroup(
      ids: ["graft-100k", "graft-100k-requests", "graft-100k-wire"], disk: { UInt64($0.graftedNodes) * 20_000 }
    ) { try await $0.graft() },
    RowGroup(ids: ["start-server"]) { try await $0.serverStart() },
    RowGroup(ids: ["ls-10k"]) { try await $0.list() },
  ]
}
