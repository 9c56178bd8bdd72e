internal import Dispatch
internal import Foundation
internal import Synchronization

/// Threads with a connection each, which run jobs in the order in which they arrive.
///
/// A thread opens its connection with its first job, and another one after it was lost.
final class ConnectionPool: Sendable {
  typealias Job = @Sendable (Result<PostgresConnection, any Error>) -> Void

  private let jobs = Mutex<[Job]>([])
  private let arrived = DispatchSemaphore(value: 0)
  private let ended = DispatchGroup()
  private let count: Int
  private let open: @Sendable () throws -> PostgresConnection

  init(count: Int, _ open: @escaping @Sendable () throws -> PostgresConnection) {
    self.count = count
    self.open = open
    for _ in 0..<count {
      ended.enter()
      Thread.detachNewThread { [self] in
        work()
        ended.leave()
      }
    }
  }

  func run(_ job: @escaping Job) {
    jobs.withLock { $0.append(job) }
    arrived.signal()
  }

  /// Ends the threads after all jobs that have arrived; blocks until then.
  func close() {
    for _ in 0..<count { arrived.signal() }
    ended.wait()
  }

  /// A signal without a job ends the thread.
  private func work() {
    var connection: PostgresConnection?
    while true {
      arrived.wait()
      guard let job = jobs.withLock({ $0.isEmpty ? nil : $0.removeFirst() }) else { return }
      if connection?.isLost ?? true { connection = nil }
      let usable = Result { try connection ?? open() }
      connection = try? usable.get()
      job(usable)
    }
  }
}
