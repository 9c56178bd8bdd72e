internal import Synchronization

/// The pauses of a ``TestDevice``'s downloads between two attempts. They take no time unless they are held.
///
/// ```swift
/// a.network.isOffline = true
/// a.pauses.hold()
/// let ticket = try a.zdc.downloadManager?.downloadNodeData(node) { info, file, error in
///   if let error { report(error) }
/// }
/// await a.pauses.waitForPause()  // the first attempt has failed
/// a.network.isOffline = false
/// a.pauses.release()
/// ```
public final class TransferPauses: Sendable {
  private struct State {
    var all: [Duration] = []
    var isHeld = false
    var held: [Int: CheckedContinuation<Void, any Error>] = [:]
    var cancelled: Set<Int> = []
    var watchers: [CheckedContinuation<Void, Never>] = []
  }

  private let state = Mutex(State())

  init() {}

  /// The requested durations, in order.
  public var all: [Duration] { state.withLock { $0.all } }

  /// Holds pauses from now on until ``release()``.
  public func hold() { state.withLock { $0.isHeld = true } }

  /// Ends the current pauses and stops holding later ones.
  public func release() {
    let held = state.withLock { state in
      defer { state.held = [:] }
      state.isHeld = false
      return state.held.values
    }
    for continuation in held { continuation.resume() }
  }

  /// Suspends until a pause is held.
  public func waitForPause() async {
    await withCheckedContinuation { continuation in
      let isThere = state.withLock { state in
        if !state.held.isEmpty { return true }
        state.watchers.append(continuation)
        return false
      }
      if isThere { continuation.resume() }
    }
  }

  func pass(_ duration: Duration) async throws {
    let (id, isHeld) = state.withLock { state in
      state.all.append(duration)
      return (state.all.count, state.isHeld)
    }
    guard isHeld else { return await Task.yield() }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { enter($0, id) }
    } onCancel: {
      let continuation = state.withLock { state in
        if state.held[id] == nil { state.cancelled.insert(id) }
        return state.held.removeValue(forKey: id)
      }
      continuation?.resume(throwing: CancellationError())
    }
  }

  private enum Entry {
    case cancelled
    case released
    case held([CheckedContinuation<Void, Never>])
  }

  private func enter(_ continuation: CheckedContinuation<Void, any Error>, _ id: Int) {
    let entry = state.withLock { state -> Entry in
      if state.cancelled.remove(id) != nil { return .cancelled }
      guard state.isHeld else { return .released }
      state.held[id] = continuation
      let watchers = state.watchers
      state.watchers = []
      return .held(watchers)
    }
    switch entry {
    case .cancelled: continuation.resume(throwing: CancellationError())
    case .released: continuation.resume()
    case .held(let watchers): for watcher in watchers { watcher.resume() }
    }
  }
}
