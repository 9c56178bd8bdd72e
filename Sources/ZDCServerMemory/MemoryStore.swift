internal import Dispatch
internal import Synchronization
package import ZDCServer

/// A metadata store in memory, for tests. Runs its calls one after the other on a dedicated queue.
///
/// It refuses to change a subject that the write did not name. So tests find such a write before it loses data in a
/// store with several writers.
package final class MemoryStore: MetadataStore {
  private let queue = DispatchQueue(label: "zdc.server.memory", qos: .userInitiated)
  private let tables = Mutex(MemoryTables())
  private let statistics = Mutex(WriteStatistics())

  package init() {}

  package var writeStatistics: WriteStatistics { statistics.withLock { $0 } }

  package func read<T: Sendable>(_ body: @escaping @Sendable (any MetadataReader) throws -> T) async throws -> T {
    try await run { try body(MemoryTransaction(self.tables.withLock { $0 }, changing: [])) }
  }

  package func write<T: Sendable>(
    _ subjects: Set<WriteSubject>, _ body: @escaping @Sendable (any MetadataTransaction) throws -> T
  ) async throws -> T {
    try await run {
      self.statistics.withLock { statistics in
        statistics.writes += 1
        statistics.groups += 1
      }
      let transaction = MemoryTransaction(self.tables.withLock { $0 }, changing: subjects)
      let value = try body(transaction)
      self.tables.withLock { $0 = transaction.tables }
      for effect in transaction.effects { effect() }
      return value
    }
  }

  package func compact() async throws {}

  package func close() async throws {}

  private func run<T: Sendable>(_ body: @escaping @Sendable () throws -> T) async throws -> T {
    try await withCheckedThrowingContinuation { continuation in
      queue.async { continuation.resume(with: Result { try body() }) }
    }
  }
}
