internal import Foundation
internal import ZeroDarkCloud

/// `zdc explain PATH`: why a node is not in sync.
package enum ExplainCommand {
  /// `{"cloudID","hasContentInCloud","isAwaitingPull","isInSync","isUploaded",
  /// "lastSecurityError"?,"lastSecurityErrorAt"?,"nodeID","operations":[…],"path","quarantine"?,"zoneFrozen"?}`;
  /// each operation:
  /// `{"attempts","createdAt","detail"?,"kind","notBefore"?,"reason","unblockedBy","waitsFor"}`.
  struct Report: Encodable, Sendable {
    struct Operation: Encodable, Sendable {
      var kind: String
      var reason: String
      var detail: String?
      var unblockedBy: String
      var attempts: Int
      var createdAt: String
      var notBefore: String?
      var waitsFor: [String]
    }

    var path: String
    var nodeID: String
    var cloudID: String
    var isInSync: Bool
    var isUploaded: Bool
    var hasContentInCloud: Bool
    var quarantine: String?
    var zoneFrozen: String?
    var isAwaitingPull: Bool
    var lastSecurityError: String?
    var lastSecurityErrorAt: String?
    var operations: [Operation]

    init(_ path: ZDCTreesystemPath, _ node: ZDCNodeExplanation) {
      self.path = path.fullPath()
      nodeID = node.nodeID
      cloudID = node.cloudID
      isInSync = node.isInSync
      isUploaded = node.isUploaded
      hasContentInCloud = node.hasContentInCloud
      quarantine = node.quarantine
      zoneFrozen = node.zoneFrozen
      isAwaitingPull = node.isAwaitingPull
      lastSecurityError = node.lastSecurityError
      lastSecurityErrorAt = node.lastSecurityErrorAt?.formatted(.iso8601)
      operations = node.operations.map { operation in
        Operation(
          kind: operation.kind, reason: operation.reason.rawValue, detail: operation.detail,
          unblockedBy: operation.unblockedBy, attempts: operation.attempts,
          createdAt: operation.createdAt.formatted(.iso8601), notBefore: operation.notBefore?.formatted(.iso8601),
          waitsFor: operation.waitsFor)
      }
    }
  }

  package static func run(_ options: ProfileOptions, path text: String) async throws {
    let path = try NodePath.parse(text)
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    let report = try await opened.reader.read { transaction in
      let tree = try opened.cloud(transaction, user)
      let node = try tree.requireNode(at: path)
      guard let explanation = tree.cloud.explain(nodeID: node.uuid) else { throw ZDCError(.nodeNotFound) }
      return Report(path, explanation)
    }
    try options.output.object(report)
    for line in lines(report) { options.output.line(line) }
    try await opened.close()
  }

  private static func lines(_ report: Report) -> [String] {
    let path = ShownName.text(report.path)
    if report.isInSync, report.quarantine == nil { return ["\(path): in sync"] + history(report) }
    var lines = ["\(path): \(report.operations.isEmpty ? "nothing is queued" : "not in sync")"]
    if let quarantine = report.quarantine {
      lines.append("  the newest version in the cloud cannot be opened (\(quarantine)); the last good one is shown")
    }
    if let frozen = report.zoneFrozen { lines.append("  nothing is pulled or pushed for its tree: \(frozen)") }
    if report.isAwaitingPull { lines.append("  a newer version of it is in the cloud and not read here yet: zdc sync") }
    for operation in report.operations {
      lines.append(
        "  \(operation.kind): \(operation.reason)\(operation.detail.map { " (\(ShownName.text($0)))" } ?? "")")
      lines.append("    goes on with \(operation.unblockedBy)")
      if operation.attempts > 0 { lines.append("    tried \(Amounts.count(operation.attempts, "time"))") }
      if let time = operation.notBefore { lines.append("    next try \(time)") }
    }
    return lines + history(report)
  }

  private static func history(_ report: Report) -> [String] {
    guard let code = report.lastSecurityError, let time = report.lastSecurityErrorAt else { return [] }
    return ["  the server sent for it what does not verify: \(code), last found \(time)"]
  }
}
