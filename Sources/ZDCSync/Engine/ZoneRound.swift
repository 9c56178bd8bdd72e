internal import ZDCClientAPI
internal import ZDCClientStore
internal import ZDCProtocol

/// One pass over a user's zones. An error in one zone is reported at the end, after the others have been processed.
package struct ZoneRound<Summary: Sendable>: Sendable {
  package var summary: Summary
  package private(set) var failure: (any Error)?
  /// Zones to skip in further rounds of the same sync.
  package private(set) var failedZones: Set<Int64> = []
  private var unanswered = 0
  private let inBackground: Bool

  /// - Parameter inBackground: Whether each zone has its own pauses, so that unanswered requests do not stop the other
  ///   zones.
  package init(_ summary: Summary, inBackground: Bool = false) {
    self.summary = summary
    self.inBackground = inBackground
  }

  /// Performs a step for each zone, a few at a time. An error in one zone is kept until the end and does not stop the
  /// others.
  ///
  /// - Throws: An error that affects all zones, such as a lost connection or a cancelled task. Steps that have started
  ///   finish first.
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
  /// - Throws: An error that affects all zones, such as a lost connection or a cancelled task.
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

  /// Returns whether an error affects all zones. One unanswered request may be a problem of its zone alone; a second
  /// one ends the round, so there is no third.
  private mutating func concernsAll(_ error: any Error) -> Bool {
    guard let error = error as? TransportError else { return false }
    guard [.timeout, .tooSlow, .cut].contains(error.code) else { return error.isOfConnection }
    unanswered += 1
    return unanswered > 1 && !inBackground
  }

  /// Records an error that did not stop the other zones.
  package mutating func note(_ error: (any Error)?) { failure = failure ?? error }

  package func get() throws -> Summary {
    if let failure { throw publicError(failure) }
    return summary
  }
}

extension ZoneRound<ZDCPushSummary> {
  package mutating func take(_ pushed: ZoneWorker.Pushed) {
    summary += pushed.summary
    note(pushed.refusal)
    if pushed.isGivenUp { failedZones.insert(pushed.zone) }
  }
}

extension ZoneRound<ZDCPullSummary> {
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
