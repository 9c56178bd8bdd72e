internal import ZDCClientAPI
package import ZDCClientStore
internal import ZDCProtocol
internal import ZDCSupport

// Local changes; ZonePusher sends one commit of them.

extension ZoneWorker {
  /// Sends the operations that are ready, as one commit.
  ///
  /// - Parameter inBackground: Whether a failed push pauses the zone and reports its error.
  package func push(inBackground: Bool = false) async throws -> Pushed {
    try await step {
      handle(.pushBegan)
      do {
        let pusher = ZonePusher(
          session: session, zone: zone, identity: identity, contents: contents, executor: executor, state: state,
          report: { await self.updated(by: $0) })
        let summary = try await slots.run { try await pusher.push() }
        handle(.pushed)
        return Pushed(zone: zone, summary: summary, refusal: await pusher.refusal)
      } catch {
        if inBackground, Self.concernsZone(error) { handle(.pushFailed(error)) }
        throw error
      }
    }
  }

  /// Sends one commit that only replaces keys, after a removal has raised the zone's key to this generation.
  func replaceOldKeys(_ keyGen: UInt32) async throws -> Pushed {
    do {
      let summary = try await pushRotations()
      handle(summary.hasNext ? .oldKeysReplaced : .oldKeysLeft(keyGen, areBlocked: summary.waiting > 0))
      return Pushed(zone: zone, summary: summary)
    } catch {
      if Self.concernsZone(error) { handle(.pushFailed(error)) }
      throw error
    }
  }

  /// Sends one commit that only replaces keys.
  package func pushRotations() async throws -> ZDCPushSummary {
    try await step {
      let pusher = ZonePusher(
        session: session, zone: zone, identity: identity, contents: contents, executor: executor, state: state,
        report: { await self.updated(by: $0) })
      let (summary, left) = try await slots.run { [staleNodes] in try await pusher.pushRotations(staleNodes) }
      staleNodes = left
      return summary
    }
  }

  private func updated(by event: ZoneSyncState.Event) -> ZoneSyncState {
    handle(event)
    return state
  }

  /// The result of a push, and the first error that the app threw. An app error does not stop the other operations.
  package struct Pushed: Sendable {
    package var zone: Int64
    package var summary: ZDCPushSummary
    package var refusal: DelegateError?
    /// Whether the rest of the queue is left for a later sync, because the server refused many nodes in a row or the
    /// app answers each commit with another change.
    var isGivenUp = false

    package static func += (a: inout Pushed, b: Pushed) {
      a.summary += b.summary
      a.refusal = a.refusal ?? b.refusal
    }
  }

  /// Sends one commit after another and waits for uploads, until the zone has nothing left to send.
  package func pushUntilIdle(_ rule: IdleDetector) async throws -> Pushed {
    var rounds = rule
    var all = Pushed(zone: zone, summary: ZDCPushSummary())
    while true {
      let settled = await contents.settledUploads
      let pushed = try await push()
      all += pushed
      if pushed.summary.isDrained { break }
      let now = await contents.settledUploads
      if rounds.shouldContinue(after: pushed.summary, uploadsSettled: now - settled) { continue }
      guard !rounds.isExhausted, await contents.waitForUpload(since: now) else { break }
      try Task.checkCancellation()
    }
    all.summary.triesAgain = false
    all.isGivenUp = state.isRefusedThroughout || rounds.isExhausted
    return all
  }

  private static func concernsZone(_ error: any Error) -> Bool {
    !(error is CancellationError) && !((error as? TransportError)?.isOfConnection ?? false)
  }
}
