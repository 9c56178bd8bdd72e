internal import Dispatch
internal import Synchronization
internal import ZDCSupport

/// Content that the app supplies later.
///
/// ```swift
/// let promise = ZDCDataPromise { promise in
///   promise.fulfill(ZDCData(data: someSlowTask()))
/// }
/// return ZDCData(promise: promise)
/// ```
///
/// Only the first answer counts. A promise that is never answered blocks its node's upload and no other. After a
/// relaunch the app is asked again. ``ZDCSyncManager/syncUntilIdle(localUserID:)`` waits for a promise only while the
/// closure that it was created with runs.
public final class ZDCDataPromise: Sendable {
  private typealias Waiter = CheckedContinuation<ZDCData, any Error>

  private struct State {
    var result: Result<ZDCData, any Error>?
    var nextID = 0
    var waiters: [Int: Waiter] = [:]
    var isAtWork = false
  }

  private let state = Mutex(State())

  /// Creates a promise to answer with ``fulfill(_:)`` or ``reject()``.
  ///
  /// ```swift
  /// let promise = ZDCDataPromise()
  /// camera.takePicture { jpeg in
  ///   if let jpeg { promise.fulfill(ZDCData(data: jpeg)) } else { promise.reject() }
  /// }
  /// return ZDCData(promise: promise)
  /// ```
  public init() {}

  /// Creates a promise and immediately runs `body` on a background queue.
  public convenience init(_ body: @escaping @Sendable (_ promise: ZDCDataPromise) -> Void) {
    self.init()
    setAtWork(true)
    DispatchQueue.global().async {
      body(self)
      self.setAtWork(false)
    }
  }

  /// Creates a promise and immediately runs `body` in a task. Its result or error is the answer.
  ///
  /// ```swift
  /// let promise = ZDCDataPromise { [taskID] in
  ///   ZDCData(data: try await renderer.preview(of: taskID))
  /// }
  /// ```
  public convenience init(_ body: @escaping @Sendable () async throws -> ZDCData) {
    self.init()
    setAtWork(true)
    Task {
      do { self.fulfill(try await body()) } catch { self.reject(error) }
    }
  }

  /// Answers the promise with content, which may come from another promise.
  ///
  /// ```swift
  /// let promise = ZDCDataPromise()
  /// promise.fulfill(ZDCData(data: jpeg))
  /// ```
  public func fulfill(_ result: ZDCData) {
    settle(.success(result))
  }

  /// Answers that there is no content now. The upload is parked as "no data from the app"; nothing is uploaded instead.
  public func reject() {
    settle(.failure(ZDCError(.noDataFromApp)))
  }

  /// Like ``reject()``, with a reason for the status stream.
  ///
  /// ```swift
  /// let promise = ZDCDataPromise { promise in
  ///   do {
  ///     promise.fulfill(ZDCData(data: try Data(contentsOf: imageURL)))
  ///   } catch {
  ///     promise.reject(error)
  ///   }
  /// }
  /// ```
  public func reject(_ error: any Error) {
    settle(.failure(error))
  }

  private func settle(_ result: Result<ZDCData, any Error>) {
    let waiters = state.withLock { state -> [Waiter] in
      guard state.result == nil else { return [] }
      state.result = result
      defer { state.waiters = [:] }
      return Array(state.waiters.values)
    }
    for waiter in waiters { waiter.resume(with: result) }
  }

  private func setAtWork(_ isAtWork: Bool) {
    state.withLock { $0.isAtWork = isAtWork }
  }

  /// Whether the closure that the promise was created with is running.
  var isAtWork: Bool { state.withLock { $0.isAtWork } }

  /// The answer, if there is one yet.
  var resultNow: Result<ZDCData, any Error>? {
    state.withLock { $0.result }
  }

  /// Waits for the answer. Any number of callers may wait.
  ///
  /// - Throws: the error that the promise was rejected with; `CancellationError`.
  package func result() async throws -> ZDCData {
    let id = state.withLock { state in
      state.nextID += 1
      return state.nextID
    }
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { wait($0, id: id) }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
    }
  }

  private func wait(_ waiter: Waiter, id: Int) {
    // Cancelled before the wait began: the handler has already run and found no waiter.
    guard !Task.isCancelled else { return waiter.resume(throwing: CancellationError()) }
    let known = state.withLock { state -> Result<ZDCData, any Error>? in
      if let result = state.result { return result }
      state.waiters[id] = waiter
      return nil
    }
    if let known { return waiter.resume(with: known) }
    // Cancelled between the check and the start of the wait.
    if Task.isCancelled {
      state.withLock { $0.waiters.removeValue(forKey: id) }?.resume(throwing: CancellationError())
    }
  }
}
