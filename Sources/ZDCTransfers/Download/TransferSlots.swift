internal import Synchronization

/// Lets a few large transfers run at a time: those with waiting requests first, in order of arrival.
package final class TransferSlots: Sendable {
  private struct Waiter {
    var id: Int
    var context: TransferContext
    var continuation: CheckedContinuation<Void, any Error>
  }

  private struct State {
    var free: Int
    var next = 0
    var waiting: [Waiter] = []
    var running: Set<Int> = []
    /// Cancelled before they started to wait.
    var cancelled: Set<Int> = []
  }

  /// Thrown when a transfer without waiting requests stops for one that has some. It must be resumed later.
  struct GaveWay: Error {}

  private let state: Mutex<State>

  /// - Parameter limit: lower than the number of connections to a server, so that small requests find a free one.
  package init(limit: Int = 4) {
    state = Mutex(State(free: limit))
  }

  /// Runs `body` when it is its turn, and again if it throws ``GaveWay``.
  package func run<Value>(_ context: TransferContext, _ body: () async throws -> Value) async throws -> Value {
    while true {
      let id = try await acquire(context)
      do {
        defer { release(id) }
        return try await body()
      } catch is GaveWay { continue }
    }
  }

  /// Checks whether a running transfer must give way. The transfer calls this repeatedly.
  ///
  /// - Throws: ``GaveWay``.
  package func check(_ context: TransferContext) throws {
    guard !context.isWanted else { return }
    let isInTheWay = state.withLock { $0.waiting.contains { $0.context.isWanted } }
    if isInTheWay { throw GaveWay() }
  }

  package var waitingCount: Int { state.withLock { $0.waiting.count } }

  private func acquire(_ context: TransferContext) async throws -> Int {
    let id = state.withLock { state in
      state.next += 1
      return state.next
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { enter(Waiter(id: id, context: context, continuation: $0)) }
    } onCancel: {
      cancel(id)
    }
    return id
  }

  private func enter(_ waiter: Waiter) {
    let result: Result<Void, any Error>? = state.withLock { state in
      if state.cancelled.remove(waiter.id) != nil { return .failure(CancellationError()) }
      guard state.free == 0 else {
        state.free -= 1
        state.running.insert(waiter.id)
        return .success(())
      }
      state.waiting.append(waiter)
      return nil
    }
    if let result { waiter.continuation.resume(with: result) }
  }

  private func cancel(_ id: Int) {
    let waiter = state.withLock { state -> Waiter? in
      guard let index = state.waiting.firstIndex(where: { $0.id == id }) else {
        if !state.running.contains(id) { state.cancelled.insert(id) }
        return nil
      }
      return state.waiting.remove(at: index)
    }
    waiter?.continuation.resume(throwing: CancellationError())
  }

  private func release(_ id: Int) {
    let next = state.withLock { state -> Waiter? in
      state.running.remove(id)
      let index = state.waiting.firstIndex { $0.context.isWanted } ?? state.waiting.indices.first
      guard let index else {
        state.free += 1
        return nil
      }
      state.running.insert(state.waiting[index].id)
      return state.waiting.remove(at: index)
    }
    next?.continuation.resume()
  }
}
