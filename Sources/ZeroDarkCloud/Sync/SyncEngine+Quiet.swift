internal import ZDCProtocol

extension SyncEngine {
  /// Pulls and pushes until no operation can run. Operations that wait are counted, not waited for.
  ///
  /// A zone that has to be frozen on the way does not keep the others waiting, nor does an error of the app's; it is
  /// thrown at the end.
  func syncUntilQuiet() async throws -> ZDCSyncSummary {
    var summary = ZDCSyncSummary()
    let pulled = try await pullRound()
    var failure = try pulled.deferrableError()
    summary.pulled = pulled.summary
    var rounds = QuietRule(queued: try await queueCount())
    while true {
      let settled = settledUploads
      let round = try await pushRound()
      failure = try failure ?? round.deferrableError()
      summary.pushed.commits += round.summary.commits
      summary.pushed.operations += round.summary.operations
      summary.pushed.waiting = round.summary.waiting
      if rounds.goesOn(after: round.summary, uploadsSettled: settledUploads - settled) { continue }
      guard !rounds.isExhausted, let upload = uploads.values.first(where: \.endsByItself) else { break }
      await finish(upload)
      try Task.checkCancellation()
    }
    if let failure { throw failure }
    return summary
  }

  private func queueCount() async throws -> Int {
    try await session.database.asyncRead { [session] transaction in
      try transaction.operations.count(localUser: session.localUser)
    }
  }

  /// Waits for an upload to end, one way or the other. Who stops waiting stops the upload.
  private func finish(_ upload: Upload) async {
    await withTaskCancellationHandler {
      await upload.task.value
    } onCancel: {
      upload.task.cancel()
    }
  }
}
