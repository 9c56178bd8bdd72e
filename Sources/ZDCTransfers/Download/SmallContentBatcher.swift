package import ZDCProtocol

/// Combines requests for small content of one zone that arrive close together into a few server requests.
///
/// The first one waits a moment for others. Those that arrive while a server request is in progress form the next
/// batch.
package actor SmallContentBatcher {
  package typealias Fetch = @Sendable ([(NodeID, BlobID)]) async throws -> [UInt8]
  package typealias Wait = @Sendable () async -> Void

  private struct Waiter {
    var node: NodeID
    var blob: BlobID
    var cipherLength: Int
    var continuation: CheckedContinuation<[UInt8]?, any Error>
  }

  private let fetch: Fetch
  private let wait: Wait
  private var waiting: [Waiter] = []
  private var isRunning = false

  /// - Parameter wait: waits on behalf of the first request. Tests replace it.
  package init(wait: @escaping Wait = { try? await Task.sleep(for: .milliseconds(3)) }, fetch: @escaping Fetch) {
    self.wait = wait
    self.fetch = fetch
  }

  /// Returns the content's ciphertext, not yet verified; nil if the server left it out.
  package func content(_ target: ContentTarget) async throws -> [UInt8]? {
    try await withCheckedThrowingContinuation { continuation in
      waiting.append(
        Waiter(
          node: target.node, blob: target.blob, cipherLength: Int(target.cipherLength), continuation: continuation))
      guard !isRunning else { return }
      isRunning = true
      Task { await run() }
    }
  }

  package var waitingCount: Int { waiting.count }

  private func run() async {
    await wait()
    while !waiting.isEmpty {
      let batch = takeBatch()
      do {
        let answer = try Self.contents(in: try await fetch(batch.map { ($0.node, $0.blob) }))
        for waiter in batch { waiter.continuation.resume(returning: answer[waiter.blob]) }
      } catch {
        for waiter in batch { waiter.continuation.resume(throwing: error) }
      }
    }
    isRunning = false
  }

  private func takeBatch() -> [Waiter] {
    let count = Self.batchSize(waiting.lazy.map(\.cipherLength))
    defer { waiting.removeFirst(count) }
    return Array(waiting.prefix(count))
  }

  /// Returns how many of these fit into one request and its answer.
  package static func batchSize(_ cipherLengths: some Sequence<Int>) -> Int {
    var count = 0
    var bytes = 0
    for length in cipherLengths {
      // Type, length and blobID precede each blob in the answer.
      bytes += length + 21
      if count == Limits.blobsPerRequest || (count > 0 && bytes > Limits.pageBytes) { break }
      count += 1
    }
    return count
  }

  package static func contents(in bundle: [UInt8]) throws(ZDCSecurityError) -> [BlobID: [UInt8]] {
    var reader = Bundle.Reader(bundle)
    var contents: [BlobID: [UInt8]] = [:]
    while let item = try reader.next() {
      guard case .content(let blob, let bytes) = item else { throw ZDCSecurityError(.nonCanonicalEncoding) }
      contents[blob] = Array(bytes)
    }
    return contents
  }
}
