internal import Foundation
internal import ZDCSupport

/// A user's pulls and pushes that are running: shows them to the app until they end, and cancels them on request.
package final class RunningRounds: Sendable {
  private typealias Running = (work: SyncWork, cancel: @Sendable () -> Void)

  private let session: SyncSession
  private let running = Locked<[UUID: Running]>([:])

  init(session: SyncSession) {
    self.session = session
  }

  package func cancel(_ work: SyncWork) {
    for round in running.withLock({ Array($0.values) }) where round.work == work { round.cancel() }
  }

  package func pull(
    isolation: isolated (any Actor)? = #isolation,
    _ body: @escaping @Sendable () async throws -> ZoneRound<ZDCPullSummary>
  ) async throws -> ZoneRound<ZDCPullSummary> {
    session.activity.beginPull()
    session.events.update { $0.beginRound(.pull) }
    defer { session.events.update { $0.endRound(.pull) } }
    do {
      let round = try await run(.pull, isolation: isolation, body)
      session.activity.endPull(round.failure.map(ZDCPullResult.init) ?? .success)
      return round
    } catch {
      session.activity.endPull(ZDCPullResult(error))
      session.events.failed(error)
      throw error
    }
  }

  /// - Parameter isUploading: Asked at the end: the app sees a push until its uploads have ended.
  package func push(
    isolation: isolated (any Actor)? = #isolation,
    _ body: @escaping @Sendable () async throws -> ZoneRound<ZDCPushSummary>, isUploading: () async -> Bool
  ) async throws -> ZoneRound<ZDCPushSummary> {
    session.activity.beginPush()
    session.events.update { $0.beginRound(.push) }
    do {
      let round = try await run(.push, isolation: isolation, body)
      if round.summary.operations > 0 { session.activity.tell(.syncingNodeIDsChanged) }
      endPush(isUploading: await isUploading())
      return round
    } catch {
      session.events.failed(error)
      endPush(isUploading: await isUploading())
      throw error
    }
  }

  private func endPush(isUploading: Bool) {
    session.events.update { $0.endRound(.push) }
    session.activity.endPush(isUploading: isUploading)
  }

  /// - Parameter body: Runs in a task that ``cancel(_:)`` cancels.
  private func run<Value: Sendable>(
    _ work: SyncWork, isolation: isolated (any Actor)?, _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let id = UUID()
    let task = Task {
      _ = isolation
      return try await body()
    }
    running.withLock { $0[id] = (work, { task.cancel() }) }
    defer { running.withLock { $0[id] = nil } }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }
}
