internal import ZDCProtocol
internal import ZeroDarkCloud

/// Pushes queued changes to the server and pulls the server's, as the process that holds the lease or by waiting for
/// the one that does.
struct Engine: Sendable {
  let opened: OpenProfile
  let user: String

  init(_ opened: OpenProfile) async throws {
    self.opened = opened
    user = try await opened.localUserID()
    try await opened.collectSpool()
  }

  // MARK: Pulling

  /// Brings the local tree up to date. Does nothing if another process syncs, because that one follows the server's
  /// events. Warns about server responses that do not verify.
  @discardableResult
  func pull() async throws -> RefusedAnswers {
    let before = try await securityEvents()
    try await notingSilence {
      _ = try await opened.sync.whileSyncing { [opened, user] in
        _ = try await opened.sync.pullOnce(localUserID: user)
        try await LastPull.store(opened.connection)
      }
    }
    let refused = try await refusedAnswers(since: before)
    refused.warn(opened.output)
    return refused
  }

  // MARK: Waiting for the server

  /// Returns when the server has all queued changes of these nodes.
  ///
  /// - Throws: ``CommandError`` with `stillQueued` if some of them stay queued.
  func settle(_ nodes: NodeSet, large: [String] = [], progress: ProgressDisplay) async throws {
    guard !nodes.isEmpty else { return }
    let isDone = try await opened.sync.syncOrWait(
      for: {
        // Another process sends. Wait until nothing is left, or only operations that waiting does not unblock.
        let waiting = try await remaining(nodes)
        let left = Set(waiting.map(\.nodeUUID)).count
        progress.update { $0.itemsDone = nodes.count - left }
        return waiting.allSatisfy(\.isStuck) ? nil : HolderProgress(waiting)
      },
      {
        try await syncHere(large, progress)
      })
    let waiting = try await remaining(nodes)
    if waiting.contains(where: { $0.code == ZDCWaitReason.zoneFrozen.rawValue }) { throw Self.frozen }
    let left = try await opened.queueLeft(user, nodes)
    guard let first = left.nodes.first else { return }
    left.warn(opened.output, after: 1)
    if waiting.contains(where: { $0.detail?.contains("proxyAnswered 413") ?? false }) {
      throw Self.bodyRefused(waiting)
    }
    guard isDone else { throw Self.notSentElsewhere(waiting) }
    throw CommandError(
      .tryAgain, "stillQueued", "\(Amounts.count(left.operations, "change")) still queued: \(first.text)",
      hint: "see zdc status and zdc explain PATH; zdc sync tries again")
  }

  private static func bodyRefused(_ waiting: [QueuedOperation]) -> CommandError {
    CommandError(
      .tryAgain, "stillQueued",
      "\(Amounts.count(waiting.count, "change")) still queued: a proxy in front of the server refuses large requests",
      hint: "raise the proxy's limit for bodies to 16 MiB (nginx: client_max_body_size 16m), then run zdc sync")
  }

  private static func notSentElsewhere(_ waiting: [QueuedOperation]) -> CommandError {
    CommandError(
      .tryAgain, "stillQueued",
      "\(Amounts.count(waiting.count, "change")) still queued: the zdc process that syncs this profile has not sent them",
      hint: "nothing is lost: that process sends them once it reaches the server; if it hangs, stop it and run zdc sync"
    )
  }

  /// Runs `body`, and after five seconds notes that it still runs. Not for use with a progress bar.
  func notingSilence<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
    let note = Task { [opened] in
      try await Task.sleep(for: .seconds(5))
      opened.output.note("still waiting for \(opened.server) after 5 s; press Ctrl-C to stop, nothing gets lost")
    }
    defer { note.cancel() }
    return try await body()
  }

  private static let frozen = CommandError(
    .security, "zoneFrozen",
    "the changes are queued; the tree is frozen because the server presented an invalid history",
    hint: "run zdc repair for instructions")

  /// Pushes in this process, after a pull, and updates the progress bar.
  private func syncHere(_ large: [String], _ progress: ProgressDisplay) async throws {
    let before = opened.app.pushed
    let ticker = Task {
      while !Task.isCancelled {
        let now = opened.app.pushed
        let uploading = large.reduce(0) { $0 + (opened.sync.uploadProgress(forNodeID: $1)?.sent ?? 0) }
        progress.update { line in
          line.itemsDone = now.nodes - before.nodes
          line.bytesDone = now.bytes - before.bytes + uploading
        }
        try await Task.sleep(for: .milliseconds(100))
      }
    }
    defer { ticker.cancel() }
    do {
      try await Self.waitingForTurn { try await opened.sync.pushUntilIdle(localUserID: user) }
    } catch let error as TransportError where error.isTemporary {
      throw CommandError(
        .tryAgain, "stillQueued", "\(error)", hint: "nothing is lost: the changes stay queued, and zdc sync sends them")
    }
  }

  /// Syncs until nothing is left that can be done now.
  func syncUntilIdle() async throws -> ZDCSyncSummary {
    try await Self.waitingForTurn { try await opened.sync.syncUntilIdle(localUserID: user) }
  }

  /// Retries while a zone is busy, which takes seconds: devices that lost often get precedence (PROTOCOL 3.7).
  ///
  /// - Parameters:
  ///   - patienceMs: The maximum total of the pauses that a busy server requests, in milliseconds.
  ///   - pause: Waits for so many milliseconds.
  @discardableResult
  static func waitingForTurn<Summary>(
    tries: Int = 10, patienceMs: UInt64 = 30_000,
    pause: @Sendable (UInt64) async throws -> Void = { try await Task.sleep(for: .milliseconds(Int64($0))) },
    _ sync: @Sendable () async throws -> Summary
  ) async throws -> Summary {
    do {
      return try await sync()
    } catch let error as ServerError where error.code == .zoneBusy && tries > 1 {
      let length = max(error.retryAfterMs ?? 500, 100)
      guard length <= patienceMs else { throw error }
      try await pause(length)
      return try await waitingForTurn(tries: tries - 1, patienceMs: patienceMs - length, pause: pause, sync)
    }
  }

  /// Returns how many of these nodes have queued changes.
  func queued(_ nodes: NodeSet) async throws -> Int {
    Set(try await remaining(nodes).map(\.nodeUUID)).count
  }

  private func remaining(_ nodes: NodeSet) async throws -> [QueuedOperation] {
    try await opened.reader.read { [opened, user] transaction in
      let cloud = try opened.cloud(transaction, user)
      return try cloud.queue(ofNodes: nodes)
    }
  }
}

extension HolderProgress {
  init(_ waiting: [QueuedOperation]) {
    let sending = [ZDCWaitReason.uploading, .inFlight].map(\.rawValue)
    self.init(
      left: Set(waiting.map { "\($0.uuid) \($0.code)" }), failures: waiting.reduce(0) { $0 + $1.attempts },
      isSending: waiting.contains { sending.contains($0.code) })
  }
}

/// The last time that this device pulled everything from the server.
struct LastPull: Codable, Sendable, Hashable {
  static let collection = "zdc.state"
  static let key = "lastPull"

  var milliseconds: UInt64

  static func store(_ connection: ZDCDatabaseConnection) async throws {
    let now = LastPull(milliseconds: WallClock.milliseconds)
    try await connection.write { transaction in transaction.setObject(now, forKey: key, inCollection: collection) }
  }
}
