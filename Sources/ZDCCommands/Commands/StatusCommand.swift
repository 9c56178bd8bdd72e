internal import Foundation
internal import ZDCProtocol
internal import ZeroDarkCloud

/// `zdc status`.
package enum StatusCommand {
  /// `{"connection","engine","frozen":[{"error","path","sinceMs","trunk","zone"}],"lastPullMs"?,"nodes","profile","quarantined","queue":{"byReason","stuck"?:[{"code","path"?,"reason"}],"total"},"securityEvents":{"byCode","lastMs"?,"total"},"server","serverVersion"?,"stalled":[{"error","path","sinceMs","trunk","zone"}],"unreadable":[{"cloudID","code","folder"?,"path"?,"sinceMs"}],"userID"}`
  package struct Report: Encodable, Sendable {
    package struct Queue: Encodable, Sendable {
      var total = 0
      var byReason: [String: Int] = [:]
      /// Nodes with an operation that is blocked.
      var stuck: QueueLeft?
    }

    /// The server responses that failed verification, among the newest thousand that were kept.
    package struct SecurityEvents: Encodable, Sendable {
      var total = 0
      var byCode: [String: Int] = [:]
      var lastMs: UInt64?
    }

    var profile: String
    var server: String
    var userID: String
    /// `ok`, an error's code, or `unasked`.
    var connection: String
    /// The version that the server reports, if it was asked.
    var serverVersion: String?
    /// `running` in another process, or `idle`.
    var engine: String
    var nodes = 0
    var quarantined = 0
    var queue = Queue()
    var lastPullMs: UInt64?
    /// Trees that are neither pulled nor pushed.
    var frozen: [OutdatedTrees.Tree] = []
    /// Trees that may be out of date, because the server's data failed verification.
    var stalled: [OutdatedTrees.Tree] = []
    var securityEvents = SecurityEvents()
    /// Nodes whose version in the cloud this device cannot read.
    var unreadable: [UnreadableNodes.Node] = []
  }

  package static func run(_ options: ProfileOptions, isOffline: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    let isIdle = try !opened.sync.isSyncedElsewhere()
    var report = try await local(options, engine)
    report.engine = isIdle ? "idle" : "running"
    let outdated = try await opened.outdatedTrees(engine.user)
    (report.frozen, report.stalled) = (outdated.frozen, outdated.stalled)
    report.securityEvents = try await events(engine)
    report.unreadable = try await opened.unreadableNodes(engine.user).nodes
    if !isOffline { (report.connection, report.serverVersion) = await ask(engine) }
    try options.output.object(report)
    for line in lines(report) { options.output.line(line) }
    try await opened.close()
  }

  private static func local(_ options: ProfileOptions, _ engine: Engine) async throws -> Report {
    let opened = engine.opened
    let start = Report(
      profile: options.name, server: opened.server, userID: engine.user, connection: "unasked", engine: "idle")
    return try await opened.reader.read { transaction in
      var report = start
      let tree = try opened.cloud(transaction, engine.user)
      for trunk in ZDCTreesystemTrunk.allCases where trunk != .detached {
        let path = ZDCTreesystemPath(pathComponents: [], trunk: trunk)
        guard try tree.node(at: path) != nil else { continue }
        for entry in try tree.subtree(at: path) where entry.node.trunk == nil {
          report.nodes += 1
          if entry.node.quarantine != nil { report.quarantined += 1 }
        }
      }
      let queue = try tree.queue()
      for entry in queue.values.joined() {
        report.queue.total += 1
        report.queue.byReason[entry.code, default: 0] += 1
      }
      let stuck = try tree.queueLeft(NodeSet(queue.filter { $0.value.contains(where: \.isStuck) }.keys))
      report.queue.stuck = stuck.nodes.isEmpty ? nil : stuck
      report.lastPullMs = try transaction.object(
        LastPull.self, forKey: LastPull.key, inCollection: LastPull.collection)?.milliseconds
      return report
    }
  }

  private static func events(_ engine: Engine) async throws -> Report.SecurityEvents {
    let events = try await engine.opened.sync.securityEvents(localUserID: engine.user)
    var report = Report.SecurityEvents(total: events.reduce(0) { $0 + $1.times })
    for event in events { report.byCode[event.error.code.rawValue, default: 0] += event.times }
    report.lastMs = events.first.map { UInt64(max(0, $0.date.timeIntervalSince1970) * 1_000) }
    return report
  }

  private static func ask(_ engine: Engine) async -> (String, String?) {
    do {
      guard let userID = UserID(text: engine.user) else { return ("internal", nil) }
      let info = try await engine.opened.users.serverAPI(for: userID).info()
      return ("ok", "\(info.name) \(info.version)")
    } catch { return (ErrorReport(error).code, nil) }
  }

  private static func lines(_ report: Report) -> [String] {
    var lines = [
      "profile     \(report.profile)", "user        \(report.userID)", "server      \(report.server)",
      "connection  \(report.connection)\(report.serverVersion.map { " (\(ShownName.text($0)))" } ?? "")",
      "engine      \(report.engine == "running" ? "running in another process" : "idle")",
      "nodes       \(report.nodes)\(report.quarantined > 0 ? ", \(report.quarantined) quarantined" : "")",
    ]
    lines.append("last pull   \(report.lastPullMs.map { Amounts.ago($0, now: WallClock.milliseconds) } ?? "never")")
    lines.append("queue       \(report.queue.total == 0 ? "empty" : "\(report.queue.total)")")
    for (reason, count) in report.queue.byReason.sorted(by: { $0.key < $1.key }) {
      lines.append("            \(count) \(reason)")
    }
    lines += (report.queue.stuck?.lines ?? []).map { "              \($0)" }
    if !report.unreadable.isEmpty {
      lines.append("unreadable  \(Amounts.count(report.unreadable.count, "node"))")
      lines += UnreadableNodes(report.unreadable).lines.map { "              \($0)" }
    }
    if let last = report.securityEvents.lastMs {
      lines.append(
        "security    \(Amounts.count(report.securityEvents.total, "event")), the last "
          + Amounts.ago(last, now: WallClock.milliseconds))
    }
    for (code, count) in report.securityEvents.byCode.sorted(by: { $0.key < $1.key }) {
      lines.append("            \(count) \(code)")
    }
    return lines + treeLines(report)
  }

  private static func treeLines(_ report: Report) -> [String] {
    let frozen = report.frozen.flatMap { FrozenTrees.lines($0.place, $0.error.rawValue, sinceMs: $0.sinceMs) }
    return frozen + (frozen.isEmpty ? [] : FrozenTrees.advice) + report.stalled.map(OutdatedTrees.stalledLine)
  }
}
