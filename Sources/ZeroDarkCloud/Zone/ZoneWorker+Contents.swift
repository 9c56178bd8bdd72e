internal import Foundation
internal import ZDCCrypto
internal import ZDCProtocol

// Content on its way into a commit: small content is sealed immediately, large or promised content beside the push.

extension ZoneWorker {
  /// Seals what is small, starts what is slow.
  ///
  /// Stops when what is sealed fills a request; the app is asked again for the rest when its turn comes.
  func supply(_ choice: inout Choice) {
    let preparer = ContentPreparer(session: session, zone: choice.zone.zone)
    var sealedBytes = ready.values.reduce(0) { $0 + ($1.content.inlineBytes?.count ?? 0) }
    for answer in choice.answers {
      guard sealedBytes < Limits.commitRequestBytes else { return }
      do {
        guard let content = try preparer.prepareAtOnce(answer) else {
          start(answer, preparer)
          continue
        }
        sealedBytes += content.inlineBytes?.count ?? 0
        ready[answer.node] = ReadyContent(content: content, answer: answer)
      } catch {
        choice.failures.append((answer.covers, ContentFailure(error)))
        session.events.report(error)
      }
    }
  }

  private func start(_ answer: ContentAnswer, _ preparer: ContentPreparer) {
    if let earlier = uploads.removeValue(forKey: answer.node) {
      earlier.task.cancel()
      session.progress.end(earlier.operations, .waits)
    }
    let id = UUID()
    let progress = session.progress.reporter(answer.uploads)
    let task = Task { [weak self] in
      do {
        let sources = try await preparer.sources(of: answer)
        try Task.checkCancellation()
        try await self?.begins(id, answer)
        let content = try await preparer.prepare(sources, of: answer, progress: progress)
        await self?.finished(id, ReadyContent(content: content, answer: answer), node: answer.node)
      } catch {
        await self?.failed(id, answer, error)
      }
      self?.signal()
    }
    uploads[answer.node] = Upload(id: id, task: task, answer: answer, isPromised: answer.isPromised)
  }

  /// The content is here: from now on it is being sent, which an open promise is not.
  private func begins(_ id: UUID, _ answer: ContentAnswer) async throws {
    // It was cancelled in the meantime, and its progress has ended.
    guard let upload = uploads[answer.node], upload.id == id else { throw CancellationError() }
    session.progress.begin(answer.uploads)
    session.activity.sends()
    guard upload.isPromised else { return }
    uploads[answer.node]?.isPromised = false
    try await session.database.asyncReadWrite { transaction in
      for id in answer.covers {
        guard let operation = try transaction.operations.operation(id: id), operation.reason == .promisePending
        else { continue }
        try transaction.operations.setState(.pending, reason: .uploading, id: id)
      }
    }
  }

  private func finished(_ id: UUID, _ content: ReadyContent, node: Int64) {
    // Another attempt may have taken its place.
    guard uploads[node]?.id == id else { return }
    uploads[node] = nil
    settledUploads += 1
    ready[node] = content
  }

  private func failed(_ id: UUID, _ answer: ContentAnswer, _ error: any Error) async {
    guard uploads[answer.node]?.id == id else { return }
    session.progress.end(answer.uploads, .waits)
    // An aborted one is no failure, and a cancelled task cannot write.
    if !Task.isCancelled { await store(error, answer) }
    settledUploads += 1
    if uploads[answer.node]?.id == id { uploads[answer.node] = nil }
    session.activity.uploadsChanged(isUploading: !uploads.isEmpty)
  }

  private func store(_ error: any Error, _ answer: ContentAnswer) async {
    session.events.report(error)
    do {
      try await session.database.asyncReadWrite { [session] transaction in
        try ContentFailure(error).store(answer.covers, transaction: transaction, nowMs: session.now())
      }
    } catch { session.events.report(error) }
  }

  /// What was prepared is not what the app would say now.
  func forgetContent(of node: Int64?) {
    guard let node else { return }
    ready[node] = nil
    guard let upload = uploads.removeValue(forKey: node) else { return }
    upload.task.cancel()
    session.progress.end(upload.operations, .waits)
  }

  /// How many nodes wait for what the app has promised.
  func openPromises(_ choice: Choice) -> Int {
    choice.plan.steps.count { step in step.node.flatMap { uploads[$0] }.map { !$0.endsByItself } ?? false }
  }

  /// Cancels uploads whose operations are gone: the app skipped the upload, or deleted the node.
  func stopForgottenUploads() async throws {
    let claims = uploads.mapValues(\.claim.covers)
    if !claims.isEmpty {
      let forgotten = try await session.database.asyncRead { transaction in
        try claims.filter { try $0.value.allSatisfy { try transaction.operations.operation(id: $0) == nil } }
      }
      for node in forgotten.keys { forgetContent(of: node) }
    }
    try await forgetProgress()
  }

  /// The same for those that would be tried again.
  private func forgetProgress() async throws {
    let waiting = session.progress.waitingOperations
    guard !waiting.isEmpty else { return }
    let forgotten = try await session.database.asyncRead { transaction in
      try waiting.filter { try !transaction.operations.isQueued(uuid: $0) }
    }
    session.progress.forget(forgotten)
  }
}
