internal import Foundation
internal import Synchronization
internal import ZDCProtocol

/// The downloads under way: requests for the same content join one transfer, which ends early when nobody wants it any
/// more.
actor TransferTable {
  struct Key: Hashable, Sendable {
    var user: UserID
    var tree: TreeID
    var blob: BlobID
  }

  typealias Body = @Sendable (_ progress: @escaping ContentFetch.Progress) async throws -> ZDCCryptoFile

  private struct Transfer {
    var task: Task<Void, Never>
    var listeners: ProgressListeners
    var waiters: [Int: CheckedContinuation<ZDCCryptoFile, any Error>]
  }

  private let folder: DownloadFolder
  private var transfers: [Key: Transfer] = [:]
  private var nextWaiter = 0

  init(folder: DownloadFolder) {
    self.folder = folder
  }

  /// Waits for the transfer of this content, and starts it if there is none.
  ///
  /// - Returns: a file of the caller's own.
  /// - Throws: what the transfer threw; `CancellationError`, at once, if the calling task is cancelled.
  func file(
    _ key: Key, progress: @escaping ContentFetch.Progress, _ body: @escaping Body
  ) async throws -> ZDCCryptoFile {
    let waiter = nextWaiter
    nextWaiter += 1
    return try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        // Cancelled before this line: the handler may have run already.
        if Task.isCancelled { return continuation.resume(throwing: CancellationError()) }
        join(key, waiter, continuation, progress, body)
      }
    } onCancel: {
      Task { await self.leave(key, waiter) }
    }
  }

  private func join(
    _ key: Key, _ waiter: Int, _ continuation: CheckedContinuation<ZDCCryptoFile, any Error>,
    _ progress: @escaping ContentFetch.Progress, _ body: @escaping Body
  ) {
    var transfer = transfers[key] ?? start(key, body)
    transfer.waiters[waiter] = continuation
    transfer.listeners.add(waiter, progress)
    transfers[key] = transfer
  }

  private func start(_ key: Key, _ body: @escaping Body) -> Transfer {
    let listeners = ProgressListeners()
    let task = Task {
      let result: Result<ZDCCryptoFile, any Error>
      do {
        result = .success(try await body { listeners.report($0) })
      } catch { result = .failure(error) }
      finish(key, listeners, result)
    }
    return Transfer(task: task, listeners: listeners, waiters: [:])
  }

  private func finish(_ key: Key, _ listeners: ProgressListeners, _ result: Result<ZDCCryptoFile, any Error>) {
    // Another transfer of the same content may have begun after everybody left this one.
    guard let transfer = transfers[key], transfer.listeners === listeners else {
      if case .success(let file) = result { DownloadFolder.remove(file.fileURL) }
      return
    }
    transfers[key] = nil
    let waiters = transfer.waiters.sorted { $0.key < $1.key }.map(\.value)
    for waiter in waiters.dropFirst() {
      waiter.resume(with: Result { try duplicate(try result.get()) })
    }
    // Last, because from here on the file is its caller's, who may delete it.
    waiters.first?.resume(with: result)
  }

  private func duplicate(_ file: ZDCCryptoFile) throws -> ZDCCryptoFile {
    ZDCCryptoFile(
      fileURL: try folder.duplicate(file.fileURL), reference: file.reference, leaves: file.leaves)
  }

  private func leave(_ key: Key, _ waiter: Int) {
    guard let continuation = transfers[key]?.waiters.removeValue(forKey: waiter) else { return }
    continuation.resume(throwing: CancellationError())
    transfers[key]?.listeners.remove(waiter)
    guard let transfer = transfers[key], transfer.waiters.isEmpty else { return }
    transfer.task.cancel()
    transfers[key] = nil
  }

  /// How many transfers there are, and how many wait for one of them.
  var count: Int { transfers.count }

  func waiterCount(_ key: Key) -> Int { transfers[key]?.waiters.count ?? 0 }
}

/// Who is told how far a transfer is.
private final class ProgressListeners: Sendable {
  private let listeners = Mutex<[Int: ContentFetch.Progress]>([:])

  func add(_ id: Int, _ listener: @escaping ContentFetch.Progress) {
    listeners.withLock { $0[id] = listener }
  }

  func remove(_ id: Int) {
    listeners.withLock { $0[id] = nil }
  }

  func report(_ received: UInt64) {
    for listener in listeners.withLock({ Array($0.values) }) { listener(received) }
  }
}
