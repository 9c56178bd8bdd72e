/// Lets one task at a time through, in order of arrival.
///
/// An actor alone does not do that: it lets others in at every `await`, and a pull in the middle of a push would change the head that is being pushed on.
actor SerialGate {
  private var isTaken = false
  private var waiting: [CheckedContinuation<Void, Never>] = []

  func run<Result: Sendable>(_ body: @Sendable () async throws -> Result) async throws -> Result {
    await enter()
    defer { leave() }
    try Task.checkCancellation()
    return try await body()
  }

  private func enter() async {
    guard isTaken else {
      isTaken = true
      return
    }
    await withCheckedContinuation { waiting.append($0) }
  }

  private func leave() {
    guard !waiting.isEmpty else {
      isTaken = false
      return
    }
    waiting.removeFirst().resume()
  }
}
