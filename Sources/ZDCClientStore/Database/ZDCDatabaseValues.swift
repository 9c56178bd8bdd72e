internal import Dispatch
internal import GRDB

/// The values that a block reads from the database, now and after each commit that changes them; see
/// ``ZDCDatabaseConnection/values(of:)``.
///
/// Each loop over it is a separate observation. It begins with the current value, and ends when the loop exits, its
/// task is cancelled, or the framework is closed.
///
/// ```swift
/// let counts = connection.values(of: { try $0.numberOfKeys(inCollection: "tasks") })
/// for try await count in counts { show(["\(count) tasks"]) }
/// ```
public struct ZDCDatabaseValues<Element: Sendable & Equatable>: AsyncSequence, Sendable {
  /// Iterating throws the error that ended the observation.
  public typealias Failure = any Error
  private let start: @Sendable () -> AsyncThrowingStream<Element, any Error>

  package init(start: @escaping @Sendable () -> AsyncThrowingStream<Element, any Error>) {
    self.start = start
  }

  /// Starts an observation and returns its values.
  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(values: start().makeAsyncIterator())
  }

  /// An observation in progress. Releasing it ends the observation.
  public struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate var values: AsyncThrowingStream<Element, any Error>.Iterator

    /// Returns the newest value that differs from the last one, skipping those in between.
    ///
    /// - Returns: nil once the framework is closed, or the task cancelled.
    /// - Throws: The block's error; the sequence then ends.
    public mutating func next() async throws -> Element? {
      try await values.next()
    }
  }
}

extension ZDCDatabaseConnection {
  /// Returns the values that `body` reads: the current one, then one whenever a commit changes it.
  ///
  /// ```swift
  /// for try await titles in connection.values(of: { transaction in
  ///   try transaction.keys(inCollection: "lists")
  /// }) {
  ///   show(titles)
  /// }
  /// ```
  ///
  /// `body` may read everything: objects, nodes, links, the queue and the app's own tables. Commits of another process
  /// count too, within about 200 milliseconds. Consecutive equal values are delivered once. A slow consumer gets the
  /// newest value, and never misses the last one.
  ///
  /// - Parameter body: Runs on a database queue, beside writers: now, and again after commits. All commits during a run
  ///   cause one more.
  public func values<T: Sendable & Equatable>(
    of body: @escaping @Sendable (ZDCReadTransaction) throws -> T
  ) -> ZDCDatabaseValues<T> {
    ZDCDatabaseValues { self.observe(body) }
  }

  /// Like ``values(of:)``, but `body` runs again only after commits that set or remove objects of the app.
  ///
  /// While a change is sent or received, one commit changes the app's objects, and several the state of nodes and of the
  /// queue. This shows the change without reading for each of them.
  ///
  /// ```swift
  /// let lists = connection.objectValues(of: { transaction in
  ///   try transaction.keys(inCollection: "lists")
  /// })
  /// for try await titles in lists { show(titles) }
  /// ```
  ///
  /// - Parameter body: As for ``values(of:)``. Changes of nodes, of the queue or of the app's own tables, without a change of
  ///   an object in the same commit, cause no new value.
  public func objectValues<T: Sendable & Equatable>(
    of body: @escaping @Sendable (ZDCReadTransaction) throws -> T
  ) -> ZDCDatabaseValues<T> {
    ZDCDatabaseValues { self.observe(tables: ["zdc_object"], body) }
  }

  /// Like ``values(of:)``, but returns one stream that begins immediately.
  ///
  /// The observation ends when the stream is released, when the task that reads it is cancelled, or when the framework
  /// is closed. Only one loop can read the stream.
  ///
  /// ```swift
  /// let counts = connection.observe { try $0.numberOfKeys(inCollection: "tasks") }
  /// for try await count in counts { show(["\(count) tasks"]) }
  /// ```
  public func observe<T: Sendable & Equatable>(
    _ body: @escaping @Sendable (ZDCReadTransaction) throws -> T
  ) -> AsyncThrowingStream<T, any Error> {
    // GRDB follows what a body reads only on the writer's queue. The next write would wait for the body each time.
    stream(ValueObservation.tracking(regions: [DatabaseRegion.fullDatabase], fetch: { try self.run(body, $0) }))
  }

  /// Like `observe`, for a body that need not run after each commit.
  ///
  /// - Parameter tables: All tables that `body` reads; others are not tracked.
  package func observe<T: Sendable & Equatable>(
    tables: [String], _ body: @escaping @Sendable (ZDCReadTransaction) throws -> T
  ) -> AsyncThrowingStream<T, any Error> {
    stream(ValueObservation.tracking(regions: tables.map { Table($0) }, fetch: { try self.run(body, $0) }))
  }

  private func stream<T: Sendable & Equatable>(
    _ observation: ValueObservation<ValueReducers.Fetch<T>>
  ) -> AsyncThrowingStream<T, any Error> {
    let distinct = observation.removeDuplicates()
    // Serial: with one task per value, an older value could arrive last.
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
      // The database closed before the termination handler was set, so nothing else cancels the observer.
      if observations.isClosed { observer.cancel() }
    }
  }
}
