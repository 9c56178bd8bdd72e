public import Foundation
internal import Synchronization

/// One caller's part in a download.
///
/// Several tickets may share one transfer. It stops when all of them have withdrawn.
///
/// ```swift
/// let downloads = session.downloadManager
/// let ticket = downloads.downloadNodeMeta(node, components: .thumbnail) { info, metadata, thumbnail, error in
///   refreshCell()
/// }
/// ticket.ignore()  // the cell shows another node now; the thumbnail still goes into the cache
/// ```
public final class ZDCDownloadTicket: Sendable {
  /// The progress in bytes. The total is known once the transfer has begun. Never runs backwards.
  public var progress: Progress { meter.progress }

  private let meter = ProgressMeter()
  private let state = Mutex(State())
  /// This ticket's interest in the transfer.
  package let interest: TransferInterest

  private struct State {
    var task: Task<Void, Never>?
    var isCancelled = false
    var withdrawn: (@Sendable () -> Void)?
  }

  package init(_ report: @escaping TransferReport = { _, _ in }) {
    interest = TransferInterest { [meter] done, total in
      meter.report(done, of: total)
      report(done, total)
    }
  }

  /// Cancels the download. The completion block is called with a `CancellationError`.
  ///
  /// The transfer ends when no other request wants it. The received part of a large transfer is kept for the next
  /// attempt.
  ///
  /// ```swift
  /// let ticket = session.downloadManager.downloadNodeData(node) { info, file, error in
  ///   if let file { importDocument(file, of: node) }
  /// }
  /// cancelButton.action = { ticket.cancel() }
  /// ```
  public func cancel() {
    let (task, withdrawn) = state.withLock { state in
      state.isCancelled = true
      defer { state.withdrawn = nil }
      return (state.task, state.withdrawn)
    }
    withdrawn?()
    task?.cancel()
  }

  /// Prevents the completion block from being called. The transfer continues, but after the others if no request waits
  /// for it.
  public func ignore() {
    interest.ignore()
    state.withLock { state in
      defer { state.withdrawn = nil }
      return state.withdrawn
    }?()
  }

  package var isIgnored: Bool { !interest.isWanted }
  package var isCancelled: Bool { state.withLock { $0.isCancelled } }

  /// - Parameter withdrawn: called once if the caller cancels or ignores the ticket.
  package func begin(_ task: Task<Void, Never>, withdrawn: @escaping @Sendable () -> Void = {}) {
    let isCancelled = state.withLock { state in
      state.task = task
      if !state.isCancelled && !isIgnored { state.withdrawn = withdrawn }
      return state.isCancelled
    }
    if isCancelled { task.cancel() }
    if isCancelled || isIgnored { withdrawn() }
  }
}
