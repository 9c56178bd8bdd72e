internal import Foundation
internal import ZDCClientStore
internal import ZDCCrypto
internal import ZDCProtocol

/// Prepares the next commit of a zone while the previous one is in flight. A zone has at most one request in flight
/// (PROTOCOL 3.7), so without this each round trip would be idle time.
///
/// None of the results are binding. Content is used only if its claim still holds, and a record only if the committing
/// transaction makes the same draft.
struct NextCommitPrefetch: Sendable {
  package let session: SyncSession
  package let zone: Int64
  /// Content that is ready or being uploaded, so that the app need not be asked for it.
  package let known: [Int64: ContentClaim]
  /// The number of queued operations to consider, including those in flight.
  package let window: Int

  struct Prepared: Sendable {
    package var contents: [Int64: ReadyContent] = [:]
    package var records: [Int64: PresealedRecord] = [:]
  }

  /// Prepares content and records. After an error less is ready; the commit itself encounters the error again and
  /// reports it.
  package func run() async -> Prepared {
    do {
      guard let asked = try await ask(), !Task.isCancelled else { return Prepared() }
      var prepared = Prepared(contents: seal(asked))
      for (node, draft) in try await drafts(asked, prepared.contents) where !Task.isCancelled {
        prepared.records[node] = try PresealedRecord(draft)
      }
      return prepared
    } catch { return Prepared() }
  }

  // MARK: Requesting content

  private struct Asked: Sendable {
    var zone: ZoneRow
    var plan: PushPlan
    var answers: [ContentAnswer] = []
  }

  private func ask() async throws -> Asked? {
    try await session.database.asyncRead { transaction in
      guard let row = try transaction.zones.zone(id: zone) else { return nil }
      var asked = Asked(zone: row, plan: try plan(transaction))
      let request = ContentRequest(session: session, transaction: transaction)
      for step in asked.plan.steps {
        guard let node = step.node, known[node] == nil, !step.dataOperations.isEmpty,
          case .answer(let answer) = try request.ask(step.dataOperations)
        else { continue }
        asked.answers.append(answer)
      }
      return asked
    }
  }

  /// Returns the plan that will be made if the request in flight is accepted.
  private func plan(_ transaction: ZDCReadTransaction) throws -> PushPlan {
    let queue = try transaction.operations.operations(zone: zone, limit: window)
    let inFlight = queue.filter { $0.state == .inFlight }
    let done = Set(inFlight.map(\.id))
    // A further edit of a node in flight will be based on the result of that request.
    let busy = Set(inFlight.compactMap(\.node))
    let rest = queue.filter { $0.state != .inFlight && !($0.node.map(busy.contains) ?? false) }
    let dependencies = try transaction.operations.dependencies(zone: zone, upTo: queue.last?.id ?? 0)
    return PushPlan(
      operations: rest, dependencies: dependencies.mapValues { $0.filter { !done.contains($0) } },
      unread: try transaction.unreadNodes(of: rest, zone: zone),
      unreadable: try transaction.zones.zone(id: zone)?.unreadableReason?.code, nowMs: session.now())
  }

  // MARK: Sealing

  /// Seals content that is small and available immediately, until it fills a request.
  private func seal(_ asked: Asked) -> [Int64: ReadyContent] {
    let preparer = ContentPreparer(session: session, zone: asked.zone.zone)
    var contents: [Int64: ReadyContent] = [:]
    var size = 0
    for answer in asked.answers where size < Limits.commitRequestBytes {
      do {
        guard let content = try preparer.prepareAtOnce(answer) else { continue }
        size += content.inlineBytes?.count ?? 0
        contents[answer.node] = ReadyContent(content: content, answer: answer)
      } catch {
        // The app is asked for an unreadable source again, and the error is reported, when its turn comes.
        continue
      }
    }
    return contents
  }

  /// Returns drafts of the nodes that are complete. The others change before they are sent.
  private func drafts(
    _ asked: Asked, _ contents: [Int64: ReadyContent]
  ) async throws -> [(node: Int64, draft: RecordDraft)] {
    try await session.database.asyncRead { transaction in
      let drafts = RecordDrafts(session: session, zone: asked.zone, transaction: transaction)
      return try asked.plan.steps.compactMap { step in
        guard let node = step.node, step.dataOperations.isEmpty || contents[node] != nil,
          let row = try transaction.nodes.node(id: node),
          let parent = try row.parent.flatMap({ try transaction.nodes.parent(id: $0) })
        else { return nil }
        // The refusal is reported when the node's turn comes.
        guard try drafts.refusal(of: row, content: contents[node]?.content) == nil else { return nil }
        return (node, try drafts.draft(row, parent: parent, content: contents[node]?.content))
      }
    }
  }
}
