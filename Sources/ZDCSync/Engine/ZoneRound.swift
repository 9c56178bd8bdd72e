internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol

/// One pass over a user's zones. The error of one zone is reported at the end, after the others have been processed.
package struct ZoneRound<Summary: Sendable>: Sendable {
  package var summary: Summary
  package private(set) var failure: (any Error)?
  /// Zones that are left alone in further rounds of the same sync.
  package private(set) var failedZones: Set<Int64> = []
  private var unanswered = 0
  private let inBackground: Bool

  /// - Parameter inBackground: each zone has pauses, so that requests without an answer do not stop the others.
  package init(_ summary: Summary, inBackground: Bool = false) {
    self.summary = summary
    self.inBackground = inBackground
  }

  /// Takes a step for each zone, a few at a time. The error of one zone is kept for the end; the others take their step.
  ///
  /// - Throws: what concerns all zones: no connection, a cancelled task. Zones that have begun end first.
  package mutating func run<Part: Sendable>(
    _ workers: [ZoneWorker], atOnce limit: Int, isolation: isolated (any Actor)? = #isolation,
    _ step: @escaping @Sendable (ZoneWorker) async throws -> Part, _ take: (inout ZoneRound, Part) -> Void
  ) async throws {
    if workers.count == 1 { return try add(workers[0].zone, await Result { try await step(workers[0]) }, take) }
    var rest = workers[...]
    var failure: (any Error)?
    await withTaskGroup(of: (zone: Int64, result: Result<Part, any Error>).self) { group in
      var running = 0
      while true {
        while running < limit, failure == nil, let worker = rest.popFirst() {
          group.addTask { (worker.zone, await Result { try await step(worker) }) }
          running += 1
        }
        guard let (zone, result) = await group.next(isolation: isolation) else { return }
        running -= 1
        do { try add(zone, result, take) } catch { failure = failure ?? error }
      }
    }
    if let failure { throw failure }
  }

  /// Adds the result of one zone's step.
  ///
  /// - Throws: what concerns all zones: no connection, a cancelled task.
  package mutating func add<Part>(
    _ zone: Int64, _ result: Result<Part, any Error>, _ take: (inout ZoneRound, Part) -> Void
  ) throws {
    switch result {
    case .success(let part): take(&self, part)
    case .failure(let error):
      if error is CancellationError || concernsAll(error) { throw error }
      failure = failure ?? error
      failedZones.insert(zone)
    }
  }

  /// A request of one zone that gets no answer may be that zone's. A second one is not asked for a third time.
  private mutating func concernsAll(_ error: any Error) -> Bool {
    guard let error = error as? TransportError else { return false }
    guard [.timeout, .tooSlow, .cut].contains(error.code) else { return error.isOfConnection }
    unanswered += 1
    return unanswered > 1 && !inBackground
  }

  /// Notes an error that did not stop the other zones.
  package mutating func note(_ error: (any Error)?) { failure = failure ?? error }

  package func get() throws -> Summary {
    if let failure { throw DelegateError.unwrap(failure) }
    return summary
  }
}

extension ZoneRound<PushSummary> {
  package mutating func take(_ pushed: ZoneWorker.Pushed) {
    summary += pushed.summary
    note(pushed.refusal)
    if pushed.isGivenUp { failedZones.insert(pushed.zone) }
  }
}

extension ZoneRound<PullSummary> {
  package mutating func take(_ pulled: ZonePuller.Pulled) {
    summary += pulled.summary
    note(pulled.refusal)
  }
}

extension Result where Failure == any Error, Success: Sendable {
  package init(_ body: () async throws -> Success) async {
    do { self = .success(try await body()) } catch { self = .failure(error) }
  }
}
