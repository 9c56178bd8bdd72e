internal import Foundation
internal import Synchronization
package import ZDCProtocol

/// The transfers in progress. A request joins a transfer that delivers what it wants. A transfer ends early when a
/// request withdraws and no other one wants it. If requests only ignore it, it continues after those that are wanted.
package actor TransferTable<Value: Sendable> {
  package typealias Body = @Sendable (_ transfer: TransferContext) async throws -> Value

  private struct Waiter {
    var interest: TransferInterest
    var continuation: CheckedContinuation<Value, any Error>
  }

  private struct Transfer {
    var number: Int
    var components: ZDCNodeMetaComponents
    var task: Task<Void, Never>
    var context: TransferContext
    var waiters: [Int: Waiter] = [:]
  }

  private let share: @Sendable (Value) throws -> Value
  private let discard: @Sendable (Value) -> Void
  private var transfers: [TransferKey: [Transfer]] = [:]
  private var nextNumber = 0

  /// - Parameters:
  ///   - share: copies a value for an additional request.
  ///   - discard: called with a value that no request waits for.
  package init(share: @escaping @Sendable (Value) throws -> Value, discard: @escaping @Sendable (Value) -> Void) {
    self.share = share
    self.discard = discard
  }

  /// Waits for a transfer that delivers these components, and starts it if there is none.
  ///
  /// - Returns: a value that belongs to the caller.
  /// - Throws: the transfer's error; `CancellationError`, immediately, if the calling task is cancelled.
  package func value(
    _ key: TransferKey, _ components: ZDCNodeMetaComponents = [], interest: TransferInterest, _ body: @escaping Body
  ) async throws -> Value {
    let waiter = number()
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        // If the task was cancelled before this line, the handler may have run already.
        if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
        join(key, components, waiter, Waiter(interest: interest, continuation: continuation), body)
      }
    } onCancel: {
      Task { await self.leave(key, waiter) }
    }
  }

  private func number() -> Int {
    nextNumber += 1
    return nextNumber
  }

  private func join(
    _ key: TransferKey, _ components: ZDCNodeMetaComponents, _ id: Int, _ waiter: Waiter, _ body: @escaping Body
  ) {
    let index =
      transfers[key]?.firstIndex { $0.components.isSuperset(of: components) }
      ?? start(key, components, waiter.interest, body)
    guard let context = transfers[key]?[index].context else { return }
    transfers[key]?[index].waiters[id] = waiter
    context.listeners.add(id, waiter.interest.report)
    let number = transfers[key]?[index].number ?? 0
    waiter.interest.onIgnore { Task { await self.updatePriority(key, number) } }
    updatePriority(key, number)
  }

  private func start(
    _ key: TransferKey, _ components: ZDCNodeMetaComponents, _ interest: TransferInterest, _ body: @escaping Body
  ) -> Int {
    let (context, number) = (TransferContext(usesLongRetries: interest.usesLongRetries), number())
    let task = Task {
      let result: Result<Value, any Error>
      do {
        result = .success(try await body(context))
      } catch { result = .failure(error) }
      finish(key, number, result)
    }
    transfers[key, default: []].append(
      Transfer(number: number, components: components, task: task, context: context))
    return (transfers[key]?.count ?? 1) - 1
  }

  private func finish(_ key: TransferKey, _ number: Int, _ result: Result<Value, any Error>) {
    // Another transfer of the same content may have begun after all requests left this one.
    guard let transfer = remove(key, number) else {
      if case .success(let value) = result { discard(value) }
      return
    }
    let waiters = transfer.waiters.sorted { $0.key < $1.key }.map(\.value.continuation)
    for waiter in waiters.dropFirst() {
      waiter.resume(with: Result { try share(try result.get()) })
    }
    // Last, because from here on the value belongs to its caller, who may delete the file.
    waiters.first?.resume(with: result)
  }

  private func leave(_ key: TransferKey, _ waiter: Int) {
    guard let index = transfers[key]?.firstIndex(where: { $0.waiters[waiter] != nil }),
      let left = transfers[key]?[index].waiters.removeValue(forKey: waiter), let transfer = transfers[key]?[index]
    else { return }
    left.continuation.resume(throwing: CancellationError())
    transfer.context.listeners.remove(waiter)
    if transfer.waiters.values.contains(where: \.interest.isWanted) { return updatePriority(key, transfer.number) }
    // Requests that ignore the transfer do not keep it alive either.
    transfer.task.cancel()
    for waiter in remove(key, transfer.number)?.waiters.values ?? [:].values {
      waiter.continuation.resume(throwing: CancellationError())
    }
  }

  private func remove(_ key: TransferKey, _ number: Int) -> Transfer? {
    guard let index = transfers[key]?.firstIndex(where: { $0.number == number }) else { return nil }
    let transfer = transfers[key]?.remove(at: index)
    if transfers[key]?.isEmpty == true { transfers[key] = nil }
    return transfer
  }

  private func updatePriority(_ key: TransferKey, _ number: Int) {
    guard let transfer = transfers[key]?.first(where: { $0.number == number }) else { return }
    transfer.context.isWanted = transfer.waiters.values.contains(where: \.interest.isWanted)
    // The most patient request determines the number of retries.
    transfer.context.usesLongRetries = transfer.waiters.values.contains(where: \.interest.usesLongRetries)
  }

  /// Ends all transfers because the framework stops.
  package func cancelAll() {
    let all = transfers.values.joined()
    transfers = [:]
    for transfer in all {
      transfer.task.cancel()
      for waiter in transfer.waiters.values { waiter.continuation.resume(throwing: CancellationError()) }
    }
  }

  /// Number of transfers in progress.
  package var count: Int { transfers.values.reduce(0) { $0 + $1.count } }

  /// Returns the number of requests that wait for transfers of the blob.
  package func waiterCount(_ key: TransferKey) -> Int { transfers[key]?.reduce(0) { $0 + $1.waiters.count } ?? 0 }

  /// Whether a request wants a transfer of the blob.
  package func isWanted(_ key: TransferKey) -> Bool { transfers[key]?.contains(where: \.context.isWanted) ?? false }
}

