/// Coalesces concurrent requests for the same key into one task. The task is cancelled when its last waiter leaves.
package actor SharedWork<Key: Hashable & Sendable, Value: Sendable> {
  private struct Work {
    var number: Int
    var task: Task<Void, Never>
    var waiters: [Int: CheckedContinuation<Value, any Error>] = [:]
  }

  private var works: [Key: Work] = [:]
  private var lastNumber = 0

  package init() {}

  /// Returns the result for `key`, starting `body` only if no task is running for it.
  ///
  /// - Throws: Any error `body` throws; `CancellationError`, immediately, if the calling task is cancelled.
  package func value(_ key: Key, _ body: @escaping @Sendable () async throws -> Value) async throws -> Value {
    let waiter = number()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        // If the task was cancelled earlier, the handler may already have run.
        if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
        if works[key] == nil { start(key, body) }
        works[key]?.waiters[waiter] = continuation
      }
    } onCancel: {
      Task { await self.leave(key, waiter) }
    }
  }

  package func waiterCount(_ key: Key) -> Int { works[key]?.waiters.count ?? 0 }

  private func number() -> Int {
    lastNumber += 1
    return lastNumber
  }

  private func start(_ key: Key, _ body: @escaping @Sendable () async throws -> Value) {
    let number = number()
    let task = Task {
      let result: Result<Value, any Error>
      do { result = .success(try await body()) } catch { result = .failure(error) }
      finish(key, number, result)
    }
    works[key] = Work(number: number, task: task)
  }

  private func finish(_ key: Key, _ number: Int, _ result: Result<Value, any Error>) {
    // All waiters left, and a new request has since started another task.
    guard let work = works[key], work.number == number else { return }
    works[key] = nil
    for (_, waiter) in work.waiters { waiter.resume(with: result) }
  }

  private func leave(_ key: Key, _ waiter: Int) {
    guard let continuation = works[key]?.waiters.removeValue(forKey: waiter) else { return }
    continuation.resume(throwing: CancellationError())
    guard let work = works[key], work.waiters.isEmpty else { return }
    work.task.cancel()
    works[key] = nil
  }
}
