public import Foundation
internal import Synchronization

/// One caller's part in a download (reference: the original's `ZDCDownloadTicket`).
///
/// Several tickets may share one transfer. It stops when none of them wants it any more.
public final class ZDCDownloadTicket: Sendable {
  /// Counts bytes of ciphertext.
  public let progress: Progress
  private let state = Mutex(State())

  private struct State {
    var task: Task<Void, Never>?
    var isIgnored = false
    var isCancelled = false
  }

  init() {
    progress = Progress(totalUnitCount: -1)
  }

  /// Gives the download up. The completion block is called, with a `CancellationError`.
  public func cancel() {
    let task = state.withLock { state in
      state.isCancelled = true
      return state.task
    }
    task?.cancel()
  }

  /// Gives the download up without a call of the completion block.
  public func ignore() {
    state.withLock { $0.isIgnored = true }
    cancel()
  }

  var isIgnored: Bool { state.withLock { $0.isIgnored } }

  func begin(_ task: Task<Void, Never>) {
    let isCancelled = state.withLock { state in
      state.task = task
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
  }

  func report(_ received: UInt64, of total: UInt64) {
    progress.totalUnitCount = Int64(clamping: total)
    progress.completedUnitCount = Int64(clamping: received)
  }
}
