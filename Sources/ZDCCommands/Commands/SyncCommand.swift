internal import Synchronization
internal import ZDCProtocol
internal import ZeroDarkCloud

/// `zdc sync` and `zdc watch`.
package enum SyncCommand {
  /// `{"announced","commits","conflicts":[…],"pushedCommits","pushedOperations","refused":[{"code","times"}],"stuck":[{"code","path"?,"reason"}],"unreadable":[{"cloudID","code","folder"?,"path"?,"sinceMs"}],"waiting"}`
  struct Report: Encodable, Sendable {
    var commits: Int
    var announced: Int
    var pushedCommits: Int
    var pushedOperations: Int
    /// Operations that stay queued.
    var waiting: Int
    var stuck: [QueueLeft.Node]
    /// The conflicts with changes of other devices during this sync, as `zdc journal` lists them.
    var conflicts: [JournalCommand.Line]
    /// Server responses that do not verify.
    var refused: [RefusedAnswers.Kind]
    /// Nodes whose version in the cloud this device cannot read.
    var unreadable: [UnreadableNodes.Node]
  }

  /// Pulls and pushes until nothing is left that can be done now.
  package static func once(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    let (known, events) = (try await engine.journal(), try await engine.securityEvents())
    let done = try await engine.notingSilence {
      try await opened.sync.whileSyncing { try await engine.namingFrozen { try await engine.syncUntilIdle() } }
    }
    guard let summary = done else { throw busy }
    try await LastPull.store(opened.connection)
    let left = try await opened.queueLeft(engine.user)
    let conflicts = try await engine.journal(after: known)
    let refused = try await engine.refusedAnswers(since: events)
    let unreadable = try await opened.unreadableNodes(engine.user)
    let report = Report(
      commits: summary.pulled.commits, announced: summary.pulled.announced, pushedCommits: summary.pushed.commits,
      pushedOperations: summary.pushed.operations, waiting: left.operations, stuck: left.nodes, conflicts: conflicts,
      refused: refused.kinds, unreadable: unreadable.nodes)
    try show(report, left, options.output)
    refused.warn(options.output)
    unreadable.warn(options.output)
    let isUnread = try await warnOfUnread(engine)
    try await opened.close()
    if isUnread || !refused.isEmpty || !unreadable.isEmpty { throw SilentExit(.security) }
    if report.waiting > 0 { throw SilentExit(.tryAgain) }
  }

  private static func show(_ report: Report, _ left: QueueLeft, _ output: Output) throws {
    try output.object(report)
    guard !output.isJSON else { return }
    for conflict in report.conflicts { output.warning("\(conflict.text) (zdc journal show \(conflict.id.prefix(8)))") }
    left.warn(output)
    output.note(
      "pulled \(Amounts.count(report.commits, "commit")), pushed \(Amounts.count(report.pushedOperations, "change")), "
        + "\(report.waiting) waiting")
  }

  /// Warns about trees that could not be read.
  ///
  /// - Returns: Whether there is one.
  private static func warnOfUnread(_ engine: Engine) async throws -> Bool {
    if try await engine.warnOfFrozen() { return true }
    guard let reason = try await engine.opened.unreadReason(engine.user) else { return false }
    engine.opened.output.warning("home:/ from the server cannot be read (\(reason)): see zdc status")
    return true
  }

  static let busy = CommandError(
    .tryAgain, "engineBusy", "another zdc process already syncs this profile",
    hint: "the changes that it pulls arrive here automatically")

  // MARK: Watching

  /// Syncs until the task is cancelled; prints a line for each change of other devices.
  package static func watch(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    guard try !opened.sync.isSyncedElsewhere() else { throw busy }
    try await run(engine, options.output)
    try await opened.close()
  }

  /// `zdc watch`: prints changes of other devices as they arrive, with the engine of this or another process.
  package static func changes(_ options: ProfileOptions) async throws {
    let opened = try OpenProfile.open(options)
    let engine = try await Engine(opened)
    do {
      while !Task.isCancelled {
        if try opened.sync.isSyncedElsewhere() {
          try await TreeWatch(engine: engine, output: options.output).run()
        } else {
          // Takes over when the other process has ended, unless a third one is faster.
          try await run(engine, options.output) { try await waitWhileFirst(opened.sync) }
        }
      }
    } catch is CancellationError {}
    try await opened.close()
  }

  /// Returns when another process syncs. Once this one does, that cannot happen.
  private static func waitWhileFirst(_ sync: ZDCSyncManager) async throws {
    while try !sync.isSyncedElsewhere() { try await Task.sleep(for: .seconds(1)) }
  }

  /// - Parameter other: Ends the run when it returns.
  private static func run(
    _ engine: Engine, _ output: Output, until other: (@Sendable () async throws -> Void)? = nil
  ) async throws {
    let opened = engine.opened
    opened.app.listen { tell($0, output) }
    let status = opened.sync.statusUpdates
    try await withThrowingTaskGroup(of: Void.self) { group in
      group.addTask { await opened.sync.run() }
      group.addTask { try await follow(status, engine, output) }
      if let other { group.addTask(operation: other) }
      defer { group.cancelAll() }
      try await group.next()
    }
  }

  static func tell(_ event: RemoteEvent, _ output: Output) {
    // Encoding cannot fail: all fields are text and numbers.
    try? output.object(event)
    output.line(event.text)
  }

  /// `{"status":"online"|"offline"|"polling"|"error", "code"?, "message"?}` lines between the events.
  private struct StatusLine: Encodable {
    var status: String
    var code: String?
    var message: String?
  }

  private static func follow(
    _ status: AsyncStream<ZDCSyncStatus>, _ engine: Engine, _ output: Output
  ) async throws {
    for await update in status {
      switch update {
      case .online:
        try output.object(StatusLine(status: "online"))
        output.note("online: changes arrive as they happen")
        try await LastPull.store(engine.opened.connection)
      case .eventsMissing:
        try output.object(StatusLine(status: "polling"))
        output.warning("no events arrive: a proxy may be holding them back; polling every 30 seconds instead")
        try await LastPull.store(engine.opened.connection)
      case .offline:
        try output.object(StatusLine(status: "offline"))
        output.note("offline: retrying")
      case .error(_, let error): try show(error, output)
      case .security(_, let error): try show(error, output)
      case .pullFinished(_, let commits, _) where commits > 0:
        try await LastPull.store(engine.opened.connection)
      default: break
      }
    }
  }

  private static func show(_ error: any Error, _ output: Output) throws {
    if error is CancellationError { return }
    let report = ErrorReport(error)
    try output.object(StatusLine(status: "error", code: report.code, message: report.message))
    if !output.isJSON { output.warning(report.message) }
  }
}
