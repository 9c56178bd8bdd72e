internal import AsyncHTTPClient
internal import NIOCore
internal import ZDCServer

/// Streams a range of an object. If the connection breaks, it continues where it stopped.
actor S3BlobReader: BlobReader {
  private let client: S3Client
  private let key: String
  private var range: Range<UInt64>
  private var body: HTTPClientResponse.Body.AsyncIterator?
  /// Breaks without a byte since the last one.
  private var breaks = 0

  init(_ client: S3Client, key: String, range: Range<UInt64>) async throws {
    self.client = client
    self.key = key
    self.range = range
    body = try await client.stream(key, range: range).body.makeAsyncIterator()
  }

  func next() async throws -> [UInt8]? {
    guard !range.isEmpty else { return nil }
    while true {
      do {
        if let slice = try await slice() { return slice }
      } catch let failure as S3Failure where failure.isTransient && breaks < RetryPolicy.attempts {}
      breaks += 1
      guard breaks <= RetryPolicy.attempts else { throw S3BlobStore.failure("get: the object ends too early") }
      body = nil
    }
  }

  /// Returns the next bytes, or nil if the body ended before the range did.
  private func slice() async throws -> [UInt8]? {
    var iterator: HTTPClientResponse.Body.AsyncIterator
    if let body {
      iterator = body
    } else {
      iterator = try await client.stream(key, range: range).body.makeAsyncIterator()
    }
    body = nil
    do {
      guard let buffer = try await iterator.next(isolation: self) else { return nil }
      body = iterator
      range = min(range.lowerBound + UInt64(buffer.readableBytes), range.upperBound)..<range.upperBound
      breaks = 0
      return [UInt8](buffer.readableBytesView)
    } catch { throw try S3Client.failure(error, "get") }
  }
}
