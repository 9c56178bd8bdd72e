internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
package import ZDCProtocol
internal import ZDCTransfers

/// The content of one zone that is being prepared for a commit. Small content is sealed immediately; large or promised
/// content is uploaded in a dedicated task, concurrently with the push.
///
/// Holds only state that may be lost, because the app can be asked for it again.
package actor ContentPool {
  nonisolated private let executor: EngineExecutor
  nonisolated private let session: SyncSession
  nonisolated private let zone: Int64
  nonisolated private let wake: WakeTimer
  /// Called after an upload has failed. The user's other zones may still upload.
  nonisolated private let uploadFailed: @Sendable () async -> Void
  /// Content by node row, until its commit is accepted.
  private var ready: [Int64: ReadyContent] = [:]
  private var uploads: [Int64: Upload] = [:]
  /// Prepares the commit after the one that is in flight.
  private var ahead: Task<NextCommitPrefetch.Prepared, Never>?
  /// The number of uploads that have ended, successfully or not.
  private(set) var settledUploads = 0

  package init(
    session: SyncSession, zone: Int64, wake: WakeTimer, executor: EngineExecutor,
    uploadFailed: @escaping @Sendable () async -> Void
  ) {
    (self.session, self.zone, self.wake, self.executor) = (session, zone, wake, executor)
    self.uploadFailed = uploadFailed
  }

  package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.unownedExecutor }

  var isUploading: Bool { !uploads.isEmpty }

  /// Whether memory holds content whose operations may no longer exist.
  var hasRemains: Bool { !uploads.isEmpty || ahead != nil }

  /// The claims of all content that is ready or being uploaded, by node row.
  private var claims: [Int64: ContentClaim] {
    uploads.mapValues { $0.claim }.merging(ready.mapValues { $0.claim }) { _, ready in ready }
  }

  /// - Parameter limit: The maximum number of nodes in the commit, or nil for the protocol's limit.
  func chooser(limit: Int?) -> PushPlanner {
    let underWay = uploads.count > PushPlanner.mostUnderWay ? [] : Set(uploads.values.flatMap(\.claim.covers))
    return PushPlanner(session: session, zone: zone, known: claims, underWay: underWay, limit: limit)
  }

  package struct Snapshot: Sendable {
    package var ready: [Int64: ReadyContent]
    /// Whether the app has promised the content of these nodes but not provided it yet.
    package var uploading: [Int64: Bool]
  }

  package var snapshot: Snapshot { Snapshot(ready: ready, uploading: uploads.mapValues(\.isPromised)) }

  /// Returns the number of these nodes that wait for content the app has promised.
  func openPromises(of nodes: [Int64]) -> Int {
    nodes.count { uploads[$0].map { !$0.endsByItself } ?? false }
  }

  // MARK: The app's content

  /// Content of these operations that could not be read or sealed.
  package typealias Failures = [(operations: [Int64], failure: ContentFailure)]

  /// Seals small content, and starts uploads of large content.
  ///
  /// Stops when the sealed content fills a request. The app is asked again for the rest when its turn comes.
  package func supply(_ answers: [ContentAnswer], zone: ZoneID) -> Failures {
    let preparer = ContentPreparer(session: session, zone: zone)
    var failures: Failures = []
    var sealedBytes = ready.values.reduce(0) { $0 + ($1.content.inlineBytes?.count ?? 0) }
    for answer in answers {
      guard sealedBytes < Limits.commitRequestBytes else { break }
      do {
        guard let content = try preparer.prepareAtOnce(answer) else {
          start(answer, preparer)
          continue
        }
        sealedBytes += content.inlineBytes?.count ?? 0
        ready[answer.node] = ReadyContent(content: content, answer: answer)
      } catch {
        failures.append((answer.covers, ContentFailure(error)))
        session.events.report(error)
      }
    }
    return failures
  }

  // MARK: Uploads

  private func start(_ answer: ContentAnswer, _ preparer: ContentPreparer) {
    stopUpload(of: answer.node)
    let id = UUID()
    let progress = session.progress.reporter(answer.uploads)
    let task = Task { [weak self, wake] in
      do {
        let sources = try await preparer.sources(of: answer)
        try Task.checkCancellation()
        try await self?.begins(id, answer)
        let content = try await preparer.prepare(sources, of: answer, progress: progress)
        await self?.finished(id, ReadyContent(content: content, answer: answer), node: answer.node)
      } catch {
        await self?.failed(id, answer, error)
      }
      wake.signal()
    }
    uploads[answer.node] = Upload(id: id, task: task, answer: answer, isPromised: answer.isPromised)
  }

  /// Marks the content as being sent, which an open promise is not.
  private func begins(_ id: UUID, _ answer: ContentAnswer) async throws {
    // The upload was cancelled in the meantime, and its progress has ended.
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
    // Another attempt may have replaced this one.
    guard uploads[node]?.id == id else { return }
    uploads[node] = nil
    settledUploads += 1
    ready[node] = content
  }

  private func failed(_ id: UUID, _ answer: ContentAnswer, _ error: any Error) async {
    guard uploads[answer.node]?.id == id else { return }
    session.progress.end(answer.uploads, .waits)
    // An aborted upload is not a failure, and a cancelled task cannot write.
    if !Task.isCancelled { await store(error, answer) }
    settledUploads += 1
    if uploads[answer.node]?.id == id { uploads[answer.node] = nil }
    await uploadFailed()
  }

  private func store(_ error: any Error, _ answer: ContentAnswer) async {
    session.events.report(error)
    do {
      try await session.database.asyncReadWrite { [session] transaction in
        try ContentFailure(error).store(answer.covers, transaction: transaction, nowMs: session.now())
      }
      if let error = error as? ServerError, error.code == .accountClosed, let owner = error.user {
        _ = try await OwnerCheck(session: session).confirm(owner)
      }
    } catch { session.events.report(error) }
  }

  private func stopUpload(of node: Int64) {
    guard let upload = uploads.removeValue(forKey: node) else { return }
    upload.task.cancel()
    session.progress.end(upload.operations, .waits)
  }

  /// Waits for an upload to end, successfully or not. Cancelling the wait stops the upload.
  ///
  /// - Parameter settled: The value of ``settledUploads`` that the caller has seen.
  /// - Returns: False if there is no upload, or if every upload waits for the app.
  func waitForUpload(since settled: Int) async -> Bool {
    if settledUploads != settled { return true }
    guard let upload = uploads.values.first(where: \.endsByItself) else { return false }
    await withTaskCancellationHandler {
      await upload.task.value
    } onCancel: {
      upload.task.cancel()
    }
    return true
  }

  func cancelUploads() {
    for upload in uploads.values { upload.task.cancel() }
    ahead?.cancel()
  }

  // MARK: Removing prepared content

  /// Drops the content of operations that the server has accepted.
  package func accepted(_ operations: [(operation: Int64, node: Int64?)]) {
    for (operation, node) in operations {
      if let node, ready[node]?.claim.covers.contains(operation) == true { ready[node] = nil }
    }
  }

  /// Drops content that the app would now answer differently.
  package func forget(_ nodes: [Int64]) {
    for node in nodes {
      ready[node] = nil
      stopUpload(of: node)
    }
  }

  /// Drops sealed content but keeps uploaded content.
  ///
  /// - Parameter nodes: The nodes, or nil for all nodes.
  func forgetSealed(of nodes: Set<Int64>? = nil) {
    for (node, content) in ready where content.content.inlineBytes != nil && nodes?.contains(node) != false {
      ready[node] = nil
    }
  }

  /// Drops uploaded content but keeps sealed content.
  func forgetUploaded(of nodes: [Int64]) {
    for node in uploaded(among: nodes) { ready[node] = nil }
  }

  /// Returns the nodes whose content is not inlined in the commit.
  package func uploaded(among nodes: [Int64]) -> Set<Int64> {
    Set(nodes.filter { ready[$0]?.content.inlineBytes == nil })
  }

  /// Cancels uploads whose operations no longer exist, because the app skipped the upload or deleted the node.
  func stopForgottenUploads() async throws {
    let claims = uploads.mapValues(\.claim.covers)
    if !claims.isEmpty {
      let forgotten = try await session.database.asyncRead { [zone] transaction in
        // A node that was split off is another zone's.
        try claims.filter { try $0.value.allSatisfy { try transaction.operations.operation(id: $0)?.zone != zone } }
      }
      forget(Array(forgotten.keys))
    }
    try await forgetProgress()
  }

  /// Drops the progress of operations that wait for a retry but no longer exist.
  private func forgetProgress() async throws {
    let waiting = session.progress.waitingOperations
    guard !waiting.isEmpty else { return }
    let forgotten = try await session.database.asyncRead { transaction in
      try waiting.filter { try !transaction.operations.isQueued(uuid: $0) }
    }
    session.progress.forget(forgotten)
  }

  // MARK: Preparing the next commit

  /// Starts preparing the next commit.
  func prepareAhead() {
    let task = NextCommitPrefetch(session: session, zone: zone, known: claims, window: PushPlanner.window)
    ahead = Task { await task.run() }
  }

  /// Takes over the content that was sealed ahead for this commit.
  ///
  /// - Returns: The records that were sealed ahead.
  func takePrefetched() async -> [Int64: PresealedRecord] {
    guard let task = ahead else { return [:] }
    ahead = nil
    let prepared = await task.value
    ready.merge(prepared.contents) { known, _ in known }
    return prepared.records
  }
}
