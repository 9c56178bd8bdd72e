internal import ZDCProtocol

/// The bytes of a body as they arrive. It can be read once: all iterators share one position.
///
/// The next slice is asked for when the last one was taken, so a slow reader slows the sender and memory stays bounded.
/// Letting go of an unread body gives up the request.
public struct TransportBody: AsyncSequence, Sendable {
  public typealias Element = [UInt8]
  public typealias Failure = any Error

  private let nextSlice: @Sendable () async throws -> [UInt8]?

  /// - Parameter next: returns slices of any length in order, nil at the end; throws ``TransportError`` if the
  ///   connection
  ///   breaks off.
  public init(_ next: @escaping @Sendable () async throws -> [UInt8]?) {
    nextSlice = next
  }

  /// A body that is in memory.
  public init(bytes: [UInt8]) {
    let source = OneSlice(bytes)
    self.init { await source.take() }
  }

  public func next() async throws -> [UInt8]? {
    try await nextSlice()
  }

  public struct AsyncIterator: AsyncIteratorProtocol {
    package let body: TransportBody

    public mutating func next() async throws -> [UInt8]? {
      try await body.next()
    }
  }

  public func makeAsyncIterator() -> AsyncIterator {
    AsyncIterator(body: self)
  }

  /// The whole body.
  ///
  /// - Throws: `ZDCSecurityError` with `limitExceeded` if there are more than `limit` bytes, before they are kept.
  public func collect(upTo limit: Int, expected: Int = 0) async throws -> [UInt8] {
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
