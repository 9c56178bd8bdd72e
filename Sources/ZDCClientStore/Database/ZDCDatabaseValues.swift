internal import Dispatch
internal import GRDB

/// What a block reads from the database, now and after each commit that changes it; see
/// ``ZDCDatabaseConnection/values(of:)``.
///
/// Each loop over it is an observation of its own: it begins with the value of that moment, and ends when the loop is
/// left, its task cancelled, or the framework closed.
public struct ZDCDatabaseValues<Element: Sendable & Equatable>: AsyncSequence, Sendable {
  public typealias Failure = any Error
  private let start: @Sendable () -> AsyncThrowingStream<Element, any Error>

  package init(start: @escaping @Sendable () -> AsyncThrowingStream<Element, any Error>) {
    self.start = start
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(values: start().makeAsyncIterator())
  }

  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var values: AsyncThrowingStream<Element, any Error>.Iterator

    /// The newest value that differs from the last one; those in between are left out.
    ///
    /// - Returns: nil once the framework is closed, or the task cancelled.
    /// - Throws: The block's error; nothing follows.
    public mutating func next() async throws -> Element? {
      try await values.next()
    }
  }
}

extension ZDCDatabaseConnection {
  /// What `body` reads: first as it is now, then whenever a commit changes it.
  ///
  /// ```swift
  /// for try await titles in connection.values(of: { transaction in
  ///   try transaction.keys(inCollection: "lists")
  /// }) {
  ///   show(titles)
  /// }
  /// ```
  ///
  /// Objects, nodes, links, queue and the app's own tables alike: the tables that `body` reads are tracked, whoever
  /// commits to them, also another process (within ``ZDCConfig``'s poll interval). Equal values in a row come once. Who
  /// is slow gets the newest value, and never misses the last one.
  ///
  /// - Parameter body: Runs on a queue of the database, and again for each commit to the tables that it reads: be quick.
  public func values<T: Sendable & Equatable>(
    of body: @escaping @Sendable (ZDCReadTransaction) throws -> T
  ) -> ZDCDatabaseValues<T> {
    ZDCDatabaseValues { self.observe(body) }
  }

  /// Like ``values(of:)``, as one stream that begins at once.
  public func observe<T: Sendable & Equatable>(
    _ body: @escaping @Sendable (ZDCReadTransaction) throws -> T
  ) -> AsyncThrowingStream<T, any Error> {
    stream(ValueObservation.tracking { try self.run(body, $0) })
  }

  /// Like `observe`, for a body that reads a lot: it always runs beside the writer, never on it.
  ///
  /// - Parameter tables: All that `body` reads; what it reads of others is not tracked.
  package func observe<T: Sendable & Equatable>(
    tables: [String], _ body: @escaping @Sendable (ZDCReadTransaction) throws -> T
  ) -> AsyncThrowingStream<T, any Error> {
    stream(ValueObservation.tracking(regions: tables.map { Table($0) }, fetch: { try self.run(body, $0) }))
  }

  private func stream<T: Sendable & Equatable>(
    _ observation: ValueObservation<ValueReducers.Fetch<T>>
  ) -> AsyncThrowingStream<T, any Error> {
    let distinct = observation.removeDuplicates()
    // Serial: a task for each value could deliver an older one last.
    let queue = DispatchQueue(label: "ZeroDarkCloud.observe")
    return AsyncThrowingStream(bufferingPolicy: .bufferingNewest(1)) { [pool, observations] continuation in
      guard let id = observations.begin(end: { continuation.finish() }) else { return continuation.finish() }
      let observer = distinct.start(
        in: pool, scheduling: .async(onQueue: queue),
        onError: { error in
          observations.end(id)
          continuation.finish(throwing: translated(error))
        },
        onChange: { continuation.yield($0) })
      continuation.onTermination = { _ in
        observer.cancel()
        observations.end(id)
      }
      // Closed between the two: nobody would call it.
      if observations.isClosed { observer.cancel() }
    }
  }
}
