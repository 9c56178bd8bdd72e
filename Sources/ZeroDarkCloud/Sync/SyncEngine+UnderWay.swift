internal import ZDCProtocol

extension SyncEngine {
  enum Work: Sendable {
    case pull
    case push
  }

  func pulling<Value: Sendable>(
    _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    session.activity.beginPull()
    do {
      let value = try await abortable(.pull, body)
      session.activity.endPull((value as? ZoneRound<PullSummary>)?.failure.map(ZDCPullResult.init) ?? .success)
      return value
    } catch {
      session.activity.endPull(ZDCPullResult(error))
      throw error
    }
  }

  func pushing(
    _ body: @escaping @Sendable () async throws -> ZoneRound<PushSummary>
  ) async throws -> ZoneRound<PushSummary> {
    session.activity.beginPush()
    defer { session.activity.endPush(isUploading: !uploads.isEmpty) }
    let round = try await abortable(.push, body)
    if round.summary.operations > 0 { session.activity.tell(.syncingNodeIDsChanged) }
    return round
  }

  private func abortable<Value: Sendable>(
    _ work: Work, _ body: @escaping @Sendable () async throws -> Value
  ) async throws -> Value {
    let task = Task { try await body() }
    aborts[work] = { task.cancel() }
    defer { aborts[work] = nil }
    return try await withTaskCancellationHandler {
      try await task.value
    } onCancel: {
      task.cancel()
    }
  }

  func abort(_ work: Work) {
    aborts[work]?()
  }
}