/// The blob that a transfer delivers.
package struct TransferKey: Hashable, Sendable {
  package var user: UserID
  package var tree: TreeID
  package var blob: BlobID
}

/// A running transfer's view of the requests that wait for it.
package final class TransferContext: Sendable {
  fileprivate let listeners = ProgressListeners()
  private let wanted = Mutex(true)
  private let patient: Mutex<Bool>

  package init(usesLongRetries: Bool) {
    patient = Mutex(usesLongRetries)
  }

  /// False when all waiting requests ignore the transfer.
  package var isWanted: Bool {
    get { wanted.withLock { $0 } }
    set { wanted.withLock { $0 = newValue } }
  }

  /// Whether a request wants many retries. If so, small content may travel in a request with others.
  var usesLongRetries: Bool {
    get { patient.withLock { $0 } }
    set { patient.withLock { $0 = newValue } }
  }

  package func report(_ done: UInt64, of total: UInt64) { listeners.report(done, total) }
}

/// One request's part in a transfer.
package final class TransferInterest: Sendable {
  private struct State {
    var isWanted = true
    var ignored: (@Sendable () -> Void)?
  }

  package let report: TransferReport
  /// Whether it may take many attempts. False for a request that blocks others.
  let usesLongRetries: Bool
  private let state = Mutex(State())

  package init(usesLongRetries: Bool = true, _ report: @escaping TransferReport) {
    self.usesLongRetries = usesLongRetries
    self.report = report
  }

  package var isWanted: Bool { state.withLock { $0.isWanted } }

  package func ignore() {
    let ignored = state.withLock { state in
      state.isWanted = false
      return state.ignored
    }
    ignored?()
  }

  fileprivate func onIgnore(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.ignored = body } }
}

/// Reports the progress of a transfer, in bytes.
package typealias TransferReport = @Sendable (_ done: UInt64, _ total: UInt64) -> Void

/// The listeners to a transfer's progress. A late listener immediately receives the last report.
private final class ProgressListeners: Sendable {
  private struct State {
    var listeners: [Int: TransferReport] = [:]
    var last: (done: UInt64, total: UInt64)?
  }

  private let state = Mutex(State())

  func add(_ id: Int, _ listener: @escaping TransferReport) {
    let last = state.withLock { state in
      state.listeners[id] = listener
      return state.last
    }
    if let last { listener(last.done, last.total) }
  }

  func remove(_ id: Int) {
    state.withLock { $0.listeners[id] = nil }
  }

  func report(_ done: UInt64, _ total: UInt64) {
    let listeners = state.withLock { state in
      state.last = (done, total)
      return Array(state.listeners.values)
    }
    for listener in listeners { listener(done, total) }
  }
}
