internal import ZDCProtocol

/// The bytes of a body as they arrive. It can be read once: all iterators share one position.
///
/// The next slice is requested only after the last one was taken, so a slow reader slows the sender and memory stays
/// bounded. Releasing an unread body cancels the request.
package struct TransportBody: AsyncSequence, Sendable {
  /// A slice of the body, of any length.
  package typealias Element = [UInt8]
  /// Reading fails with the error of the function that returns the slices.
  package typealias Failure = any Error

  private let nextSlice: @Sendable () async throws -> [UInt8]?

  /// Creates a body from a function that returns its slices.
  ///
  /// - Parameter next: Returns slices of any length in order, and nil at the end. Throws ``ZDCTransportError`` if the
  ///   connection is lost.
  package init(_ next: @escaping @Sendable () async throws -> [UInt8]?) {
    nextSlice = next
  }

  /// Creates a body from bytes in memory.
  package init(bytes: [UInt8]) {
    let source = OneSlice(bytes)
    self.init { await source.take() }
  }

  /// Returns the next slice, or nil at the end. All readers of the body share one position.
  ///
  /// - Throws: ``ZDCTransportError`` if the connection is lost.
  package func next() async throws -> [UInt8]? {
    try await nextSlice()
  }

  /// Reads the body's slices. Copies share the body's position.
  package struct AsyncIterator: AsyncIteratorProtocol {
    package let body: TransportBody

    /// Returns the next slice, or nil at the end.
    package mutating func next() async throws -> [UInt8]? {
      try await body.next()
    }
  }

  /// Returns an iterator at the body's current position, which is not necessarily its start.
  package func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(body: self)
  }

  /// Returns the whole body.
  ///
  /// - Throws: `ZDCSecurityError` with `limitExceeded` if there are more than `limit` bytes, before they are stored.
  package func collect(upTo limit: Int, expected: Int = 0) async throws -> [UInt8] {
    var bytes: [UInt8] = []
    bytes.reserveCapacity(Swift.min(expected, limit))
    while let slice = try await nextSlice() {
      try require(slice.count <= limit - bytes.count, .limitExceeded)
      if bytes.isEmpty && expected <= slice.count { bytes = slice } else { bytes += slice }
    }
    return bytes
  }
}

private actor OneSlice {
  private var bytes: [UInt8]?

  init(_ bytes: [UInt8]) {
    self.bytes = bytes.isEmpty ? nil : bytes
  }

  func take() -> [UInt8]? {
    defer { bytes = nil }
    return bytes
  }
}
