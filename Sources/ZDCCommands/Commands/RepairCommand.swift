internal import Foundation
internal import ZDCProtocol
internal import ZDCTreesystem
internal import ZeroDarkCloud

/// `zdc repair`: advice for trees whose server showed an impossible history.
package enum RepairCommand {
  /// One frozen tree per line: `{"changed"?,"created"?,"deleted"?,"error","path","sinceMs","trunk","zone"}`; with the
  /// counts after it was accepted.
  struct Report: Encodable, Sendable {
    var path: String
    var trunk: String
    var zone: String
    var error: String
    var sinceMs: UInt64
    var created: Int?
    var changed: Int?
    var deleted: Int?
  }

  /// - Parameter accepts: Whether the user has decided to accept the server's state. If false, frozen trees are only
  ///   reported.
  package static func run(_ options: ProfileOptions, accepts: Bool) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    let frozen = try await opened.outdatedTrees(engine.user).frozen
    if accepts, !frozen.isEmpty {
      guard try opened.databaseManager.engineLease.tryAcquire() else { throw SyncCommand.busy }
    }
    for tree in frozen {
      var report = Report(tree)
      if accepts {
        let summary = try await opened.sync.acceptServerState(ofZone: tree.id, localUserID: engine.user)
        (report.created, report.changed, report.deleted) = (summary.created, summary.changed, summary.deleted)
      }
      try options.output.object(report)
      for line in lines(report, at: tree.place) { options.output.line(line) }
    }
    if frozen.isEmpty { options.output.note("no tree is frozen") }
    if accepts, !frozen.isEmpty { try await send(engine, options.output) }
    try await opened.close()
    if !accepts, !frozen.isEmpty { throw SilentExit(.security) }
  }

  /// Pushes the changes that the server lacks, which are queued by now.
  private static func send(_ engine: Engine, _ output: Output) async throws {
    _ = try await engine.syncUntilIdle()
    try await LastPull.store(engine.opened.connection)
    let left = try await engine.opened.queueLeft(engine.user)
    guard left.operations > 0 else { return output.note("the server has all local data again") }
    left.warn(output)
    throw CommandError(
      .tryAgain, "stillQueued", "\(Amounts.count(left.operations, "change")) still queued",
      hint: "uploads whose content is no longer on this device stay queued; see zdc status and zdc explain PATH")
  }

  private static func lines(_ report: Report, at place: String) -> [String] {
    guard let created = report.created, let changed = report.changed, let deleted = report.deleted else {
      return FrozenTrees.lines(place, report.error, sinceMs: report.sinceMs) + FrozenTrees.advice
    }
    return [
      "\(place): accepted; queued again: \(created) created, \(changed) changed, \(deleted) deleted"
    ]
  }
}

extension RepairCommand.Report {
  init(_ frozen: OutdatedTrees.Tree) {
    (path, trunk, zone) = (frozen.path, frozen.trunk, frozen.zone)
    (error, sinceMs) = (frozen.error.rawValue, frozen.sinceMs)
  }
}

/// Texts about frozen trees.
enum FrozenTrees {
  static func name(_ trunk: ZDCTreesystemTrunk) -> String { trunk.rawValue + ":/" }

  static func milliseconds(_ since: Date) -> UInt64 { UInt64(max(0, since.timeIntervalSince1970) * 1_000) }

  static func lines(_ place: String, _ error: String, sinceMs: UInt64) -> [String] {
    let since = sinceMs > 0 ? ", found \(Amounts.ago(sinceMs, now: WallClock.milliseconds))" : ""
    return ["\(place) is frozen: \(explanation(error)) (\(error)\(since))"]
  }

  private static func explanation(_ error: String) -> String {
    switch ZDCSecurityError.Code(rawValue: error) {
    case .zoneRollback: "the server presents an older history than before"
    case .zoneForkDetected: "the server presents a different history than before"
    case .ownCommitMissing: "the server lost commits that it had accepted"
    default: "the server's history failed verification"
    }
  }

  /// - Parameter place: The path of the tree's root, as it is printed.
  static func warning(_ error: ZDCSecurityError.Code, at place: String) -> String {
    "\(place) is frozen (\(error.rawValue)); run zdc repair for instructions"
  }

  static let advice = [
    "  It does not sync. Local data stays, and zdc get exports it.",
    "  Ask the operator whether the server was restored from a backup. If it was, run zdc repair --accept-server.",
    "  If not, someone is tampering with your data: copy it with zdc get, keep your words, and do not accept.",
  ]
}

extension Engine {
  /// Warns about frozen trees, or about those at, above or below a path.
  ///
  /// - Returns: Whether there is one.
  @discardableResult
  func warnOfFrozen(around path: ZDCTreesystemPath? = nil) async throws -> Bool {
    let all = try await opened.outdatedTrees(user)
    let frozen = (path.map(all.around) ?? all).frozen
    for tree in frozen { opened.output.warning(FrozenTrees.warning(tree.error, at: tree.place)) }
    return !frozen.isEmpty
  }

  /// Runs `body`. If it fails because data from the server does not verify, warns about frozen trees.
  func namingFrozen<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
    do { return try await body() } catch let error as ZDCSecurityError {
      try await warnOfFrozen()
      throw error
    }
  }
}
