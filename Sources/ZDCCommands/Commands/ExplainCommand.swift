internal import Foundation
internal import ZeroDarkCloud

/// `zdc explain PATH`: why a node is not in sync, what was tried, and what would resolve it.
package enum ExplainCommand {
  /// `{"appErrors"?:[{"at","call","error","times"}…],"cloudID","hasContentInCloud","isAwaitingPull","isInSync","isUploaded",
  /// "lastSecurityError"?,"lastSecurityErrorAt"?,"nodeID","operations":[…],"path","quarantine"?,"zoneFrozen"?,"zoneStalled"?}`;
  /// each operation:
  /// `{"attempts","createdAt","detail"?,"history":[…],"kind","notBefore"?,"reason","uuid","waitsFor","words"}`;
  /// each try: `{"at","code"?,"outcome","times"}`, oldest first.
  struct Report: Encodable, Sendable {
    struct Try: Encodable, Sendable {
      var at: String
      var outcome: String
      var code: String?
      var times: Int
    }

    struct AppError: Encodable, Sendable {
      var at: String
      var call: String
      var error: String
      var times: Int
    }

    struct Operation: Encodable, Sendable {
      var uuid: String
      var kind: String
      var reason: String
      var detail: String?
      /// The reason and the remedy as human-readable text; programs read `reason` and `detail`.
      var words: String
      var attempts: Int
      var createdAt: String
      var notBefore: String?
      var waitsFor: [String]
      var history: [Try]

      init(_ operation: ZDCOperationExplanation) {
        uuid = operation.uuid
        kind = operation.kind
        reason = operation.reason.rawValue
        detail = operation.detail
        words = WaitWords.words(operation)
        attempts = operation.attempts
        createdAt = operation.createdAt.formatted(.iso8601)
        notBefore = operation.notBefore?.formatted(.iso8601)
        waitsFor = operation.waitsFor
        history = operation.history.map { attempt in
          Try(
            at: attempt.date.formatted(.iso8601), outcome: attempt.outcome.rawValue, code: attempt.code,
            times: attempt.times)
        }
      }
    }

    var path: String
    var nodeID: String
    var cloudID: String
    var isInSync: Bool
    var isUploaded: Bool
    var hasContentInCloud: Bool
    var quarantine: String?
    var zoneFrozen: String?
    var zoneStalled: String?
    var isAwaitingPull: Bool
    var lastSecurityError: String?
    var lastSecurityErrorAt: String?
    /// Delegate calls that threw and will be retried; nil if there are none.
    var appErrors: [AppError]?
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
      zoneStalled = node.zoneStalled
      isAwaitingPull = node.isAwaitingPull
      lastSecurityError = node.lastSecurityError
      lastSecurityErrorAt = node.lastSecurityErrorAt?.formatted(.iso8601)
      let failures = node.delegateFailures.map { failure in
        AppError(
          at: failure.date.formatted(.iso8601), call: failure.call.rawValue, error: failure.error, times: failure.times)
      }
      appErrors = failures.isEmpty ? nil : failures
      operations = node.operations.map(Operation.init)
    }
  }

  /// - Parameter watches: Whether to continue until the node is gone or the task is cancelled.
  package static func run(_ options: ProfileOptions, path text: String, watches: Bool = false) async throws {
    let path = try NodePath.parse(text)
    let opened = try OpenProfile.open(options)
    let user = try await opened.localUserID()
    let uuid = try await opened.reader.read { transaction in
      try opened.cloud(transaction, user).requireNode(at: path).uuid
    }
    for try await explanation in opened.sync.explanations(forNodeID: uuid) {
      // The node may have been renamed or moved in the meantime.
      let path = try await opened.path(ofNode: uuid, user) ?? path
      try show(Report(path, explanation), options.output)
      if !watches { break }
    }
    if watches, !Task.isCancelled { options.output.note("\(ShownName.text(path.fullPath())) is gone") }
    try await opened.close()
  }

  private static func show(_ report: Report, _ output: Output) throws {
    try output.object(report)
    for line in lines(report) { output.line(line) }
  }

  private static func lines(_ report: Report) -> [String] {
    let path = ShownName.text(report.path)
    if report.isInSync, report.appErrors == nil {
      return ["\(path): in sync"] + history(report)
    }
    var lines = ["\(path): \(report.operations.isEmpty ? "nothing is queued" : "not in sync")"]
    if let quarantine = report.quarantine {
      lines.append("  the newest version in the cloud cannot be opened (\(quarantine)); the last good one is shown")
    }
    if let frozen = report.zoneFrozen {
      lines.append("  its tree is frozen (\(frozen)); run zdc repair for instructions")
    }
    if let stalled = report.zoneStalled {
      lines.append("  the server's responses about its tree are inconsistent (\(stalled)); zdc asks again")
    }
    if report.isAwaitingPull { lines.append("  the cloud has a newer version; run zdc sync to fetch it") }
    lines += (report.appErrors ?? []).map { failure in
      "  \(failure.call) threw \(ShownName.text(failure.error)), last at \(failure.at); zdc sync calls it again"
    }
    for operation in report.operations {
      lines.append(
        "  \(operation.kind): \(operation.reason)\(operation.detail.map { " (\(ShownName.text($0)))" } ?? "")")
      lines.append("    \(operation.words)")
      if operation.attempts > 0 { lines.append("    tried \(Amounts.count(operation.attempts, "time"))") }
      if let time = operation.notBefore { lines.append("    next try \(time)") }
      lines += operation.history.map { "      \(line($0))" }
    }
    return lines + history(report)
  }

  private static func history(_ report: Report) -> [String] {
    guard let code = report.lastSecurityError, let time = report.lastSecurityErrorAt else { return [] }
    return ["  the server sent data for it that failed verification: \(code), last at \(time)"]
  }

  /// `2026-03-01T12:00:00Z  serverSaid (zoneBusy), 3 times`
  private static func line(_ attempt: Report.Try) -> String {
    let code = attempt.code.map { " (\(ShownName.text($0)))" } ?? ""
    return "\(attempt.at)  \(attempt.outcome)\(code)" + (attempt.times > 1 ? ", \(attempt.times) times" : "")
  }
}

extension OpenProfile {
  fileprivate func path(ofNode uuid: String, _ user: String) async throws -> ZDCTreesystemPath? {
    try await reader.read { transaction in
      guard let node = try self.cloud(transaction, user).cloud.node(id: uuid) else { return nil }
      return ZDCNodeManager.sharedInstance.path(for: node, transaction: transaction)
    }
  }
}
